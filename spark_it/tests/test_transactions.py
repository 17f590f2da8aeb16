"""Sources over topics with committed, aborted and open transactions, read_committed and read_uncommitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from pyspark.sql import functions as f

from spark_it.tests.topics import TIMEOUT_S, Record, Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Read = Callable[..., DataFrame]

PARTITIONS = 2
IN_A_TRANSACTION = 50
TRANSACTION_TIMEOUT_MS = 900_000
# Number of a transaction: whether it is committed.
ENDS = (True, False, True, True, False, True)
BETWEEN, OPEN, BEHIND = 10_000, 20_000, 30_000


class Mixed:
    """A topic whose last transaction is open; `end` ends it."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self.topic = topics.create(partitions=PARTITIONS)
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self._producer = self._new_producer(bootstrap, topics.name("id"))
        for number, is_committed in enumerate(ENDS):
            values = range(number * IN_A_TRANSACTION, (number + 1) * IN_A_TRANSACTION)
            self._begin(self._producer, values)
            if is_committed:
                self._producer.commit_transaction(TIMEOUT_S)
                self.committed += values
            else:
                self._producer.abort_transaction(TIMEOUT_S)
                self.aborted += values
            topics.write(self.topic, [Record(b"%d" % (BETWEEN + number), partition=number % PARTITIONS)])
            self.committed.append(BETWEEN + number)
        self.undecided = list(range(OPEN, OPEN + IN_A_TRANSACTION))
        self._begin(self._producer, self.undecided)
        # Behind the open transaction nothing is stable.
        topics.write(self.topic, [Record(b"%d" % (BEHIND + each), partition=each) for each in range(PARTITIONS)])
        self.behind = [BEHIND + each for each in range(PARTITIONS)]

    def _new_producer(self, bootstrap: str, transactional_id: str) -> Producer:
        # The last transaction stays open until the test ends it: Spark's first job may take more than the usual minute.
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            }
        )
        producer.init_transactions(TIMEOUT_S)
        return producer

    def _begin(self, producer: Producer, values: Iterator[int] | list[int] | range) -> None:
        producer.begin_transaction()
        for value in values:
            producer.produce(self.topic, b"%d" % value, partition=value % PARTITIONS)
        assert producer.flush(TIMEOUT_S) == 0

    def everything(self) -> list[int]:
        return sorted(self.committed + self.aborted + self.undecided + self.behind)

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction(TIMEOUT_S)
            self.committed += self.undecided
        else:
            self._producer.abort_transaction(TIMEOUT_S)
            self.aborted += self.undecided
        self.undecided = []
        self.committed += self.behind
        self.behind = []


@pytest.fixture
def mixed(bootstrap: str, topics: Topics) -> Mixed:
    """A topic with every kind of transaction."""
    return Mixed(bootstrap, topics)


def values(rows: DataFrame) -> list[int]:
    """The numbers in the records' values, sorted."""
    return sorted(int(row.value) for row in rows.select(f.col("value").cast("string").alias("value")).collect())


@pytest.mark.parametrize("commit", [True, False])
def test_a_batch_read_is_exact(read: Read, mixed: Mixed, commit: bool) -> None:
    """read_uncommitted gets everything; read_committed what is committed before the first open transaction."""
    committed = {"kafka.isolation.level": "read_committed"}
    assert values(read(subscribe=mixed.topic)) == mixed.everything()
    assert values(read(subscribe=mixed.topic, **committed)) == sorted(mixed.committed)
    mixed.end(commit=commit)
    assert values(read(subscribe=mixed.topic, **committed)) == sorted(mixed.committed)
    assert values(read(subscribe=mixed.topic)) == mixed.everything()


@pytest.mark.parametrize("commit", [True, False])
def test_a_stream_goes_on_when_a_transaction_ends(
    spark: SparkSession, bootstrap: str, folder: Callable[[str], str], mixed: Mixed, commit: bool
) -> None:
    """In bounded batches, and over two runs: the second begins where the first had to stop."""

    def run() -> list[int]:
        rows = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("kafka.isolation.level", "read_committed")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 80)
            .option("subscribe", mixed.topic)
            .load()
            .select(f.col("value").cast("string").cast("long").alias("number"))
        )
        writer = rows.writeStream.format("parquet").option("path", folder("files"))
        query = writer.option("checkpointLocation", folder("checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(TIMEOUT_S)
        assert query.exception() is None
        return sorted(row.number for row in spark.read.schema("number LONG").parquet(folder("files")).collect())

    assert run() == sorted(mixed.committed)
    mixed.end(commit=commit)
    assert run() == sorted(mixed.committed)
