"""MirrorMaker 2 as a process copies topics with their settings and translates committed offsets.

It keeps three kinds of internal topics. Source and target are one broker under two names, which MirrorMaker does not
know.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from compat_tests.samples import wait_until

FreshName = Callable[..., str]
RECORDS = 300
FIRST_TIMESTAMP = 1_700_000_000_000


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def properties_of(source: str, target: str, bootstrap: str, **settings: str) -> dict[str, str]:
    """MirrorMaker's properties for copying from the first name to the second."""
    copied = {
        "clusters": f"{source}, {target}",
        f"{source}->{target}.enabled": "true",
        "emit.heartbeats.enabled": "false",
    }
    # Scanning every class would take longer than everything else. The remaining offsets are reported at the next flush.
    copied |= dict.fromkeys(("plugin.discovery", f"{target}.plugin.discovery"), "service_load")
    copied[f"{target}.offset.flush.interval.ms"] = "500"
    copied |= {f"{name}.bootstrap.servers": bootstrap for name in (source, target)}
    kinds = ("checkpoints.topic", "offset-syncs.topic", "offset.storage", "status.storage", "config.storage")
    return copied | {"replication.factor": "1", **{f"{kind}.replication.factor": "1" for kind in kinds}} | settings


def test_topics_settings_and_groups_are_mirrored(
    bootstrap: str, admin: AdminClient, start_java: Callable[..., subprocess.Popen], fresh_name: FreshName
) -> None:
    """Every record arrives with key, headers and time in its partition, and a group's offset on the copy.

    MirrorMaker's own topics are the known ones.
    """
    topic, group, source, target = fresh_name(), fresh_name("group"), fresh_name("from"), fresh_name("to")
    copy = f"{source}.{topic}"
    settings = {"max.message.bytes": "123456", "cleanup.policy": "compact", "retention.ms": "-1"}
    admin.create_topics([NewTopic(topic, 3, 1, config=settings)])[topic].result(100)
    written = {(number % 3, number // 3): f"value {number}".encode() for number in range(RECORDS)}
    producer = Producer({"bootstrap.servers": bootstrap})
    for (partition, offset), value in written.items():
        producer.produce(
            topic, value, f"key {offset}", partition, headers={"at": str(offset)}, timestamp=FIRST_TIMESTAMP + offset
        )
    producer.flush()
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    wait_until(lambda: commit(reader, TopicPartition(topic, 1, RECORDS // 3)), "the group's offset is committed")
    reader.close()
    properties = properties_of(
        source, target, bootstrap, topics=topic, groups=group, offset_lag_max="0", sync_group_offsets_enabled="true",
        sync_group_offsets_interval_seconds="1", emit_checkpoints_interval_seconds="1",
        refresh_groups_interval_seconds="1",
    )  # fmt: skip
    process = start_java("org.apache.kafka.connect.mirror.MirrorMaker", **properties)
    copied = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": fresh_name("reader"),
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    wait_until(lambda: copy in admin.list_topics().topics, "the copy is made")
    copied.subscribe([copy])
    found: dict[tuple[int, int], bytes] = {}

    def found_all() -> bool:
        for message in copied.consume(1000, 0.2):
            assert message.error() is None, message.error()
            place = (message.partition(), message.offset())
            assert place not in found, place
            found[place] = message.value()
            told = (message.key(), message.headers(), message.timestamp()[1])
            assert told == (f"key {place[1]}".encode(), [("at", str(place[1]).encode())], FIRST_TIMESTAMP + place[1]), (
                place
            )
        return len(found) >= len(written)

    wait_until(found_all, "every record is copied")
    assert found == written
    wait_until(lambda: committed(admin, group, copy, 1) == RECORDS // 3, "the group's offset is translated")
    copied.close()
    (described,) = admin.describe_configs([ConfigResource("topic", copy)]).values()
    assert {name: described.result(100)[name].value for name in settings} == settings
    process.terminate()
    process.wait(100)
    internal = {name for name in admin.list_topics().topics if source in name or target in name} - {copy}
    assert internal == {f"{source}.checkpoints.internal", f"mm2-offset-syncs.{target}.internal"} | {
        f"mm2-{kind}.{source}.internal" for kind in ("configs", "offsets", "status")
    }
    for deleted in admin.delete_topics([topic, copy, *internal]).values():
        deleted.result(100)


def commit(reader: Consumer, offset: TopicPartition) -> bool:
    """Whether the commit succeeded; a new broker first has to create the topic of offsets."""
    try:
        return reader.commit(offsets=[offset], asynchronous=False)[0].error is None
    except KafkaException:
        return False


def committed(admin: AdminClient, group: str, topic: str, partition: int) -> int | None:
    """The group's committed offset in the partition, or None."""
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
    try:
        (answered,) = admin.list_consumer_group_offsets([asked])[group].result(100).topic_partitions
    except KafkaException:
        return None
    return answered.offset if answered.error is None and answered.offset >= 0 else None
