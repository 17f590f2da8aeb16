"""Batch reads and writes: Spark reads what was written, and can name any range of it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f

from spark_it.tests.topics import Record, Topics, numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    Read = Callable[..., DataFrame]

BASE_MS = 1_700_000_000_000


def values(rows: DataFrame) -> list[int]:
    """The numbers in the records' values, sorted."""
    return sorted(int(row.value) for row in rows.select(f.col("value").cast("string").alias("value")).collect())


def writer(rows: DataFrame, bootstrap: str, topic: str | None = None) -> DataFrameWriter:
    made = rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return made.option("topic", topic) if topic else made


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_written_rows_are_read_back(
    spark: SparkSession, bootstrap: str, read: Read, topics: Topics, codec: str
) -> None:
    """Every row arrives once, with identical key and value and consecutive offsets, whatever the compression."""
    topic = topics.create(partitions=3)
    rows = spark.range(5000).select(
        f.when(f.col("id") % 10 != 0, f.concat(f.lit("key "), f.col("id"))).alias("key"),
        f.when(f.col("id") % 7 != 0, f.concat(f.lit("value "), f.col("id"))).alias("value"),
    )
    writer(rows, bootstrap, topic).option("kafka.compression.type", codec).save()
    found = read(subscribe=topic).collect()
    expected = sorted((str(row.key), str(row.value)) for row in rows.collect())
    as_text = [
        (str(row.key and bytes(row.key).decode()), str(row.value and bytes(row.value).decode())) for row in found
    ]
    assert sorted(as_text) == expected
    offsets: dict[int, list[int]] = {}
    for row in found:
        offsets.setdefault(row.partition, []).append(row.offset)
    assert all(sorted(numbers) == list(range(len(numbers))) for numbers in offsets.values())
    assert {row.topic for row in found} == {topic}


def test_another_client_reads_what_spark_wrote(spark: SparkSession, bootstrap: str, topics: Topics) -> None:
    """Partition, key, value and headers arrive as they were in the row."""
    topic = topics.create(partitions=2)
    rows = spark.sql(
        "SELECT 1 AS partition, 'k' AS key, 'v' AS value, array(struct('a' AS key, CAST('1' AS BINARY) AS value), "
        "struct('a' AS key, CAST(NULL AS BINARY) AS value)) AS headers"
    )
    writer(rows, bootstrap, topic).save()
    (record,) = topics.read(topic)
    assert (record.value, record.key, record.partition) == (b"v", b"k", 1)
    assert record.headers == (("a", b"1"), ("a", None))


def test_rows_name_their_topic(spark: SparkSession, bootstrap: str, topics: Topics) -> None:
    """Without the option `topic` each row goes to the topic in its own column."""
    names = [topics.create("one"), topics.create("two")]
    rows = spark.createDataFrame([(names[0], "1"), (names[1], "2"), (names[0], "3")], "topic STRING, value STRING")
    writer(rows.coalesce(1), bootstrap).save()
    assert [[record.value for record in topics.read(name)] for name in names] == [[b"1", b"3"], [b"2"]]


def test_large_rows(spark: SparkSession, bootstrap: str, read: Read, topics: Topics) -> None:
    """Rows near the producer's limit of one megabyte."""
    topic = topics.create()
    rows = spark.range(5).select(f.expr("repeat(CAST(id AS STRING), 1000000)").alias("value"))
    writer(rows, bootstrap, topic).save()
    shown = (
        read(subscribe=topic)
        .select(f.length("value").alias("size"), f.substring("value", 1, 1).cast("string").alias("digit"))
        .collect()
    )
    assert sorted((row.size, row.digit) for row in shown) == [(1_000_000, str(number)) for number in range(5)]


def test_headers_are_read_on_request(read: Read, topics: Topics) -> None:
    """`includeHeaders` adds them in their order, repeated names and null values included."""
    topic = topics.create()
    headers = (("trace", b"\x00\xff"), ("trace", None), ("", b""))
    topics.write(topic, [Record(b"with", headers=headers), Record(b"without")])
    rows = read(subscribe=topic, includeHeaders=True).orderBy("offset").collect()
    assert [(header.key, header.value and bytes(header.value)) for header in rows[0].headers] == [
        ("trace", b"\x00\xff"), ("trace", None), ("", bytearray()),
    ]  # fmt: skip
    assert rows[1].headers is None
    assert "headers" not in read(subscribe=topic).columns


def test_offsets_by_number(read: Read, topics: Topics) -> None:
    """A range per partition; -2 is the earliest offset, -1 the latest, and the ending offset is exclusive."""
    topic = topics.create(partitions=2)
    topics.write(topic, numbered(200, partitions=2))

    def between(start: dict[str, int], end: dict[str, int]) -> list[int]:
        offsets = {"startingOffsets": json.dumps({topic: start}), "endingOffsets": json.dumps({topic: end})}
        return values(read(subscribe=topic, **offsets))

    assert between({"0": 10, "1": -2}, {"0": 12, "1": 3}) == [1, 3, 5, 20, 22]
    assert between({"0": 98, "1": 100}, {"0": -1, "1": -1}) == [196, 198]


def test_offsets_by_time(read: Read, topics: Topics) -> None:
    """The first offset whose timestamp is not earlier, for all partitions or for each, at the start and at the end."""
    topic = topics.create(partitions=2, retention_ms="-1")
    topics.write(topic, [Record(b"%d" % n, partition=n % 2, timestamp_ms=BASE_MS + 1000 * n) for n in range(100)])
    assert values(read(subscribe=topic, startingTimestamp=BASE_MS + 94_500)) == [95, 96, 97, 98, 99]
    both = read(subscribe=topic, startingTimestamp=BASE_MS + 10_000, endingTimestamp=BASE_MS + 14_000)
    assert values(both) == [10, 11, 12, 13]


def test_offsets_by_time_of_each_partition(read: Read, topics: Topics) -> None:
    """`startingOffsetsByTimestamp` and `endingOffsetsByTimestamp`; a time after all records means the end."""
    topic = topics.create(partitions=2, retention_ms="-1")
    topics.write(topic, [Record(b"%d" % n, partition=n % 2, timestamp_ms=BASE_MS + 1000 * n) for n in range(100)])
    start = json.dumps({topic: {"0": BASE_MS + 94_000, "1": BASE_MS + 2_000}})
    end = json.dumps({topic: {"0": BASE_MS + 10**9, "1": BASE_MS + 5_000}})
    assert values(read(subscribe=topic, startingOffsetsByTimestamp=start, endingOffsetsByTimestamp=end)) == [
        3,
        94,
        96,
        98,
    ]


def test_a_start_after_all_records(read: Read, topics: Topics) -> None:
    """An error by default; with the strategy `latest` the partition is read from its end."""
    topic = topics.create(retention_ms="-1")
    topics.write(topic, [Record(b"1", timestamp_ms=BASE_MS)])
    with pytest.raises(Exception, match="No offset matched from request"):
        read(subscribe=topic, startingTimestamp=BASE_MS + 1).count()
    assert (
        read(subscribe=topic, startingTimestamp=BASE_MS + 1, startingOffsetsByTimestampStrategy="latest").count() == 0
    )


def test_timestamps_and_their_type(read: Read, topics: Topics) -> None:
    """The producer's time, or the broker's if the topic is configured for that."""
    created = topics.create("created", retention_ms="-1")
    appended = topics.create("appended", message_timestamp_type="LogAppendTime")
    for topic in (created, appended):
        topics.write(topic, [Record(b"1", timestamp_ms=BASE_MS + 7)])
    row = read(subscribe=created).first()
    assert (row.timestampType, row.timestamp) == (0, datetime.datetime.fromtimestamp((BASE_MS + 7) / 1000))
    row = read(subscribe=appended).first()
    assert row.timestampType == 1
    assert abs(row.timestamp - datetime.datetime.now()) < datetime.timedelta(minutes=5)


def test_pattern(read: Read, topics: Topics) -> None:
    """`subscribePattern` finds topics by their names, `assign` single partitions, `subscribe` several names."""
    one, two, other = topics.create("p-1", partitions=2), topics.create("p-2"), topics.create("q-1")
    for place, topic in enumerate((one, two, other)):
        topics.write(topic, numbered(10, partitions=2 if topic == one else 1, start=100 * place))
    found = read(subscribePattern=topics.name("p-.*"))
    assert values(found) == [*range(10), *range(100, 110)]
    assert {row.topic for row in found.select("topic").distinct().collect()} == {one, two}


def test_assigned_partitions(read: Read, topics: Topics) -> None:
    """`assign` reads single partitions of several topics, `subscribe` several topics whole."""
    one, two = topics.create("one", partitions=2), topics.create("two")
    topics.write(one, numbered(10, partitions=2))
    topics.write(two, numbered(3, start=100))
    assert values(read(assign=json.dumps({one: [1], two: [0]}))) == [1, 3, 5, 7, 9, 100, 101, 102]


def test_several_topics(read: Read, topics: Topics) -> None:
    """`subscribe` takes a list."""
    one, two = topics.create("one", partitions=2), topics.create("two")
    topics.write(one, numbered(4, partitions=2))
    topics.write(two, numbered(3, start=100))
    assert values(read(subscribe=f"{one},{two}")) == [0, 1, 2, 3, 100, 101, 102]


def test_min_partitions_split_the_reading(read: Read, topics: Topics) -> None:
    """One partition that several tasks read at once is read completely, and once."""
    topic = topics.create()
    topics.write(topic, numbered(10_000))
    split = read(subscribe=topic, minPartitions=7)
    assert split.rdd.getNumPartitions() == 7
    assert values(split) == list(range(10_000))


def test_max_records_per_partition_split_the_reading(read: Read, topics: Topics) -> None:
    """`maxRecordsPerPartition` limits the records of one task, where offsets are given by number."""
    topic = topics.create()
    topics.write(topic, numbered(1000))
    offsets = {"startingOffsets": json.dumps({topic: {"0": 0}}), "endingOffsets": json.dumps({topic: {"0": 1000}})}
    split = read(subscribe=topic, maxRecordsPerPartition=300, **offsets)
    assert split.rdd.getNumPartitions() == 4
    assert values(split) == list(range(1000))


def test_offsets_found_through_a_consumer_group(spark: SparkSession, read: Read, topics: Topics) -> None:
    """The older way, enabled by a setting: the driver joins a group to learn the partitions and their offsets."""
    topic = topics.create(partitions=3)
    topics.write(topic, numbered(300, partitions=3))
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(setting, "true")
    try:
        assert values(read(subscribe=topic)) == list(range(300))
    finally:
        spark.conf.unset(setting)


def test_reading_starts_after_deleted_records(read: Read, topics: Topics) -> None:
    """`earliest` is the start of the log, which is not offset zero after records were deleted."""
    topic = topics.create()
    topics.write(topic, numbered(100))
    topics.delete_records(topic, 0, 90)
    assert values(read(subscribe=topic)) == list(range(90, 100))


def test_deleted_offsets_are_data_loss(read: Read, topics: Topics) -> None:
    """Offsets by number that no longer exist fail the query, unless `failOnDataLoss` is off."""
    topic = topics.create()
    topics.write(topic, numbered(100))
    topics.delete_records(topic, 0, 90)
    start = json.dumps({topic: {"0": 50}})
    with pytest.raises(Exception, match="(?i)out of range|data loss|data may have been lost|missed"):
        read(subscribe=topic, startingOffsets=start, failOnDataLoss=True).count()
    assert values(read(subscribe=topic, startingOffsets=start, failOnDataLoss=False)) == list(range(90, 100))


def test_empty_topic(read: Read, topics: Topics) -> None:
    """A topic without records gives no rows, without a wait."""
    assert read(subscribe=topics.create(partitions=5)).count() == 0


def test_spark_works_in_a_folder_of_its_own(spark: SparkSession) -> None:
    """Spark creates `artifacts` and `spark-warehouse` in its working directory, which must not be a project's
    folder.
    """
    directory = Path(spark.sparkContext._jvm.java.lang.System.getProperty("user.dir"))
    assert directory.is_dir() and directory != Path.cwd()
