"""Topics as a test sees them: made, listed, with their offsets."""

from __future__ import annotations

from collections.abc import Mapping

from pykafkad import errors
from pykafkad.testing.wire_client import Refused, WireClient
from pykafkad.wire import messages

Partition = tuple[str, int]
"""A topic's name and the index of one of its partitions."""

LATEST, EARLIEST = -1, -2
"""Timestamps of ListOffsets."""

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels of Fetch and ListOffsets."""


def level(committed_only: bool) -> int:
    """The isolation level that sees committed records only, or all."""
    return READ_COMMITTED if committed_only else READ_UNCOMMITTED


TIMEOUT_MS = 30_000
MANY_PARTITIONS = 1_000_000


class Topic:
    """What a topic is made with: its number of partitions and its settings, such as `{"cleanup.policy": "compact"}`."""

    __slots__ = ("partitions", "settings")

    def __init__(self, partitions: int = 1, settings: Mapping[str, object] | None = None) -> None:
        if type(partitions) is not int or not 0 < partitions <= MANY_PARTITIONS:
            raise ValueError(f"partitions: {partitions!r} is no number from 1 to {MANY_PARTITIONS}")
        self.partitions = partitions
        self.settings = settings or {}


def wanted(topics: Mapping[str, Topic | None]) -> dict[str, tuple[int, dict[str, str]]]:
    """Their numbers of partitions and settings, as JSON can carry them; None: with the broker's number of partitions
    (-1)."""
    return {
        name: (-1, {}) if topic is None else (topic.partitions, {k: _text(v) for k, v in topic.settings.items()})
        for name, topic in topics.items()
    }


def rows(topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> list[messages.CreateTopicsRequest.CreatableTopic]:
    """What CreateTopics asks for them."""
    request = messages.CreateTopicsRequest
    return [
        request.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[request.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
        )
        for name, (partitions, settings) in topics.items()
    ]


def create_topics(client: WireClient, topics: Mapping[str, Topic | None], *, may_exist: bool = False) -> None:
    """Create topics, and return when they can be used; None: with the broker's number of partitions. Raises Refused
    for the first that could not be created."""
    if topics:
        created = client.ask("CreateTopics", topics=rows(wanted(topics)), timeout_ms=TIMEOUT_MS)
        check_created(created, may_exist=may_exist)


def check_created(created: messages.CreateTopicsResponse, *, may_exist: bool = False) -> None:
    """Raises Refused for the first that could not be created."""
    for row in created.topics:
        if row.error_code and not (may_exist and row.error_code == errors.TOPIC_ALREADY_EXISTS):
            raise Refused(f"topic {row.name}", row.error_code, row.error_message)


def delete_topic(client: WireClient, name: str) -> None:
    """Delete a topic; it is gone when this returns. Raises Refused."""
    (row,) = client.ask("DeleteTopics", topic_names=[name], timeout_ms=TIMEOUT_MS).responses
    if row.error_code:
        raise Refused(f"topic {name}", row.error_code, row.error_message)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def partition_counts(client: WireClient, names: list[str] | None = None) -> dict[str, int]:
    """The topics that there are, with their numbers of partitions; of `names`, or all but Kafka's own."""
    asked = None
    if names is not None:
        asked = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer = client.ask("Metadata", topics=asked, allow_auto_topic_creation=False)
    return {
        topic.name: len(topic.partitions)
        for topic in answer.topics
        if not topic.error_code and not (names is None and topic.is_internal)
    }


def topic_id(client: WireClient, name: str) -> bytes | None:
    """The id of a topic; None where there is none of that name."""
    request = messages.DescribeTopicPartitionsRequest
    answer = client.ask("DescribeTopicPartitions", topics=[request.TopicRequest(name=name)])
    found: bytes = answer.topics[0].topic_id
    return None if answer.topics[0].error_code else found


def offsets(
    client: WireClient, partitions: list[Partition], timestamp: int, isolation_level: int = READ_UNCOMMITTED
) -> dict[Partition, int]:
    """An offset of each partition: `EARLIEST`, `LATEST`, or that of the first record from a time on."""
    if not partitions:
        return {}
    request = messages.ListOffsetsRequest
    rows: dict[str, messages.ListOffsetsRequest.ListOffsetsTopic] = {}
    for name, index in partitions:
        row = rows.setdefault(name, request.ListOffsetsTopic(name=name))
        row.partitions.append(request.ListOffsetsPartition(partition_index=index, timestamp=timestamp))
    answer = client.ask("ListOffsets", replica_id=-1, isolation_level=isolation_level, topics=list(rows.values()))
    found = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise Refused(f"offsets of {topic.name}-{partition.partition_index}", partition.error_code)
            found[topic.name, partition.partition_index] = partition.offset
    return found
