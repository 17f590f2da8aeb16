"""`python -m tests.bench.curve`: how the size of a log affects the speed of writes and reads.

One log of one partition grows from 10 MB to `--up-to`. At each size four things are measured, on one connection, one
request after the other: produce of a 1 KB batch, fetch at the end, fetch of a batch at a random old offset, look-up of
a random time. The old batches are read once before they are measured: what a disk takes to find them is not the
broker's.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import struct
import sys
import time
from collections import namedtuple
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import loadgen, needs, process, wire_bytes
from .brokers import Kafka, Pykafkad
from .request_loads import encoded_batch, produce_templates
from .runner import Bench
from .session import Session

MB = 1000 * 1000
UNITS = {"MB": MB, "GB": 1000 * MB}
SMALLEST_BYTES = 10 * MB
FILL_BATCH_BYTES = 64 * 1024
FILL_DEPTH = 5
# Enough requests for a median, and little data beside the smallest log.
PRODUCED_BATCH_BYTES, PRODUCED_BATCHES = 1024, 2000
PLACES = 300
# So many requests read every place before the measured seconds begin.
WARMING_REQUESTS = PLACES + 50
CONFIGS = {"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"}
MEASURES = {
    "produce": "produce 1 KB",
    "head": "fetch at the end",
    "old": "fetch 64 KB at a random offset",
    "time": "look up a random time",
}
FILE_WIDTH = 120

Region = namedtuple("Region", "first_offset batches records_each begin_ms end_ms")
Region.__doc__ = "Batches of one fill: where they are, how many of how many records, and when they were appended."


class Log:
    """The log that grows: `regions` of equal batches, `end_offset`, `size_bytes`."""

    def __init__(self, broker, bench, topic):
        self.broker = broker
        self.bench = bench
        self.topic = topic
        self.regions = []
        self.end_offset = self.size_bytes = 0
        self.chance = random.Random(1)
        with Session(broker.port) as session:
            self.topic_id = session.create_topics({topic: 1}, CONFIGS)[topic]

    def append(self, batch, count, depth=1):
        """Appends the batch so many times; returns the figures of the run."""
        path = produce_templates(self.bench, self.topic, self.topic_id, batch, partitions=1)
        records = wire_bytes.record_count(batch)
        begin_ms = time.time_ns() // 1_000_000
        figures = loadgen.run(self.broker.port, path, connections=1, depth=depth, requests=count)
        path.unlink()
        self.regions.append(Region(self.end_offset, count, records, begin_ms, time.time_ns() // 1_000_000))
        self.end_offset += count * records
        self.size_bytes += count * len(batch)
        return figures

    def grow(self, to_bytes):
        """Fills the log up to a size."""
        missing = (to_bytes - self.size_bytes) // FILL_BATCH_BYTES
        if missing > 0:
            self.append(encoded_batch(FILL_BATCH_BYTES), missing, depth=FILL_DEPTH)

    def places(self):
        """`PLACES` regions, each as likely as it has bytes of large batches."""
        regions = [region for region in self.regions if region.records_each > 20]
        return self.chance.choices(regions, [region.batches for region in regions], k=PLACES)

    def measure(self):
        """`{measure: {p50_us, requests_per_s}}` at this size."""
        produced = self.append(encoded_batch(PRODUCED_BATCH_BYTES), PRODUCED_BATCHES)
        last = self.regions[-1]
        head = self.end_offset - last.records_each
        old = [
            region.first_offset + self.chance.randrange(region.batches) * region.records_each
            for region in self.places()
        ]
        times = [self.chance.randint(region.begin_ms, region.end_ms) for region in self.places()]
        figures = {
            "produce": produced,
            "head": self._ask([self._fetch(head, PRODUCED_BATCH_BYTES)]),
            "old": self._ask([self._fetch(offset, FILL_BATCH_BYTES) for offset in old]),
            "time": self._ask([list_offsets_at(self.topic, time_ms) for time_ms in times]),
        }
        return {
            name: {key: each[key] for key in ("p50_us", "p99_us", "requests_per_s")} for name, each in figures.items()
        }

    def _fetch(self, offset, max_bytes):
        # Version 11 is checked: its answer has to begin with the batch that was asked for.
        return wire_bytes.fetch(11, self.topic, None, 0, offset, max_bytes=max_bytes)

    def _ask(self, templates):
        path = self.bench.scratch / f"{self.topic}.templates"
        loadgen.write_templates(path, templates)
        loadgen.run(self.broker.port, path, connections=1, requests=WARMING_REQUESTS)
        figures = loadgen.run(self.broker.port, path, connections=1, seconds=self.bench.options.seconds, warmup=0.1)
        path.unlink()
        return figures


def list_offsets_at(topic, time_ms):
    """A ListOffsets 1 template: the first offset at or after a time."""
    body = struct.pack(">ii", -1, 1) + wire_bytes.string(topic) + struct.pack(">iiq", 1, 0, time_ms)
    error_at = 4 + 4 + 4 + len(wire_bytes.string(topic)) + 4 + 4
    return wire_bytes.Template(wire_bytes.request(wire_bytes.LIST_OFFSETS, 1, body), error_at, error_at + 2 + 8 + 8)


def size_of(text):
    """Bytes of '200MB' or '20GB'; raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d+)(MB|GB)", text)
    size = int(found[1]) * UNITS[found[2]] if found else 0
    if size < SMALLEST_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size like 200MB or 20GB, of 10MB at least")
    return size


def sizes_up_to(limit_bytes):
    """The measured sizes: 10 MB, then three times as much each, and the limit at the end."""
    sizes = [SMALLEST_BYTES]
    while sizes[-1] * 3 * 1.5 < limit_bytes:
        sizes.append(sizes[-1] * 3)
    return [*sizes, limit_bytes] if limit_bytes > sizes[-1] else sizes


def curve_of(broker_name, bench, sizes, told):
    """`[(bytes, figures)]` of a fresh broker, which is removed afterwards."""
    broker = bench.fresh(broker_name)
    points = []
    try:
        broker.start()
        log = Log(broker, bench, "curve")
        # A broker's first answers include the start-up of code that has not run before.
        log.append(encoded_batch(PRODUCED_BATCH_BYTES), PRODUCED_BATCHES)
        for size in sizes:
            told(f"{broker_name}: {size / 1e6:,.0f} MB")
            log.grow(size)
            points.append((log.size_bytes, log.measure()))
        broker.stop()
    finally:
        broker.discard()
    return points


def spread(points, measure):
    """The largest median of a measure over the smallest, over all sizes."""
    medians = [figures[measure]["p50_us"] for _, figures in points]
    return max(medians) / min(medians)


def table_of(broker_name, points):
    """The table for the terminal."""
    table = Table(title=f"{broker_name}: median (p99) in µs by size of the log")
    for title in ("log, MB", *MEASURES.values()):
        table.add_column(title, justify="right")
    for size, figures in points:
        cells = (f"{figures[each]['p50_us']:,.0f} ({figures[each]['p99_us']:,.0f})" for each in MEASURES)
        table.add_row(f"{size / 1e6:,.0f}", *cells)
    table.add_section()
    table.add_row("max / min", *(f"{spread(points, each):.2f}x" for each in MEASURES))
    return table


def markdown_of(curves):
    """The same for docs/bench.md: a row a size, medians in µs."""
    lines = ["| broker | log | " + " | ".join(MEASURES.values()) + " |", "|---|---:|" + "---:|" * len(MEASURES)]
    for name, points in curves.items():
        for size, figures in points:
            cells = " | ".join(f"{figures[each]['p50_us']:,.0f} µs" for each in MEASURES)
            lines.append(f"| {name} | {size / 1e6:,.0f} MB | {cells} |")
    return "\n".join(lines) + "\n"


def draw(curves, path):
    """A picture of the medians; raises `needs.Missing` without matplotlib."""
    try:
        import matplotlib
    except ImportError as error:
        raise needs.Missing("matplotlib is missing; it is in requirements/spark.txt") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    colours = dict(zip(MEASURES, ("tab:blue", "tab:green", "tab:orange", "tab:red"), strict=True))
    for name, points in curves.items():
        sizes = [size / 1e6 for size, _ in points]
        for measure, title in MEASURES.items():
            medians = [figures[measure]["p50_us"] for _, figures in points]
            style = {
                "color": colours[measure],
                "marker": "o",
                "markersize": 3,
                "linestyle": "-" if name == Pykafkad.name else ":",
            }
            axes.plot(sizes, medians, label=title if len(curves) == 1 else f"{title}, {name}", **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("size of the log, MB")
    axes.set_ylabel("median, µs")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def parse(arguments=None):
    """The options, checked; `produce_version` and the rest of what a `Bench` asks for are fixed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.curve", description=__doc__)
    parser.add_argument(
        "--up-to",
        type=size_of,
        default=size_of("1GB"),
        metavar="SIZE",
        help="the largest log, as 200MB or 20GB (default 1GB)",
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="measured seconds of each figure (default 1)")
    parser.add_argument("--beside-kafka", action="store_true", help="also a real Kafka, afterwards")
    parser.add_argument(
        "--kafka-libs", metavar="FOLDER", help="Kafka's jars (default: resolved by Maven into the cache)"
    )
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw the curves: .svg or .png")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the table for docs/bench.md")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every figure")
    parser.add_argument("--folder", help="where the brokers keep their data (default: the temporary folder)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs pykafkad")
    options = parser.parse_args(arguments)
    options.produce_version = 7
    return options


def main(arguments=None):
    """Runs it; 0, or 2 when something is missing."""
    options = parse(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_WIDTH)
    curves = {}
    bench = None
    try:
        libs = needs.kafka_libs(options.kafka_libs) if options.beside_kafka else None
        bench = Bench(options, libs, options.folder)
        for name in (Pykafkad.name, Kafka.name) if options.beside_kafka else (Pykafkad.name,):
            curves[name] = curve_of(
                name, bench, sizes_up_to(options.up_to), lambda text: console.print(text, style="dim")
            )
            console.print(table_of(name, curves[name]))
        if options.picture:
            draw(curves, options.picture)
    except (needs.Missing, loadgen.LoadFailed) as error:
        console.print(f"error: {error}", style="red")
        return 2
    finally:
        if bench is not None:
            bench.close()
    if options.markdown:
        options.markdown.write_text(markdown_of(curves))
    if options.json:
        options.json.write_text(json.dumps({"machine": process.machine(options.python), "curves": curves}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
