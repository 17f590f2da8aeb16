"""OffsetCommit: topics by name and by id, and refused rows beside committed ones."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import name
from pykafkad.handlers.offset_commit import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import IDS, Context

Topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic
Partition = messages.OffsetCommitRequest.OffsetCommitRequestPartition


def request(version, topics, **fields):
    rows = []
    for topic, partitions in topics:
        named = {"topic_id": IDS.get(topic, b"?" * 16)} if version >= 10 else {"name": topic}
        rows.append(
            Topic(partitions=[Partition(partition_index=index, committed_offset=5) for index in partitions], **named)
        )
    return messages.OffsetCommitRequest(**{"group_id": "g", "topics": rows, **fields})


def rows(answer, version):
    names = {topic_id: topic for topic, topic_id in IDS.items()}
    return [
        (
            names.get(row.topic_id, "?") if version >= 10 else row.name,
            [(p.partition_index, name(p.error_code)) for p in row.partitions],
        )
        for row in answer.topics
    ]


@pytest.mark.parametrize("version", range(2, 11))
def test_an_offset_is_committed_with_its_topics_id_in_every_version(version):
    ctx = Context()
    answer = ctx.call(handle, version, request(version, [("t", [0, 1])]))
    assert rows(answer, version) == [("t", [(0, "NONE"), (1, "NONE")])]
    assert ctx.world.shard.offsets.get("g", "t", 1).topic_id == IDS["t"]


@pytest.mark.parametrize("version", [9, 10])
def test_refused_rows_do_not_fail_the_others(version):
    ctx = Context()
    ctx.denied.add(("Read", "Topic", "u"))
    answer = ctx.call(handle, version, request(version, [("missing", [0]), ("t", [0, 7]), ("u", [0])]))
    unknown = "UNKNOWN_TOPIC_ID" if version >= 10 else "UNKNOWN_TOPIC_OR_PARTITION"
    assert rows(answer, version) == [
        ("?" if version >= 10 else "missing", [(0, unknown)]),
        ("t", [(7, "UNKNOWN_TOPIC_OR_PARTITION"), (0, "NONE")]),
        ("u", [(0, "TOPIC_AUTHORIZATION_FAILED")]),
    ]
    assert ctx.world.committed("t", 0) == 5


@pytest.mark.parametrize("version", [8, 9])
def test_an_error_of_the_group_stands_in_every_row(version):
    ctx = Context()
    answer = ctx.call(
        handle,
        version,
        request(version, [("t", [0]), ("missing", [0])], generation_id_or_member_epoch=3, member_id="m"),
    )
    expected = "GROUP_ID_NOT_FOUND" if version >= 9 else "ILLEGAL_GENERATION"
    assert sorted(rows(answer, version)) == [("missing", [(0, "UNKNOWN_TOPIC_OR_PARTITION")]), ("t", [(0, expected)])]


def test_without_valid_rows_the_group_gets_no_request():
    ctx = Context()
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert rows(ctx.call(handle, 9, request(9, [("missing", [0])])), 9) == [
        ("missing", [(0, "UNKNOWN_TOPIC_OR_PARTITION")])
    ]
    assert ctx.call(handle, 9, request(9, [])).topics == []


def test_invalid_requests_are_refused_before_the_group_gets_them():
    ctx = Context()
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert rows(ctx.call(handle, 9, request(9, [("t", [0, 9])])), 9) == [
        ("t", [(9, "UNKNOWN_TOPIC_OR_PARTITION"), (0, "NOT_COORDINATOR")])
    ]
    ctx.denied.add(("Read", "Group", "g"))
    assert rows(ctx.call(handle, 9, request(9, [("t", [0]), ("missing", [1])])), 9) == [
        ("t", [(0, "GROUP_AUTHORIZATION_FAILED")]),
        ("missing", [(1, "GROUP_AUTHORIZATION_FAILED")]),
    ]


def test_the_empty_group_id_is_valid_as_in_kafka():
    ctx = Context()
    assert rows(ctx.call(handle, 9, request(9, [("t", [0])], group_id="")), 9) == [("t", [(0, "NONE")])]
    assert ctx.world.committed("t", 0, group="") == 5


def test_a_retention_time_beyond_the_largest_timestamp_is_unlimited(world, peer):
    """Versions 2 to 4 may name any retention time; its end must fit into the stored record."""
    world.create_topic("t")
    peer.ask(messages.FindCoordinatorRequest(key="g"), 1)
    answer = peer.ask(request(2, [("t", [0])], retention_time_ms=2**63 - 1, generation_id_or_member_epoch=-1), 2)
    assert [row.error_code for row in answer.topics[0].partitions] == [errors.NONE]


@pytest.mark.parametrize("version", [9, 10])
def test_a_topic_that_does_not_exist_is_answered_once(version):
    ctx = Context()
    answer = ctx.call(handle, version, request(version, [("missing", [0]), ("t", [0]), ("missing", [0])]))
    unknown = "UNKNOWN_TOPIC_ID" if version >= 10 else "UNKNOWN_TOPIC_OR_PARTITION"
    assert rows(answer, version) == [
        ("?" if version >= 10 else "missing", [(0, unknown), (0, unknown)]),
        ("t", [(0, "NONE")]),
    ]
