"""How much of a topic belongs to transactions that are open."""

from __future__ import annotations

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec


def end_offsets(admin: AdminClient, topic: str, partitions: int, isolation: IsolationLevel) -> dict[int, int]:
    """The end offset of each partition; for read_committed that is the last stable offset."""
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
    answers = admin.list_offsets(asked, isolation_level=isolation)
    return {partition.partition: answer.result(100).offset for partition, answer in answers.items()}


def open_offsets(admin: AdminClient, topic: str, partitions: int) -> int:
    """How many offsets are between the last stable offsets and the ends of the topic's partitions.

    0 also while a real Kafka has made a topic and its broker does not know the partitions yet.
    """
    try:
        stable = end_offsets(admin, topic, partitions, IsolationLevel.READ_COMMITTED)
        ends = end_offsets(admin, topic, partitions, IsolationLevel.READ_UNCOMMITTED)
    except KafkaException:
        return 0
    return sum(ends.values()) - sum(stable.values())
