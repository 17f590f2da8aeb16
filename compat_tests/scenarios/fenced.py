"""Outdated callers: old leader epochs, members that returned under a new id, fetchers older than a codec."""

from __future__ import annotations

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.group_life import join_fields
from compat_tests.scenarios.produce import KEPT
from compat_tests.scenarios.registry import scenario
from pykafkad.wire.batch import build_batch

# Any epoch below the leader's, on a broker whose leaders have never changed; -1 means none.
OLD_EPOCH = -2
ZSTD = 4


@scenario
def leader_epochs(broker: Exchange) -> None:
    """An epoch below the leader's is FENCED_LEADER_EPOCH on its row. Only Fetch takes every negative epoch as none."""
    name = broker.topic("topic", 2, **KEPT)
    topic_id = broker.topic_id(name)
    for version in range(9, 19):
        rows = (row(0, 0, current_leader_epoch=OLD_EPOCH), row(1, 0, current_leader_epoch=0))
        fetch(broker, version, from_topic(name, topic_id, *rows))
    for version in versions("ListOffsets"):
        if version >= 4:
            rows = [
                part(
                    "ListOffsets",
                    "ListOffsetsPartition",
                    partition_index=index,
                    timestamp=-1,
                    current_leader_epoch=epoch,
                )
                for index, epoch in ((0, OLD_EPOCH), (1, 0))
            ]
            topics = [part("ListOffsets", "ListOffsetsTopic", name=name, partitions=rows)]
            broker.ask("ListOffsets", version, replica_id=-1, topics=topics)
    for version in versions("OffsetForLeaderEpoch"):
        rows = [
            part(
                "OffsetForLeaderEpoch",
                "OffsetForLeaderPartition",
                partition=index,
                current_leader_epoch=epoch,
                leader_epoch=0,
            )
            for index, epoch in ((0, OLD_EPOCH), (1, 0))
        ]
        topics = [part("OffsetForLeaderEpoch", "OffsetForLeaderTopic", topic=name, partitions=rows)]
        broker.ask("OffsetForLeaderEpoch", version, replica_id=-1, topics=topics)


@scenario
def commits_of_static_members(broker: Exchange) -> None:
    """The former id of a static member that has returned is FENCED_INSTANCE_ID for every partition (KIP-345)."""
    topic = broker.topic()
    topic_id = broker.topic_id(topic)
    group = broker.name("group")
    broker.coordinator(group)
    static = {"group_instance_id": "one"}
    first = broker.quietly("JoinGroup", 5, **join_fields(group, **static))
    shares = [part("SyncGroup", "SyncGroupRequestAssignment", member_id=first.member_id, assignment=b"all")]
    synced = {
        "group_id": group,
        "generation_id": first.generation_id,
        "member_id": first.member_id,
        "assignments": shares,
        **static,
    }
    assert broker.quietly("SyncGroup", 3, **synced).error_code == 0
    again = broker.quietly("JoinGroup", 5, **join_fields(group, **static))
    assert again.error_code == 0 and again.member_id != first.member_id, again
    rows = [part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=5)]
    topics = [part("OffsetCommit", "OffsetCommitRequestTopic", name=topic, topic_id=topic_id, partitions=rows)]
    for version in versions("OffsetCommit"):
        for note, member, fields in (
            ("its old id", first.member_id, static),
            ("another instance", again.member_id, {"group_instance_id": "two"}),
            ("its new id", again.member_id, static),
            ("without its name", again.member_id, {}),
        ):
            asked = {
                "group_id": group,
                "member_id": member,
                "generation_id_or_member_epoch": again.generation_id,
                "topics": topics,
            }
            broker.ask("OffsetCommit", version, note=note, **asked, **fields)


@scenario
def fetchers_without_zstd(broker: Exchange) -> None:
    """Clients below version 10 cannot read zstd (KIP-110); Kafka 4 sends it to them nevertheless."""
    for kind in ("zstd", "producer"):
        name = broker.topic(kind, compression_type=kind, **KEPT)
        broker.produce(name, 0, bytes(build_batch([(b"k", b"v" * 200)] * 3, codec=ZSTD)))
        for version in range(4, 13):
            fetch(broker, version, from_topic(name, b"", row(0, 0)), note=kind)
