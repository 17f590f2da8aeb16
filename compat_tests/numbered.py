"""Numbered records, spread over the partitions of one topic: kafka-python writes and reads them, also in a group."""

from __future__ import annotations

from collections.abc import Iterable

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

PARTITIONS = 3


def produce(bootstrap: str, topic: str, numbers: Iterable[int]) -> None:
    """Write one record for each number, to partition `number % partitions`, and wait for every acknowledgement."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    sent = [producer.send(topic, value=b"%d" % number, partition=number % PARTITIONS) for number in numbers]
    producer.close()
    for each in sent:
        each.get(0)


def read_all(bootstrap: str, topic: str) -> list[int]:
    """All numbers in the topic, sorted."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    numbers: list[int] = []
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        polled = consumer.poll(timeout_ms=100_000)
        assert polled, f"only {len(numbers)} records arrived, the end offsets are {ends}"
        numbers += [int(record.value) for records in polled.values() for record in records]
    consumer.close()
    return sorted(numbers)


def read_in_group(bootstrap: str, topic: str, group: str, count: int) -> None:
    """Read the next `count` records as a member of the group, and commit."""
    reading = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "consumer_timeout_ms": 100_000}
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, **reading)
    numbers = [number for number, _ in zip(range(1, count + 1), consumer, strict=False)]
    assert len(numbers) == count, f"only {len(numbers)} records arrived"
    consumer.commit()
    consumer.close()


def committed(bootstrap: str, topic: str, group: str) -> int:
    """The sum of the group's offsets in the topic."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    offsets = [consumer.committed(TopicPartition(topic, index)) or 0 for index in range(PARTITIONS)]
    consumer.close()
    return sum(offsets)
