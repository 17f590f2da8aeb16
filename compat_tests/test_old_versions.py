"""The versions of APIs that Kafka 4.0 removed, beside brokers of the releases that still answered them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.brokers.release_sides import Sides
from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.transcripts import assert_same_answers
from compat_tests.test_old_formats import both as both  # a fixture
from pykafkad.wire.batch import build_batch

TOPIC, BROKER = 2, 4
BROKER_ID = "1"
LITERAL, MATCH = 3, 1
READ, ALLOW = 3, 3
DEBUGGER = -2


def offsets_before_a_time(broker: Exchange) -> None:
    """ListOffsets 0."""
    # The records are old, and retention is looked after each second.
    topic = broker.topic(segment_bytes="1048576", retention_ms="-1")
    earlier, later = 0, int(time.time() * 1000) + 3_600_000
    for _ in range(2):
        for replica in (-1, DEBUGGER):
            for when in (-1, -2, -3, earlier, later):
                for most in (0, 1, 5):
                    row = part(
                        "ListOffsets", "ListOffsetsPartition", partition_index=0, timestamp=when, max_num_offsets=most
                    )
                    rows = [part("ListOffsets", "ListOffsetsTopic", name=topic, partitions=[row])]
                    note = "later" if when == later else str(when)
                    broker.ask("ListOffsets", 0, note=f"{note} {most} {replica}", replica_id=replica, topics=rows)
        broker.produce(topic, 0, bytes(build_batch([(b"k", b"v")] * 3)))
    rows = [part("ListOffsets", "ListOffsetsPartition", partition_index=7, timestamp=-1)]
    broker.ask("ListOffsets", 0, topics=[part("ListOffsets", "ListOffsetsTopic", name=topic, partitions=rows)])


def offsets_of_groups(broker: Exchange) -> None:
    """OffsetCommit 0 and 1, OffsetFetch 0."""
    topic, group = broker.topic(), broker.name("group")
    broker.coordinator(group)
    for name in (topic, broker.name("absent")):
        row = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=5)
        row.committed_metadata = "m"
        rows = [part("OffsetCommit", "OffsetCommitRequestTopic", name=name, partitions=[row])]
        for version in (0, 1):
            broker.ask("OffsetCommit", version, group_id=group, topics=rows)
        broker.ask("OffsetCommit", 1, note="member", group_id=group, member_id="m", topics=rows)
        rows = [part("OffsetFetch", "OffsetFetchRequestTopic", name=name, partition_indexes=[0])]
        for version in (0, 1):
            broker.ask("OffsetFetch", version, group_id=group, topics=rows)


def topics(broker: Exchange) -> None:
    """CreateTopics 0 and 1, DeleteTopics 0."""
    for version in (0, 1):
        name = broker.name(f"made{version}")
        row = part("CreateTopics", "CreatableTopic", name=name, num_partitions=1, replication_factor=1)
        for _ in range(2):
            broker.ask("CreateTopics", version, topics=[row], timeout_ms=30_000)
        for _ in range(2):
            broker.ask("DeleteTopics", 0, topic_names=[name], timeout_ms=30_000)
    row = part("CreateTopics", "CreatableTopic", name=broker.name("tried"), num_partitions=1, replication_factor=1)
    broker.ask("CreateTopics", 1, topics=[row], timeout_ms=30_000, validate_only=True)


def leader_epochs(broker: Exchange) -> None:
    """OffsetForLeaderEpoch 0 and 1."""
    topic = broker.topic()
    broker.produce(topic, 0, bytes(build_batch([(b"k", b"v")])))
    for version in (0, 1):
        for partition, epoch in ((0, 0), (0, 9), (3, 0)):
            row = part("OffsetForLeaderEpoch", "OffsetForLeaderPartition", partition=partition, leader_epoch=epoch)
            rows = [part("OffsetForLeaderEpoch", "OffsetForLeaderTopic", topic=topic, partitions=[row])]
            broker.ask("OffsetForLeaderEpoch", version, note=f"{partition} {epoch}", topics=rows)


def settings(broker: Exchange) -> None:
    """DescribeConfigs 0."""
    topic = broker.topic(retention_ms="5000")
    for kind, name, keys in (
        (TOPIC, topic, ["retention.ms", "segment.bytes"]),
        (BROKER, BROKER_ID, ["num.io.threads"]),
    ):
        fields = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        broker.ask("DescribeConfigs", 0, resources=[part("DescribeConfigs", "DescribeConfigsResource", **fields)])


def acls_and_tokens_without_security(broker: Exchange) -> None:
    """DescribeAcls, CreateAcls, DeleteAcls 0; delegation tokens 0."""
    names = {"resource_type_filter": TOPIC, "resource_name_filter": "t", "principal_filter": None, "host_filter": None}
    broker.ask("DescribeAcls", 0, operation=READ, permission_type=ALLOW, **names)
    acl = {"resource_type": TOPIC, "resource_name": "t", "principal": "User:a", "host": "*"}
    broker.ask("CreateAcls", 0, creations=[part("CreateAcls", "AclCreation", operation=3, permission_type=3, **acl)])
    wanted = part("DeleteAcls", "DeleteAclsFilter", operation=READ, permission_type=ALLOW, **names)
    broker.ask("DeleteAcls", 0, filters=[wanted])


def directories(broker: Exchange) -> None:
    """AlterReplicaLogDirs 0, DescribeLogDirs 0."""
    topic = broker.topic()
    row = part("AlterReplicaLogDirs", "AlterReplicaLogDirTopic", name=topic, partitions=[0])
    directory = part("AlterReplicaLogDirs", "AlterReplicaLogDir", path="/no/such", topics=[row])
    broker.ask("AlterReplicaLogDirs", 0, dirs=[directory])
    wanted = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=topic, partitions=[0])]
    answer = broker.quietly("DescribeLogDirs", 0, topics=wanted)
    found = [
        [(row.name, [each.partition_size for each in row.partitions]) for row in one.topics if row.partitions]
        for one in answer.results
    ]
    broker.record("DescribeLogDirs v0", str(found).replace(broker.prefix, ""))


def markers(broker: Exchange) -> None:
    """WriteTxnMarkers 0."""
    topic = broker.topic()
    row = part("WriteTxnMarkers", "WritableTxnMarkerTopic", name=topic, partition_indexes=[0, 5])
    marker = part("WriteTxnMarkers", "WritableTxnMarker", producer_id=77, transaction_result=True, topics=[row])
    broker.ask("WriteTxnMarkers", 0, markers=[marker])


ROUNDS = (
    offsets_before_a_time,
    offsets_of_groups,
    topics,
    leader_epochs,
    settings,
    acls_and_tokens_without_security,
    directories,
    markers,
)


@pytest.mark.parametrize("round_of", ROUNDS)
def test_removed_versions(both: Sides, round_of: Any) -> None:
    """Every field of the answers."""
    assert_same_answers([each.bootstrap for each in both], round_of)
