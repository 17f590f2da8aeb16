"""Streams: batches of a limited size, new topics and partitions, and records that arrive while the query runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f

from spark_it.tests.topics import Record, Topics, numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    Stream = Callable[..., DataFrame]

ARRIVAL_TIMEOUT_S = 240


@pytest.fixture
def stream(spark: SparkSession, bootstrap: str) -> Stream:
    """Reads a stream from its start with Spark's options; its only column `number` is the value as a number."""

    def load(**options: object) -> DataFrame:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        reader = reader.options(**{"startingOffsets": "earliest", **options})
        return reader.load().select(f.col("value").cast("string").cast("long").alias("number"))

    return load


def into_files(rows: DataFrame, folder: Callable[[str], str], **trigger: object) -> StreamingQuery:
    """Start a query into Parquet files; Spark's log of these files makes each row arrive exactly once."""
    writer = (
        rows.writeStream.format("parquet")
        .option("path", folder("files"))
        .option("checkpointLocation", folder("checkpoint"))
    )
    return writer.trigger(**trigger).start()


def numbers(spark: SparkSession, folder: Callable[[str], str]) -> list[int]:
    """The numbers in the files, sorted."""
    return sorted(row.number for row in spark.read.schema("number LONG").parquet(folder("files")).collect())


def wait_for(condition: Callable[[], bool], query: StreamingQuery) -> None:
    """Wait until `condition` holds, at most four minutes, while `query` runs."""
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
    while not condition():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)


def test_available_now_in_bounded_batches(
    spark: SparkSession, topics: Topics, stream: Stream, folder: Callable[[str], str]
) -> None:
    """`availableNow` takes the records that exist at the start, in batches of at most `maxOffsetsPerTrigger`, and
    ends.
    """
    topic = topics.create(partitions=3)
    topics.write(topic, numbered(10_000, partitions=3))
    query = into_files(stream(subscribe=topic, maxOffsetsPerTrigger=1500), folder, availableNow=True)
    query.awaitTermination()
    sizes = [batch["numInputRows"] for batch in query.recentProgress if batch["numInputRows"]]
    assert numbers(spark, folder) == list(range(10_000))
    # A partition's share below one is rounded up, so a batch may be larger by one record a partition.
    assert max(sizes) <= 1500 + 3 and sum(sizes) == 10_000 and len(sizes) >= 7


def test_available_now_again(spark: SparkSession, topics: Topics, stream: Stream, folder: Callable[[str], str]) -> None:
    """A second run from the same checkpoint takes only new records, a third takes none."""
    topic = topics.create(partitions=2)
    for end in (100, 250, 250):
        topics.write(topic, numbered(end - len(topics.read(topic)), partitions=2, start=len(topics.read(topic))))
        query = into_files(stream(subscribe=topic), folder, availableNow=True)
        query.awaitTermination()
        assert numbers(spark, folder) == list(range(end))


def test_records_that_arrive_while_it_runs(
    spark: SparkSession, topics: Topics, stream: Stream, folder: Callable[[str], str]
) -> None:
    """A running query reads new records, also those in added partitions."""
    topic = topics.create(partitions=1)
    query = into_files(stream(subscribe=topic), folder, processingTime="0 seconds")
    try:
        topics.write(topic, numbered(1000))
        wait_for(lambda: len(numbers(spark, folder)) == 1000, query)
        topics.add_partitions(topic, 3)
        topics.write(topic, numbered(1000, partitions=3, start=1000))
        wait_for(lambda: len(numbers(spark, folder)) >= 2000, query)
    finally:
        query.stop()
    assert numbers(spark, folder) == list(range(2000))


def test_topics_that_appear(spark: SparkSession, topics: Topics, stream: Stream, folder: Callable[[str], str]) -> None:
    """A pattern also matches topics that are created after the query's start, from their first record."""
    topics.write(topics.create("t-1"), numbered(10))
    query = into_files(stream(subscribePattern=topics.name("t-.*")), folder, processingTime="0 seconds")
    try:
        wait_for(lambda: len(numbers(spark, folder)) == 10, query)
        topics.write(topics.create("t-2"), numbered(10, start=10))
        wait_for(lambda: len(numbers(spark, folder)) >= 20, query)
    finally:
        query.stop()
    assert numbers(spark, folder) == list(range(20))


def test_latest_starts_with_what_comes(
    spark: SparkSession, topics: Topics, stream: Stream, folder: Callable[[str], str]
) -> None:
    """`startingOffsets=latest`, a stream's default, reads no earlier records."""
    topic = topics.create()
    topics.write(topic, numbered(100))
    query = into_files(stream(subscribe=topic, startingOffsets="latest"), folder, processingTime="0 seconds")
    try:
        wait_for(lambda: query.lastProgress is not None, query)
        topics.write(topic, numbered(5, start=100))
        wait_for(lambda: len(numbers(spark, folder)) >= 5, query)
    finally:
        query.stop()
    assert numbers(spark, folder) == [100, 101, 102, 103, 104]


def test_topic_to_topic(bootstrap: str, topics: Topics, stream: Stream, folder: Callable[[str], str]) -> None:
    """From a topic to a topic: every record once, those of one partition in their order."""
    source, target = topics.create("source", partitions=2), topics.create("target")
    topics.write(source, numbered(5000, partitions=2))
    rows = stream(subscribe=source, maxOffsetsPerTrigger=2000).select(f.col("number").cast("string").alias("value"))
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    writer.option("checkpointLocation", folder("checkpoint")).trigger(availableNow=True).start().awaitTermination()
    written = [int(record.value) for record in topics.read(target)]
    assert sorted(written) == list(range(5000))
    for parity in (0, 1):
        assert [number for number in written if number % 2 == parity] == list(range(parity, 5000, 2))


def test_windows_with_a_watermark(
    spark: SparkSession, topics: Topics, bootstrap: str, folder: Callable[[str], str]
) -> None:
    """Event time is the record's timestamp: a window closes when the watermark passes it, later records are left
    out.
    """
    minute, base = 60_000, 1_700_000_040_000 // 600_000 * 600_000
    topic = topics.create(retention_ms="-1")
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    rows = rows.option("startingOffsets", "earliest").load().withWatermark("timestamp", "1 minute")
    counts = rows.groupBy(f.window("timestamp", "10 minutes")).count().select(f.col("count").alias("number"))
    for minutes in ([0, 1, 9], [5, 25], [2, 3, 60]):
        topics.write(topic, [Record(b"", timestamp_ms=base + at * minute) for at in minutes])
        into_files(counts, folder, availableNow=True).awaitTermination()
    assert numbers(spark, folder) == [1, 4]
