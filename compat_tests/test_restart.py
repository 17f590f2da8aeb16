"""The data that survives a clean restart and SIGKILL, and the data that retention deletes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from compat_tests.brokers.broker import Broker
from compat_tests.samples import value_of, wait_until

FreshName = Callable[..., str]


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    """An admin client."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def create(admin: KafkaAdminClient, name: str, partitions: int = 1, **configs: str) -> str:
    """Create a topic; underscores in config names stand for dots."""
    renamed = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics({name: {"num_partitions": partitions, "configs": renamed}}, wait_for_metadata=True)
    return name


def ends(bootstrap: str, topic: str) -> tuple[int, int]:
    """Log start and end of partition 0."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    partition = TopicPartition(topic, 0)
    try:
        return consumer.beginning_offsets([partition])[partition], consumer.end_offsets([partition])[partition]
    finally:
        consumer.close()


def modified(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """The settings of a topic that are not defaults."""
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])["topic"][topic]
    return {name: entry["value"] if isinstance(entry, dict) else entry for name, entry in described.items()}


@pytest.mark.parametrize("way", ["restart", "kill"])
def test_everything_is_kept(broker: Broker, fresh_name: FreshName, way: str) -> None:
    """Topics with ids, partitions and configs, records, log starts, groups and offsets are kept; a producer
    continues.
    """
    bootstrap = broker.bootstrap
    topic, gone, group = fresh_name(), fresh_name("gone"), fresh_name("group")
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    create(admin, topic, 3, retention_ms="700000000", max_message_bytes="500000")
    create(admin, gone)
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    for number in range(20):
        producer.send(topic, value=b"%d" % number, partition=0).get(100)
    partition = TopicPartition(topic, 0)
    admin.delete_records({partition: 5})
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    consumer.commit({partition: OffsetAndMetadata(7, "seven", -1)})
    consumer.close()
    admin.delete_topics([gone])
    (before,) = admin.describe_topics([topic])
    cluster = admin.describe_cluster()["cluster_id"]
    admin.close()
    if way == "restart":
        broker.restart()
    else:
        broker.kill()
        broker.start()
    assert broker.bootstrap == bootstrap
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    (after,) = admin.describe_topics([topic])
    assert after["topic_id"] == before["topic_id"] and len(after["partitions"]) == 3
    assert modified(admin, topic) == {"retention.ms": "700000000", "max.message.bytes": "500000"}
    assert gone not in admin.list_topics()
    assert admin.describe_cluster()["cluster_id"] == cluster
    # SIGKILL may come before the new log start is written to its checkpoint.
    start, end = ends(bootstrap, topic)
    assert end == 20 and (start == 5 or way == "kill")
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    committed = consumer.committed(partition, metadata=True)
    assert (committed.offset, committed.metadata) == (7, "seven")
    consumer.close()
    assert producer.send(topic, value=b"next", partition=0).get(200).offset == 20
    producer.close()
    admin.close()


def send(bootstrap: str, topic: str, count: int, size_bytes: int, timestamp_ms: int | None = None) -> None:
    """Send records of that size to partition 0."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, batch_size=0)
    for _ in range(count):
        producer.send(topic, value=value_of(size_bytes), partition=0, timestamp_ms=timestamp_ms).get(100)
    producer.close()


def test_retention_by_time(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """Segments whose newest record is older than `retention.ms` are deleted, the active one too; offsets continue."""
    topic = create(admin, fresh_name(), retention_ms="3600000")
    send(bootstrap, topic, 3, 100, int(time.time() * 1000) - 7_200_000)
    wait_until(lambda: ends(bootstrap, topic) == (3, 3), "old records are gone")
    send(bootstrap, topic, 1, 100)
    assert ends(bootstrap, topic) == (3, 4)


def test_retention_by_size(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """Segments at the start of the log are deleted while the rest is larger than `retention.bytes`."""
    topic = create(admin, fresh_name(), segment_bytes="1048576", retention_bytes="1500000")
    send(bootstrap, topic, 40, 100_000)
    wait_until(lambda: ends(bootstrap, topic)[0] >= 20, "the first segments are gone")
    # One more retention check deletes nothing more.
    time.sleep(1.5)
    start, end = ends(bootstrap, topic)
    assert end == 40 and (start, start % 10) == (20, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    wait_until(lambda: consumer.poll(timeout_ms=200), "what is left is read")
    consumer.close()


def test_a_new_retention_takes_effect(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """A retention setting that is changed later applies at the next check."""
    topic = create(admin, fresh_name())
    send(bootstrap, topic, 2, 100, int(time.time() * 1000) - 7_200_000)
    # A retention check deletes nothing yet.
    time.sleep(1.5)
    assert ends(bootstrap, topic) == (0, 2)
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "3600000"})])
    wait_until(lambda: ends(bootstrap, topic) == (2, 2), "old records are gone")
