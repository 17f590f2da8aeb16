"""Loads of a broker's life cycle: start, idle memory, idle connections, many partitions.

All but the load of idle connections start their own brokers on fresh folders.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from . import loadgen, process, wire_bytes
from .histogram import median
from .load import Load
from .own_broker_loads import OwnBrokerLoad
from .request_loads import PARTITIONS, encoded_batch, produce_templates
from .session import Session

SETTLE_SECONDS = 2.0
ROOT = Path(__file__).parents[2]
STARTS_PER_ROUND = {"pykafkad": 5, "before": 5, "kafka": 1}


class StartLoad(Load):
    """From spawning the process to its first ApiVersions answer."""

    def round(self, broker, bench):
        """`start_ms`: the median of a few starts, the data folder being formatted already."""
        own = bench.fresh(broker.name)
        try:
            seconds = []
            for _ in range(STARTS_PER_ROUND[broker.name]):
                seconds.append(own.start())
                own.stop()
        finally:
            own.discard()
        return {"start_ms": 1e3 * median(seconds)}


class InProcessLoad(Load):
    """A figure that a module of this package prints of a broker in its own process; Kafka has nothing like it."""

    def __init__(self, figure, module, count):
        self.figure = figure
        self.module = module
        self.count = count

    def round(self, broker, bench):
        """`figure`, as the module prints it for `count` and a folder."""
        if broker.name != "pykafkad":
            return {}
        with TemporaryDirectory(dir=bench.scratch) as folder:
            command = [bench.options.python, "-m", f"tests.bench.{self.module}", str(self.count), folder]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
        return {self.figure: float(done.stdout.split()[-1])}


class SeveralBrokersLoad(Load):
    """Start and memory of several brokers in one process; Kafka has nothing like it."""

    def __init__(self, brokers):
        self.brokers = brokers

    def round(self, broker, bench):
        """`start_ms` from spawning the process to its readiness line, all directories being there already, and `rss_mb`
        some seconds later."""
        if broker.name != "pykafkad":
            return {}
        seconds = []
        with TemporaryDirectory(dir=bench.scratch) as folder:
            words = [bench.options.python, "-m", "pykafkad", "serve", "--brokers", str(self.brokers)]
            words += ["--listen", "localhost:0", "--data", f"{folder}/data"]
            for turn in range(1 + STARTS_PER_ROUND[broker.name]):
                began = time.perf_counter()
                own = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                try:
                    own.stdout.readline()
                    seconds.append(time.perf_counter() - began)
                    if turn == STARTS_PER_ROUND[broker.name]:
                        time.sleep(SETTLE_SECONDS)
                        rss_mb = process.memory_mb(own.pid)
                finally:
                    own.terminate()
                    own.communicate(timeout=60)
        return {"start_ms": 1e3 * median(seconds[1:]), "rss_mb": rss_mb}


class IdleMemoryLoad(Load):
    """Memory of an idle broker."""

    def round(self, broker, bench):
        """`rss_mb` some seconds after the start."""
        own = bench.fresh(broker.name)
        try:
            own.start()
            time.sleep(SETTLE_SECONDS)
            figures = {"rss_mb": process.memory_mb(own.pid)}
            own.stop()
        finally:
            own.discard()
        return figures


class IdleConnectionsLoad(Load):
    """The memory of idle connections, and their effect on the speed of active ones."""

    def __init__(self, connections):
        self.connections = connections

    def round(self, broker, bench):
        """`idle_delta_mb`; `beside_idle_cpu`, CPU per request beside them to the mean of before and after; and
        requests/s."""
        topic = bench.new_name("idle")
        connections = 500 if bench.options.quick else self.connections
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            busy = produce_templates(bench, topic, topic_id, encoded_batch(None))
            hello = bench.scratch / "hello.templates"
            loadgen.write_templates(hello, [wire_bytes.api_versions()])
            before = self._busy(broker, bench, busy)
            memory_mb = process.memory_mb(broker.pid)
            with loadgen.idle_connections(broker.port, hello, connections):
                delta_mb = process.memory_mb(broker.pid) - memory_mb
                beside = self._busy(broker, bench, busy)
            after = self._busy(broker, bench, busy)
            session.delete_topics([topic])
        busy.unlink()
        broker.wait_until_deleted(topic)

        def change(figure):
            return 2 * beside[figure] / (before[figure] + after[figure])

        return {
            "requests_per_s": beside["requests_per_s"],
            "idle_delta_mb": delta_mb,
            "beside_idle_ratio": change("requests_per_s"),
            "beside_idle_cpu": change("cpu_us_per_request"),
        }

    def _busy(self, broker, bench, path):
        options = bench.options
        return loadgen.run(
            broker.port, path, connections=50, seconds=options.seconds, warmup=options.warmup, pid=broker.pid
        )


class PartitionsLoad(OwnBrokerLoad):
    """Start of a broker that holds many partitions with a record each, after a clean stop."""

    def __init__(self, topics, partitions_each):
        super().__init__()
        self.topics = topics
        self.partitions_each = partitions_each
        self.templates = {}

    def prepare(self, broker, bench):
        """Makes the partitions, one record in each, and stops the broker."""
        topics = 1 if bench.options.quick else self.topics
        own = self.own(broker, bench)
        own.start()
        with Session(own.port) as session:
            for number in range(topics):
                topic = f"many-{number}"
                topic_id = session.create_topics({topic: self.partitions_each})[topic]
                path = produce_templates(bench, topic, topic_id, encoded_batch(None), self.partitions_each)
                loadgen.run(own.port, path, connections=1, depth=20, requests=self.partitions_each)
                path.unlink()
            self.templates[broker.name] = wire_bytes.produce(
                bench.options.produce_version, topic, topic_id, self.partitions_each - 1, encoded_batch(None)
            )
        own.stop()

    def round(self, broker, bench):
        """`start_ms` to the first ApiVersions answer, `first_ack_ms` to the first record taken, and `rss_mb`."""
        own = self.owned[broker.name]
        path = bench.scratch / "last.templates"
        loadgen.write_templates(path, [self.templates[broker.name]])
        begin = time.monotonic()
        start_seconds = own.start()
        while True:
            try:
                loadgen.run(own.port, path, connections=1, requests=1)
                break
            except loadgen.LoadFailed:
                if time.monotonic() - begin > 180:
                    raise
        first_ack_seconds = time.monotonic() - begin
        figures = {"start_ms": 1e3 * start_seconds, "first_ack_ms": 1e3 * first_ack_seconds}
        figures["rss_mb"] = process.memory_mb(own.pid)
        own.stop()
        return figures
