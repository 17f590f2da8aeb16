"""Topics of a test, which a client other than Spark writes and reads."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

TIMEOUT_S = 180


class Record(NamedTuple):
    """A record to write or as read; timestamp 0 means "now" when written."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Topics:
    """Creates topics with unique names, writes and reads them; a context manager."""

    def __init__(self, bootstrap: str, test: str) -> None:
        self._bootstrap = bootstrap
        self._prefix = f"{re.sub('[^A-Za-z0-9]+', '-', test).strip('-')}-{uuid.uuid4().hex[:8]}"
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
        self._producer = self._new_producer()
        self._failures: list[str] = []

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *_: object) -> None:
        # Only unacknowledged records could be left, and then the test has failed already.
        self._producer.purge()

    def name(self, suffix: str = "topic") -> str:
        """A name that only this test uses."""
        return f"{self._prefix}-{suffix}"

    def create(self, suffix: str = "topic", *, partitions: int = 1, **config: str) -> str:
        """A new topic; `config` are Kafka's names with `_` for dots. Returns its name."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self._wait(self._admin.create_topics([NewTopic(self.name(suffix), partitions, 1, config=settings)]))
        return self.name(suffix)

    def add_partitions(self, topic: str, total: int) -> None:
        """Extend `topic` to `total` partitions."""
        self._wait(self._admin.create_partitions([NewPartitions(topic, total)]))
        # The old producer would not refresh its metadata for minutes.
        self._producer = self._new_producer()

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Delete the records of a partition up to an offset."""
        self._wait(self._admin.delete_records([TopicPartition(topic, partition, before_offset)]))

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Hand records to the producer; `flush` waits until all are acknowledged."""
        for record in records:
            while True:
                try:
                    self._producer.produce(
                        topic, record.value, record.key, partition=record.partition, on_delivery=self._delivered,
                        timestamp=record.timestamp_ms, headers=list(record.headers),
                    )  # fmt: skip
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until all records are acknowledged."""
        left = self._producer.flush(TIMEOUT_S)
        assert not left and not self._failures, (left, self._failures[:3])

    def write(self, topic: str, records: Iterable[Record]) -> None:
        """Send and flush."""
        self.send(topic, records)
        self.flush()

    def read(self, topic: str) -> list[Record]:
        """All records of `topic`, partition by partition, in the order of their offsets."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 2,
            }
        )
        try:
            partitions = sorted(consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions)
            records: dict[int, list[Record]] = {number: [] for number in partitions}
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            unfinished = set(partitions)
            while unfinished:
                for message in consumer.consume(1000, timeout=0.2):
                    if message.error() is not None:
                        assert message.error().code() == -191, message.error()  # the end of the partition
                        unfinished.discard(message.partition())
                        continue
                    records[message.partition()].append(_record(message))
            return [record for number in partitions for record in records[number]]
        finally:
            consumer.close()

    def _new_producer(self) -> Producer:
        return Producer(
            {"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 2}
        )

    def _delivered(self, error, message) -> None:
        if error is not None:
            self._failures.append(str(error))

    @staticmethod
    def _wait(futures) -> None:
        for future in futures.values():
            future.result(TIMEOUT_S)


def _record(message) -> Record:
    headers = tuple(message.headers() or ())
    return Record(message.value(), message.key(), message.partition(), message.timestamp()[1], headers)


def numbered(count: int, *, partitions: int = 1, start: int = 0) -> list[Record]:
    """`count` records with the values b"0", b"1", … in turn over the partitions."""
    return [Record(b"%d" % number, partition=number % partitions) for number in range(start, start + count)]
