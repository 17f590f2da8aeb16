"""Consume, change, produce: records and offsets in one transaction, with aborts and with a broker that is killed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition as PythonPartition

from compat_tests.brokers.broker import Broker
from compat_tests.samples import TookTooLong, wait_until
from compat_tests.test_confluent_kafka import create

FreshName = Callable[..., str]
RECORDS = 400
IN_A_TRANSACTION = 20
PARTITIONS = 2
SECONDS = 60
ATTEMPT_SECONDS = 20
LOADING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,
)


class Copier:
    """Copies `source` to `target` in transactions, with librdkafka. Every fourth transaction is aborted."""

    def __init__(self, bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
        self.bootstrap, self.source, self.target, self.group = bootstrap, source, target, group
        self.transactional_id = transactional_id
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self.consumer.subscribe([source])
        self.observer = self.new_observer()
        self.producer = self.new_producer()
        self.transactions = 0

    def new_producer(self) -> Producer:
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.transactional_id})
        self.again(lambda: producer.init_transactions(SECONDS))
        return producer

    def again(self, call: Callable[[], object]) -> None:
        """Call until it succeeds or cannot be repeated."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                call()
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def step(self) -> None:
        """Copy the next records in one transaction."""
        messages = [
            each for each in self.consumer.consume(IN_A_TRANSACTION, timeout=1) if each is not None and not each.error()
        ]
        if not messages:
            return
        self.transactions += 1
        try:
            self.producer.begin_transaction()
            for message in messages:
                self.producer.produce(self.target, message.value(), partition=message.partition())
            positions = self.consumer.position(self.consumer.assignment())
            metadata = self.consumer.consumer_group_metadata()
            self.again(lambda: self.producer.send_offsets_to_transaction(positions, metadata, SECONDS))
            if self.transactions % 4 == 0:
                self.go_back()
            else:
                self.again(lambda: self.producer.commit_transaction(SECONDS))
        except KafkaException as error:
            if error.args[0].fatal():
                self.producer = self.new_producer()
                self.rewind()
            elif error.args[0].txn_requires_abort():
                self.go_back()
            else:
                raise

    def go_back(self) -> None:
        """Abort, and read again what was not copied."""
        self.again(lambda: self.producer.abort_transaction(SECONDS))
        self.rewind()

    def rewind(self) -> None:
        for partition in self.committed(self.consumer.assignment()):
            offset = max(partition.offset, 0)
            self.consumer.seek(TopicPartition(partition.topic, partition.partition, offset))

    def committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """What the group has committed. Its coordinator loads after the broker's end, and librdkafka tells that. A
        client without membership asks: a member of librdkafka's looks for the coordinator no more until its session is
        over.
        """
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return self.observer.committed(partitions, timeout=ATTEMPT_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in LOADING:
                    raise
                if time.monotonic() > deadline:
                    raise TookTooLong(f"the group has no coordinator after {SECONDS} s") from error
                time.sleep(0.1)
                self.observer = self.new_observer()

    def new_observer(self) -> Consumer:
        return Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group, "enable.auto.commit": False})

    def close(self) -> None:
        self.consumer.close()


def fill(bootstrap: str, topic: str) -> None:
    """Numbers, in order, over the partitions."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(SECONDS) == 0


def committed(bootstrap: str, topic: str, count: int) -> list[list[int]]:
    """The values that a read_committed reader gets, by partition: `count` in all, and what comes soon after them."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest", group_id=None
    )
    partitions = [PythonPartition(topic, index) for index in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    found: list[list[int]] = [[] for _ in partitions]
    deadline = time.monotonic() + SECONDS
    more = True
    while more or (sum(map(len, found)) < count and time.monotonic() < deadline):
        more = False
        for records in consumer.poll(1000).values():
            more = True
            for record in records:
                found[record.partition].append(int(record.value))
    consumer.close()
    return found


@pytest.mark.timeout(400)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_each_record_is_copied_once(broker: Broker, fresh_name: FreshName, end: str) -> None:
    """While transactions are aborted, and the broker is stopped or killed in the middle of one."""
    bootstrap = broker.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    source, target = (create(admin, fresh_name(kind), PARTITIONS) for kind in ("source", "target"))
    fill(bootstrap, source)
    group = fresh_name("group")
    copier = Copier(bootstrap, source, target, group, fresh_name("id"))
    deadline = time.monotonic() + 5 * SECONDS
    restarted = False
    try:
        while sum(map(len, committed_offsets(copier))) < RECORDS:
            assert time.monotonic() < deadline
            copier.step()
            if copier.transactions == 9 and not restarted:
                restarted = True
                copier.producer.begin_transaction()
                copier.producer.produce(target, b"-1", partition=0)
                copier.producer.flush(SECONDS)
                if end == "stop":
                    broker.restart()
                else:
                    broker.kill()
                    broker.start()
                # A new client with the same id aborts what the old one left open. The old one would go on, but waits
                # for the group's coordinator until its time is over, also with Kafka.
                copier.producer = copier.new_producer()
                copier.rewind()
    finally:
        copier.close()
    assert committed(bootstrap, target, RECORDS) == [
        list(range(index, RECORDS, PARTITIONS)) for index in range(PARTITIONS)
    ]


def committed_offsets(copier: Copier) -> list[range]:
    """How far each partition was copied."""
    partitions = [TopicPartition(copier.source, index) for index in range(PARTITIONS)]
    return [range(max(each.offset, 0)) for each in copier.committed(partitions)]


def test_kafka_python_commits_offsets_in_transactions(bootstrap: str, fresh_name: FreshName) -> None:
    """An older client, which adds partitions and the group itself (transaction version 1)."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = create(admin, fresh_name(), PARTITIONS)
    group = fresh_name("group")
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh_name("id"))
    producer.init_transactions()
    partition = PythonPartition(topic, 0)
    for number in range(6):
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.send(topic, b"%d" % (number * PARTITIONS + index), partition=index)
        producer.send_offsets_to_transaction({partition: OffsetAndMetadata(number, f"{number}", -1)}, group)
        if number % 3 == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    expected = [number for number in range(6) if number % 3 != 2]
    assert committed(bootstrap, topic, PARTITIONS * len(expected)) == [
        [number * PARTITIONS + index for number in expected] for index in range(PARTITIONS)
    ]
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    wait_until(lambda: consumer.committed(partition) == 4, "the last commit is there")
    consumer.close()
