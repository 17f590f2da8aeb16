"""Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

from compat_tests.scenarios.exchange import ZERO_UUID, Exchange, part, versions
from compat_tests.scenarios.registry import scenario


def named(*names: str | None) -> list:
    """Topics of a Metadata request by name."""
    return [part("Metadata", "MetadataRequestTopic", name=name) for name in names]


@scenario
def known_topics(broker: Exchange) -> None:
    """A topic asked for by name is described with its partitions; a repeated name is answered once."""
    first, second = broker.topic("first", 3), broker.topic("second", 1)
    for version in versions("Metadata"):
        broker.ask("Metadata", version, topics=named(first, second), allow_auto_topic_creation=False)
        broker.ask("Metadata", version, note="twice", topics=named(first, first), allow_auto_topic_creation=False)


@scenario
def unknown_topics(broker: Exchange) -> None:
    """An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, an invalid name INVALID_TOPIC_EXCEPTION; other rows are not
    affected.
    """
    known = broker.topic("known")
    for version in versions("Metadata"):
        if version >= 4:
            for name in (broker.name("nothing"), "bad name", "", ".", "..", "x" * 250, "a/b", "ü"):
                asked = named(known, name)
                broker.ask("Metadata", version, note=name[:20], topics=asked, allow_auto_topic_creation=False)


@scenario
def no_topics(broker: Exchange) -> None:
    """An empty list means no topics from version 1 on."""
    for version in versions("Metadata"):
        if version >= 1:
            assert broker.ask("Metadata", version, topics=[]).topics == []


@scenario
def all_topics(broker: Exchange) -> None:
    """Null, or an empty list in version 0, means all topics."""
    ours = {broker.topic("one"), broker.topic("two", 2)}
    for version in versions("Metadata"):
        answer = broker.quietly("Metadata", version, topics=[] if version == 0 else None)
        assert ours <= {topic.name for topic in answer.topics}
        answer.topics = [topic for topic in answer.topics if topic.name in ours]
        broker.record(f"Metadata v{version}", answer, version)


@scenario
def topics_by_id(broker: Exchange) -> None:
    """From version 12 on topics have ids: an unknown id is UNKNOWN_TOPIC_ID; an id beside a name, or before 12, is
    refused.
    """
    name = broker.topic()
    topic_id = broker.topic_id(name)
    for version in (10, 11, 12, 13):
        for note, asked in (
            ("known id", {"topic_id": topic_id, "name": None}),
            ("unknown id", {"topic_id": b"x" * 16, "name": None}),
            ("both", {"topic_id": topic_id, "name": name}),
            ("neither", {"topic_id": ZERO_UUID, "name": None}),
        ):
            topics = [part("Metadata", "MetadataRequestTopic", **asked)]
            broker.ask("Metadata", version, note=note, topics=topics, allow_auto_topic_creation=False)


@scenario
def mixed_ids_and_names(broker: Exchange) -> None:
    """A request has either ids or names."""
    name = broker.topic()
    topics = [part("Metadata", "MetadataRequestTopic", name=name)]
    topics.append(part("Metadata", "MetadataRequestTopic", topic_id=broker.topic_id(name), name=None))
    for version in (12, 13):
        broker.ask("Metadata", version, topics=topics)


@scenario
def auto_creation(broker: Exchange) -> None:
    """A topic that may be created is unknown in the first answer and exists afterwards; others are never created."""
    for version in versions("Metadata"):
        name = broker.name(f"made-{version}")
        broker.ask("Metadata", version, topics=named(name), allow_auto_topic_creation=True)
        broker.topic_id(name)
        broker.ask("Metadata", version, note="afterwards", topics=named(name), allow_auto_topic_creation=True)
    broker.ask("Metadata", 9, topics=named("not allowed"), allow_auto_topic_creation=True)


@scenario
def internal_topics(broker: Exchange) -> None:
    """The topic of committed offsets is marked internal."""
    broker.coordinator(broker.name("group"))
    for version in (1, 5, 9, 12, 13):
        answer = broker.ask("Metadata", version, topics=named("__consumer_offsets"), allow_auto_topic_creation=False)
        for partition in answer.topics[0].partitions:
            # This field counts the broker's starts before this scenario.
            partition.leader_epoch = 0


@scenario
def authorized_operations(broker: Exchange) -> None:
    """The operations that the caller may perform, as bits, only when asked for."""
    name = broker.topic()
    for version in range(8, 14):
        fields = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
        broker.ask("Metadata", version, topics=named(name), **fields)


@scenario
def describe_cluster(broker: Exchange) -> None:
    """The cluster, its one broker, and for endpoint type 2 its controllers (KIP-919)."""
    for version in versions("DescribeCluster"):
        for operations in (False, True):
            broker.ask("DescribeCluster", version, include_cluster_authorized_operations=operations)
    for endpoint_type in (0, 2, 3):
        broker.ask("DescribeCluster", 1, note=f"endpoint type {endpoint_type}", endpoint_type=endpoint_type)
    broker.ask("DescribeCluster", 2, note="fenced brokers too", include_fenced_brokers=True)


def described(*names: str) -> list:
    """Topics of a DescribeTopicPartitions request."""
    return [part("DescribeTopicPartitions", "TopicRequest", name=name) for name in names]


@scenario
def describe_topic_partitions(broker: Exchange) -> None:
    """Partitions with their eligible leaders, in pages of at most the requested limit (KIP-966)."""
    first, second = broker.topic("first", 5), broker.topic("second", 2)
    broker.ask("DescribeTopicPartitions", 0, topics=described(first, second), response_partition_limit=2000)
    broker.ask(
        "DescribeTopicPartitions", 0, topics=described(first, broker.name("none")), response_partition_limit=2000
    )
    broker.ask("DescribeTopicPartitions", 0, topics=described("bad name"), response_partition_limit=2000)
    cursor = None
    for page in range(6):
        fields = {"topics": described(second, first), "response_partition_limit": 3, "cursor": cursor}
        answer = broker.ask("DescribeTopicPartitions", 0, note=f"page {page}", **fields)
        if answer.next_cursor is None:
            break
        at = answer.next_cursor
        cursor = part("DescribeTopicPartitions", "Cursor", topic_name=at.topic_name, partition_index=at.partition_index)
    assert page == 2


@scenario
def describe_topic_partitions_limits(broker: Exchange) -> None:
    """A limit of zero or less and a negative cursor are errors; a cursor behind the last partition gives an empty
    page.
    """
    name = broker.topic("only", 3)
    for limit in (0, -1, 1, 1_000_000):
        broker.ask(
            "DescribeTopicPartitions", 0, note=f"limit {limit}", topics=described(name), response_partition_limit=limit
        )
    for topic, partition in ((name, -1), (name, 3), (name, 99), (broker.name("zzz"), 0), (broker.name("aaa"), 0)):
        cursor = part("DescribeTopicPartitions", "Cursor", topic_name=topic, partition_index=partition)
        fields = {"topics": described(name), "response_partition_limit": 2, "cursor": cursor}
        broker.ask("DescribeTopicPartitions", 0, note=f"cursor {topic} {partition}", **fields)
