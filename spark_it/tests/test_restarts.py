"""The job or the broker is killed: no row is lost or duplicated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from compat_tests.brokers.broker import Broker
from spark_it.tests.jobs import ModuleProcess, committed_batches
from spark_it.tests.topics import Topics, numbered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATCH_UP_TIMEOUT_S = 300


def test_killed_job_goes_on_from_its_checkpoint(
    spark: SparkSession, bootstrap: str, topics: Topics, tmp_path: Path
) -> None:
    """After a kill and a new start each record is in the files exactly once."""
    topic = topics.create(partitions=3)
    topics.write(topic, numbered(60_000, partitions=3))
    arguments = ("spark_it.tests.copy_job", bootstrap, topic, str(tmp_path), "4000")
    ModuleProcess(tmp_path, *arguments).kill_after_batches(tmp_path / "checkpoint", 3)
    assert committed_batches(tmp_path / "checkpoint") < 15, "the job had finished before it was killed"
    ModuleProcess(tmp_path, *arguments).run()
    rows = spark.read.parquet(str(tmp_path / "files")).collect()
    assert sorted(row.number for row in rows) == list(range(60_000))
    assert len({(row.partition, row.offset) for row in rows}) == 60_000


def test_killed_broker_comes_back(spark: SparkSession, own_broker: Broker, folder: Callable[[str], str]) -> None:
    """The broker is killed three times while a producer writes and two queries run, into files and into a topic.

    It returns on the same port with the same data; its clients are not told.
    """
    bootstrap = own_broker.bootstrap
    rounds, per_round = 4, 4000
    with Topics(bootstrap, "killed-broker") as topics:
        source, target = topics.create("source", partitions=3), topics.create("target")
        rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", source)
        rows = rows.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 1000).load()
        files = rows.select(f.col("value").cast("string").cast("long").alias("number")).writeStream.format("parquet")
        files = files.option("path", folder("files")).option("checkpointLocation", folder("files-checkpoint")).start()
        copies = rows.select("value").writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        copies = copies.option("topic", target).option("checkpointLocation", folder("copies-checkpoint")).start()
        queries = (files, copies)
        try:
            for at in range(rounds):
                # Half of the round is acknowledged, the other half is in flight when the broker is killed.
                topics.write(source, numbered(per_round // 2, partitions=3, start=at * per_round))
                topics.send(source, numbered(per_round // 2, partitions=3, start=at * per_round + per_round // 2))
                if at < rounds - 1:
                    own_broker.kill()
                    own_broker.start()
                topics.flush()
            _wait_until_processed(queries, rounds * per_round)
        finally:
            for query in queries:
                query.stop()
        expected = list(range(rounds * per_round))
        assert sorted(int(record.value) for record in topics.read(source)) == expected
        assert sorted(row.number for row in spark.read.parquet(folder("files")).collect()) == expected
        assert sorted(int(record.value) for record in topics.read(target)) == expected


def _wait_until_processed(queries: tuple, records: int) -> None:
    """Wait until both queries have read the source to its end, offset by offset."""
    deadline = time.monotonic() + CATCH_UP_TIMEOUT_S
    while True:
        ends = []
        for query in queries:
            assert query.exception() is None, query.exception()
            progress = query.lastProgress
            topics = json.loads(progress["sources"][0].endOffset or "{}") if progress else {}
            ends.append(sum(sum(partitions.values()) for partitions in topics.values()))
        if all(end >= records for end in ends):
            return
        assert time.monotonic() < deadline, ends
        time.sleep(0.2)
