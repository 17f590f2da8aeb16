"""The records that the coordinator writes to `__consumer_offsets`, read from the topic one by one."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.groups import Group, join_fields, protocols
from compat_tests.scenarios.offsets import commits, deletions, subscription
from compat_tests.scenarios.registry import scenario
from pykafkad.wire import batch, messages, records

TOPIC = "__consumer_offsets"
PARTITIONS = 50
TYPES = {1: "OffsetCommit", 2: "GroupMetadata"}
STREAMS_TYPES = {
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}


def java_partition(group: str) -> int:
    """The partition where Kafka stores a group, for ASCII names."""
    value = 0
    for unit in group.encode("ascii"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return abs(value - 0x1_0000_0000 if value >> 31 else value) % PARTITIONS


def fetched(broker: Exchange, partition: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Key and value of every record of a partition."""
    offset = 0
    while True:
        row = part("Fetch", "FetchPartition", partition=partition, fetch_offset=offset, partition_max_bytes=10_000_000)
        asked = [part("Fetch", "FetchTopic", topic=TOPIC, partitions=[row])]
        answer = broker.quietly("Fetch", 12, topics=asked, max_wait_ms=0, min_bytes=0, max_bytes=10_000_000)
        (row,) = answer.responses[0].partitions
        assert row.error_code == 0, answer
        position = 0
        view = memoryview(row.records or b"")
        while position < len(view):
            header = batch.parse_header(view[position:])
            for record in records.iterate_records(view[position : position + header.size_bytes], header):
                yield record.key, record.value
            position += header.size_bytes
            offset = header.base_offset + header.last_offset_delta + 1
        if offset >= row.high_watermark:
            return


def record_stored(broker: Exchange, group: str, types: dict[int, str] = TYPES) -> None:
    """Record every stored record of a group, in order."""
    for key, value in fetched(broker, java_partition(group)):
        name = types.get(struct.unpack_from(">h", key)[0])
        if name is None:
            continue
        typed_key = messages.decode(getattr(messages, f"{name}Key"), 0, key[2:])
        if getattr(typed_key, "group", None) != group and getattr(typed_key, "group_id", None) != group:
            continue
        broker.record(f"{name} key", typed_key, 0)
        if value is None:
            broker.record(name, "tombstone")
        else:
            version = struct.unpack_from(">h", value)[0]
            typed = messages.decode(getattr(messages, f"{name}Value"), version, value[2:])
            if getattr(typed, "metadata_hash", 0):
                typed.metadata_hash = 1  # It follows from the ids of topics, which the broker has drawn.
            broker.record(f"{name} value v{version}", typed, version)


@scenario
def life_of_a_group(broker: Exchange) -> None:
    """The records of a group's life: a first member's joins, its generations, a static member's return, its
    deletion.
    """
    group = Group(broker)
    member = group.alone(protocols=protocols(("range", subscription("t")), "other"))
    broker.quietly(
        "LeaveGroup", 5, group_id=group.name, members=[part("LeaveGroup", "MemberIdentity", member_id=member)]
    )
    group.until_state("Empty")
    group.alone(group_instance_id="i", session_timeout_ms=20_000)
    broker.quietly("JoinGroup", 9, **join_fields(group.name, group_instance_id="i", session_timeout_ms=30_000))
    broker.quietly(
        "LeaveGroup", 5, group_id=group.name, members=[part("LeaveGroup", "MemberIdentity", group_instance_id="i")]
    )
    group.until_state("Empty")
    broker.quietly("DeleteGroups", 2, groups_names=[group.name])
    record_stored(broker, group.name)


@scenario
def a_group_of_two(broker: Exchange) -> None:
    """A group of two members with their assignments."""
    group = Group(broker)
    group.pair(protocols=protocols(("range", b"same")))
    record_stored(broker, group.name)


@scenario
def committed_offsets(broker: Exchange) -> None:
    """Version 4 with the topic's id; version 1 if an old client sets a retention; tombstones for deleted offsets."""
    topic, other = broker.topic("topic", 2), broker.topic("other", 1)
    topic_id, other_id = broker.topic_id(topic), broker.topic_id(other)
    group = Group(broker)
    member = group.alone(protocols=protocols(("range", subscription(topic))))
    known = {"group_id": group.name, "member_id": member, "generation_id_or_member_epoch": group.generation}
    rows = [
        commits(topic, topic_id, (0, 5), (1, 6), committed_metadata="note", committed_leader_epoch=3),
        commits(other, other_id, (0, 7)),
    ]
    broker.quietly("OffsetCommit", 9, topics=rows, **known)
    broker.quietly("OffsetCommit", 10, topics=rows[:1], **known)
    broker.quietly("OffsetCommit", 2, topics=rows[1:], retention_time_ms=1_000, **known)
    broker.quietly("OffsetDelete", 0, group_id=group.name, topics=[deletions(other, 0)])
    simple = broker.name("simple")
    broker.coordinator(simple)
    # Only one offset is deleted, because the order of several is arbitrary.
    broker.quietly("OffsetCommit", 5, group_id=simple, topics=rows[1:])
    broker.quietly("DeleteGroups", 2, groups_names=[simple])
    for name in (group.name, simple):
        record_stored(broker, name)
