"""The pipeline from start to end: `python -m spark_it.pipeline --help`."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from compat_tests.brokers.broker import BrokerFailed
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.setup import system_packages
from spark_it.jars import JarsUnavailable
from spark_it.pipeline import delays, departures, report, sinks
from spark_it.pipeline.publish import PublishFailed, Topics, closing_record, create_topics, publish
from spark_it.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

POLL_S = 0.2


class PipelineFailed(Exception):
    """The result cannot be trusted; the message gives the reason."""


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline; exit status 0, or 1 with a message that says what went wrong."""
    options = _parser().parse_args(arguments)
    console = Console()
    if not options.resume:
        for name in ("broker", "checkpoint", "parquet"):
            shutil.rmtree(options.output / name, ignore_errors=True)
    options.output.mkdir(parents=True, exist_ok=True)
    for program in system_packages.install(system_packages.missing([system_packages.JAVA])):
        print(system_packages.how_to_get(program), file=sys.stderr)
        return 1
    try:
        with _bootstrap(options, console) as bootstrap:
            _run(options, bootstrap, console)
    except (BrokerFailed, JarsUnavailable, PipelineFailed, PublishFailed) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command with --resume continues from here", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spark_it.pipeline",
        description="Publish a year of New York's flights and weather, join them with Spark, and show the delays.",
    )
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="an existing broker; without it one is started and stopped"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("pipeline-output"), metavar="DIR", help="results (%(default)s)"
    )
    parser.add_argument("--prefix", default="nyc", help="prefix of the topics' names (%(default)s-flights, …)")
    parser.add_argument("--replace", action="store_true", help="first delete topics with these names")
    parser.add_argument("--resume", action="store_true", help="continue a run that was interrupted after publishing")
    parser.add_argument("--days", type=int, metavar="N", help="only the first N days of the year")
    parser.add_argument(
        "--batch", type=int, default=30_000, metavar="N", help="records per batch and topic (%(default)s)"
    )
    return parser


@contextlib.contextmanager
def _bootstrap(options: argparse.Namespace, console: Console) -> Iterator[str]:
    if options.bootstrap:
        yield options.bootstrap
        return
    directory = (options.output / "broker").absolute()
    directory.mkdir(exist_ok=True)
    broker = PykafkadProcess(directory)
    try:
        broker.start()
        console.print(f"pykafkad serves at {broker.bootstrap}")
        yield broker.bootstrap
    finally:
        broker.close()


def _run(options: argparse.Namespace, bootstrap: str, console: Console) -> None:
    topics = Topics.named(options.prefix)
    columns = (TextColumn("{task.description:19}"), BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as progress:
        if not options.resume:
            create_topics(bootstrap, topics, replace=options.replace)
            _publish_year(options, bootstrap, topics, progress)
        publish(bootstrap, topics.weather, [closing_record()])
        starting = progress.add_task("start Spark", total=1, note="")
        spark = spark_session("pipeline")
        progress.update(starting, completed=1)
        statistics = delays.delay_statistics(spark, bootstrap, topics, records_per_batch=options.batch)
        query = sinks.start(statistics, bootstrap, topics.delays, options.output)
        _follow(query, _held(spark, bootstrap, [topics.flights, topics.weather]), progress)
    _show(options, spark, bootstrap, topics, console)
    spark.stop()


def _publish_year(options: argparse.Namespace, bootstrap: str, topics: Topics, progress: Progress) -> None:
    flights, weather = departures.flights(days=options.days), departures.weather(days=options.days)
    sources = (
        (topics.flights, len(flights), departures.flight_records(flights)),
        (topics.weather, len(weather), departures.weather_records(weather)),
    )
    for topic, total, records in sources:
        task = progress.add_task(f"publish {topic}", total=total, note="")
        publish(bootstrap, topic, records, published=lambda count, task=task: progress.update(task, completed=count))
    publish(bootstrap, topics.flights, [closing_record()])


def _follow(query: StreamingQuery, total: int, progress: Progress) -> None:
    """Show the query's progress until it ends; raises PipelineFailed if it fails or leaves out rows."""
    task = progress.add_task("join and aggregate", total=total, note="")
    seen, late = -1, 0
    while True:
        ended = not query.isActive
        for batch in query.recentProgress:
            if batch["batchId"] <= seen:
                continue
            seen = batch["batchId"]
            late += sum(operator["numRowsDroppedByWatermark"] for operator in batch["stateOperators"])
            youngest = batch["eventTime"].get("max", "")[:10]
            progress.update(
                task, completed=sum(_position(source.endOffset) for source in batch["sources"]), note=youngest
            )
        if ended:
            progress.update(task, note="")
            break
        time.sleep(POLL_S)
    if query.exception() is not None:
        reason, *_ = str(query.exception()).partition("JVM stacktrace")
        raise PipelineFailed(f"the streaming query failed: {reason.strip()}")
    if late:
        raise PipelineFailed(
            f"{late} rows arrived later than the watermark of {delays.LATENESS} allows and were left out"
        )


def _position(end_offset: str) -> int:
    """How many records a source has read, from its offsets as Spark reports them: {"topic": {"partition": offset}}."""
    return sum(offset for partitions in json.loads(end_offset).values() for offset in partitions.values())


def _held(spark: SparkSession, bootstrap: str, topics: list[str]) -> int:
    """How many records the topics hold, as a batch query counts them."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", ",".join(topics)).load().count()


def _show(options: argparse.Namespace, spark: SparkSession, bootstrap: str, topics: Topics, console: Console) -> None:
    statistics = report.read_statistics(options.output)
    picture = options.output / "delays.png"
    report.draw(statistics, picture)
    console.print()
    console.print(report.table(statistics))
    records = _held(spark, bootstrap, [topics.delays])
    console.print(
        f"{len(statistics):,} rows in {options.output / 'parquet'}, {records:,} records in topic {topics.delays}"
    )
    console.print(f"picture: {picture}")


if __name__ == "__main__":
    raise SystemExit(main())
