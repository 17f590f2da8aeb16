"""kafka-python 3.0.x: every call of its admin client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
    errors as kafka_errors,
)
from kafka.admin import ConfigResource, ConfigResourceType

from compat_tests.samples import wait_until

FreshName = Callable[..., str]


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    """An admin client."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def create(admin: KafkaAdminClient, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
    """Create a topic."""
    admin.create_topics({name: {"num_partitions": partitions, "configs": configs or {}}}, wait_for_metadata=True)
    return name


def send(bootstrap: str, topic: str, count: int, **options: object) -> None:
    """Send `count` records to partition 0, each in its own batch."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, batch_size=0)
    for number in range(count):
        producer.send(topic, value=b"%d" % number, partition=0, **options).get(100)
    producer.close()


def test_create_describe_delete_topics(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """A topic is created with an id and its partitions, found by name and by id, and gone after its deletion."""
    name = fresh_name()
    created = admin.create_topics(
        {name: {"num_partitions": 3, "configs": {"retention.ms": "1000"}}}, wait_for_metadata=True
    )
    (answer,) = created["topics"]
    assert (answer["num_partitions"], answer["replication_factor"]) == (3, 1)
    (described,) = admin.describe_topics([name])
    assert [partition["partition_index"] for partition in described["partitions"]] == [0, 1, 2]
    assert {partition["leader_id"] for partition in described["partitions"]} == {1}
    assert described["is_internal"] is False
    topic_id = uuid.UUID(str(described["topic_id"]))
    assert admin.describe_topics([topic_id])[0]["name"] == name
    assert name in admin.list_topics()
    admin.delete_topics([name])
    wait_until(lambda: name not in admin.list_topics(), "the topic is gone")


def test_create_topic_errors(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """Each invalid request has its own error, and none creates anything."""
    name, existing = fresh_name(), create(admin, fresh_name("existing"))
    for topic, options, error in (
        (existing, {}, kafka_errors.TopicAlreadyExistsError),
        ("bad name!", {}, kafka_errors.InvalidTopicError),
        (".", {}, kafka_errors.InvalidTopicError),
        ("x" * 250, {}, kafka_errors.InvalidTopicError),
        (name, {"num_partitions": 0}, kafka_errors.InvalidPartitionsError),
        (name, {"num_partitions": 1, "replication_factor": 2}, kafka_errors.InvalidReplicationFactorError),
        (name, {"configs": {"retention.ms": "soon"}}, kafka_errors.InvalidConfigurationError),
        (name, {"configs": {"no.such.setting": "1"}}, kafka_errors.InvalidConfigurationError),
        (name, {"assignments": {0: [99]}}, kafka_errors.InvalidReplicationAssignmentError),
        (name, {"assignments": {1: [1]}}, kafka_errors.InvalidReplicationAssignmentError),
    ):
        with pytest.raises(error):
            admin.create_topics({topic: options})
    admin.create_topics({name: {}}, validate_only=True)
    assert name not in admin.list_topics()


def test_create_partitions(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """A topic can get more partitions, never fewer."""
    topic = create(admin, fresh_name(), 2)
    for wanted in (1, 2):
        with pytest.raises(kafka_errors.InvalidPartitionsError):
            admin.create_partitions({topic: wanted})
    admin.create_partitions({topic: 5}, validate_only=True)
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 2
    admin.create_partitions({topic: 4})
    wait_until(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 4, "two partitions were added")


def test_topic_configs(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """Settings are set, read with their source, and reset; an invalid value is refused and changes nothing."""
    topic = create(admin, fresh_name(), configs={"cleanup.policy": "compact"})

    def values(filter_by: str = "modified") -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = admin.describe_configs([resource], config_filter=filter_by)["topic"][topic]
        return {name: entry["value"] if isinstance(entry, dict) else entry for name, entry in described.items()}

    assert values() == {"cleanup.policy": "compact"}
    change = {"retention.ms": "123456", "cleanup.policy": ("APPEND", "delete")}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, change)])
    wait_until(lambda: values() == {"cleanup.policy": "compact,delete", "retention.ms": "123456"}, "configs are set")
    refused = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "never"})])
    assert "InvalidConfig" in str(refused) or "INVALID_CONFIG" in str(refused) or "40" in str(refused)
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": ("DELETE", None)})])
    wait_until(lambda: values() == {"cleanup.policy": "compact,delete"}, "a config is reset")
    everything = values("all")
    assert everything["retention.ms"] == "604800000" and len(everything) > 25


def test_broker_configs(admin: KafkaAdminClient) -> None:
    """The broker describes its settings, changes a dynamic one, and refuses a read-only one."""
    everything = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")
    settings = everything["broker"]["1"]
    assert settings["node.id"]["value"] if isinstance(settings["node.id"], dict) else settings["node.id"] == "1"
    assert {"log.retention.ms", "num.partitions", "message.max.bytes", "offsets.topic.num.partitions"} <= set(settings)


def test_delete_records(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """Records below an offset are deleted and the log starts there; an offset beyond the end is OFFSET_OUT_OF_RANGE."""
    topic = create(admin, fresh_name())
    partition = TopicPartition(topic, 0)
    send(bootstrap, topic, 10)
    assert admin.delete_records({partition: 4})[partition]["low_watermark"] == 4
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    assert consumer.beginning_offsets([partition]) == {partition: 4}
    assert consumer.end_offsets([partition]) == {partition: 10}
    consumer.close()
    with pytest.raises(Exception, match="(?i)out.?of.?range"):
        result = admin.delete_records({partition: 11})
        raise AssertionError(result)
    assert admin.delete_records({partition: -1})[partition]["low_watermark"] == 10


def test_partition_offsets(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """The earliest, the latest, the one with the maximum timestamp, and by time."""
    # The records are from 1970: with a retention they would be deleted within a second.
    topic = create(admin, fresh_name(), configs={"retention.ms": "-1"})
    partition = TopicPartition(topic, 0)
    producer = KafkaProducer(bootstrap_servers=bootstrap, batch_size=0)
    for timestamp_ms in (5000, 9000, 7000):
        producer.send(topic, value=b"v", timestamp_ms=timestamp_ms).get(100)
    producer.close()
    for spec, offset, timestamp_ms in (
        (OffsetSpec.EARLIEST, 0, -1),
        (OffsetSpec.LATEST, 3, -1),
        (OffsetSpec.MAX_TIMESTAMP, 1, 9000),
        (OffsetSpec.EARLIEST_LOCAL, 0, -1),
        (OffsetSpec.LATEST_TIERED, -1, -1),
        (6000, 1, 9000),
        (10000, -1, -1),
    ):
        found = admin.list_partition_offsets({partition: spec})[partition]
        assert (found.offset, found.timestamp) == (offset, timestamp_ms), spec


def test_group_administration(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """A group is listed and described, its offsets are changed and deleted; it is deleted only once it is empty."""
    topic, group = create(admin, fresh_name(), 2), fresh_name("group")
    partitions = [TopicPartition(topic, number) for number in range(2)]
    send(bootstrap, topic, 5)
    options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(topic, group_id=group, **options)
    # kafka-python (3.0) drops a join that it began for new metadata if `poll` runs out of time meanwhile.
    assert consumer.partitions_for_topic(topic) == {0, 1}
    wait_until(lambda: consumer.poll(timeout_ms=200), "the group reads")
    consumer.commit({partition: OffsetAndMetadata(3, "", -1) for partition in partitions})
    described = admin.describe_groups([group])[group]
    assert (described["group_state"], described["protocol_type"]) == ("Stable", "consumer")
    (member,) = described["members"]
    assert member["client_id"].startswith("kafka-python")
    listed = {entry["group_id"]: entry for entry in admin.list_groups()}
    assert listed[group]["protocol_type"] == "consumer"
    assert group in {entry["group_id"] for entry in admin.list_groups(states_filter=["Stable"])}
    assert group not in {entry["group_id"] for entry in admin.list_groups(states_filter=["Empty"])}
    assert "NonEmpty" in str(admin.delete_groups([group]))
    assert "Subscribed" in str(admin.delete_group_offsets(group, partitions))
    consumer.close()
    admin.alter_group_offsets(group, {partitions[0]: OffsetAndMetadata(1, "moved", -1)})
    offsets = admin.list_group_offsets({group: None})[group]
    assert {partition: entry.offset for partition, entry in offsets.items()} == {partitions[0]: 1, partitions[1]: 3}
    assert offsets[partitions[0]].metadata == "moved"
    admin.delete_group_offsets(group, [partitions[1]])
    assert set(admin.list_group_offsets({group: None})[group]) == {partitions[0]}
    admin.delete_groups([group])
    assert group not in {entry["group_id"] for entry in admin.list_groups()}
    assert "NotFound" in str(admin.delete_groups([group]))


def test_deleting_a_topic_deletes_its_offsets(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """Committed offsets of a deleted topic are deleted, so a new topic with that name is read from its start."""
    topic, group = create(admin, fresh_name()), fresh_name("group")
    partition = TopicPartition(topic, 0)
    send(bootstrap, topic, 3)
    admin.alter_group_offsets(group, {partition: OffsetAndMetadata(2, "", -1)})
    assert admin.list_group_offsets({group: None})[group][partition].offset == 2
    admin.delete_topics([topic])
    wait_until(
        lambda: admin.list_group_offsets({group: [partition]})[group][partition].offset == -1, "offsets are gone"
    )


def test_cluster_and_log_directories(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """The cluster is one broker at the address that was used; its log directory has sizes."""
    cluster = admin.describe_cluster()
    (broker,) = cluster["brokers"]
    assert (broker["host"], str(broker["port"])) == tuple(bootstrap.split(":"))
    assert broker.get("broker_id", broker.get("node_id")) == 1 and cluster["controller_id"] == 1
    assert len(cluster["cluster_id"]) == 22
    topic = create(admin, fresh_name(), 2)
    send(bootstrap, topic, 3)
    described = str(admin.describe_log_dirs([topic]))
    assert topic in described
