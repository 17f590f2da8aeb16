"""Clients' access to Kafka's own topics, and batches that belong to transactions."""

from __future__ import annotations

from compat_tests.scenarios.configs import SET, TOPIC, incremental
from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.offset_lookup import deleted_before, look_up, looked_up
from compat_tests.scenarios.produce import KEPT, batch, new_producer, produce, to
from compat_tests.scenarios.registry import scenario
from compat_tests.scenarios.topics import create, wanted

OFFSETS, METADATA = "__consumer_offsets", "__cluster_metadata"


@scenario
def writing(broker: Exchange) -> None:
    """Only the coordinators write to their topics, and no client deletes records there."""
    broker.coordinator(broker.name("group"))
    own = broker.topic(**KEPT)
    for version in (3, 9, 12):
        for name in (OFFSETS, METADATA):
            produce(broker, version, to(name, (0, batch())), to(own, (0, batch())), note=name)
    for name in (OFFSETS, METADATA):
        broker.ask("DeleteRecords", 2, note=name, topics=[deleted_before(name, (0, 0))], timeout_ms=5000)


@scenario
def creating(broker: Exchange) -> None:
    """A client cannot create a topic with the name of one of Kafka's own topics."""
    broker.coordinator(broker.name("group"))
    for name in (OFFSETS, METADATA):
        create(broker, 7, wanted(name), note=name, validate_only=True)
        rows = [part("CreatePartitions", "CreatePartitionsTopic", name=name, count=1, assignments=None)]
        broker.ask("CreatePartitions", 3, note=name, topics=rows, timeout_ms=5000, validate_only=True)
    broker.ask("DeleteTopics", 5, note=METADATA, topic_names=[METADATA], timeout_ms=5000)
    incremental(broker, 1, METADATA, TOPIC, METADATA, ("retention.ms", SET, "1"), validate_only=True)


@scenario
def reading(broker: Exchange) -> None:
    """The metadata log is not a topic that clients can read."""
    name = broker.topic(**KEPT)
    for version in (4, 11, 12):
        topics = (from_topic(METADATA, b"\0" * 16, row(0, 0)), from_topic(name, b"\0" * 16, row(0, 0)))
        fetch(broker, version, *topics, note="metadata")
    look_up(broker, 7, looked_up(METADATA, (0, -1)), note="metadata")
    directory = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=METADATA, partitions=[0])]
    broker.ask("DescribeLogDirs", 4, note="metadata", topics=directory)
    everything = broker.quietly("DescribeLogDirs", 4, topics=None)
    assert METADATA not in {topic.name for topic in everything.results[0].topics}
    rows = [part("OffsetForLeaderEpoch", "OffsetForLeaderPartition", partition=0, leader_epoch=0)]
    epochs = [part("OffsetForLeaderEpoch", "OffsetForLeaderTopic", topic=METADATA, partitions=rows)]
    broker.ask("OffsetForLeaderEpoch", 4, note="metadata", topics=epochs)
    described = [part("DescribeTopicPartitions", "TopicRequest", name=METADATA)]
    broker.ask("DescribeTopicPartitions", 0, note="metadata", topics=described)
    asked = [part("Metadata", "MetadataRequestTopic", name=METADATA)]
    broker.ask("Metadata", 12, topics=asked, allow_auto_topic_creation=False)
    broker.ask("Metadata", 12, note="may be created", topics=asked, allow_auto_topic_creation=True)


@scenario
def transactional_batches(broker: Exchange) -> None:
    """A batch of a transaction that was not started is refused and leaves nothing behind."""
    name = broker.topic(**KEPT)
    producer_id, _ = new_producer(broker)
    ids = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    for version in (3, 9, 11):
        produce(broker, version, to(name, (0, batch(**ids))), note="without a transactional id")
        produce(broker, version, to(name, (0, batch(**ids))), note="with one", transactional_id=broker.name("id"))
        produce(broker, version, to(name, (0, batch())), note="plain batch, transactional id", transactional_id="x")
    look_up(broker, 7, looked_up(name, (0, -1)), note="end")


@scenario
def partition_produced_twice(broker: Exchange) -> None:
    """Among several rows for one partition in a request, Kafka takes one and drops the others without an error."""
    name = broker.topic(**KEPT)
    produce(broker, 9, to(name, (0, batch()), (0, batch())), note="rows")
    produce(broker, 9, to(name, (0, batch())), to(name, (0, batch())), note="topics")


@scenario
def partition_fetched_twice(broker: Exchange) -> None:
    """Several rows for one partition in one Fetch."""
    name = broker.topic(**KEPT)
    topic_id = broker.topic_id(name)
    for _ in range(2):
        broker.produce(name, 0, batch())
    fetch(broker, 12, from_topic(name, topic_id, row(0, 0), row(0, 3)), note="rows")
    fetch(broker, 12, from_topic(name, topic_id, row(0, 0)), from_topic(name, topic_id, row(0, 3)), note="topics")
