"""OffsetFetch: one group before version 8, several from version 8; names and ids; the place of errors in each
version."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.coordinator import events
from pykafkad.errors import name
from pykafkad.handlers import offset_fetch
from pykafkad.handlers.offset_fetch import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import IDS, Context, add_topic, error, round_trip
from tests.metadata.context import finished

Request = messages.OffsetFetchRequest


def context():
    ctx = Context()
    ctx.world.commit({("t", 0): 5, ("u", 1): 6}, metadata="note")
    return ctx


def request(version, topics, group="g"):
    if version < 8:
        asked = (
            None
            if topics is None
            else [Request.OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in topics]
        )
        return Request(group_id=group, topics=asked)
    asked = None
    if topics is not None:
        asked = [
            Request.OffsetFetchRequestTopics(
                partition_indexes=p, **({"topic_id": IDS.get(t, b"?" * 16)} if version >= 10 else {"name": t})
            )
            for t, p in topics
        ]
    return Request(groups=[Request.OffsetFetchRequestGroup(group_id=group, topics=asked)])


def offsets(answer, version):
    group = answer if version < 8 else answer.groups[0]
    names = {topic_id: topic for topic, topic_id in IDS.items()}
    return {
        (names.get(row.topic_id, "?") if version >= 10 else row.name, p.partition_index): (
            p.committed_offset,
            p.metadata,
            name(p.error_code),
        )
        for row in group.topics
        for p in row.partitions
    }


@pytest.mark.parametrize("version", range(1, 11))
def test_an_offset_that_was_never_committed_is_minus_one(version):
    ctx = context()
    ctx.world.shard.offsets.get("g", "t", 0).topic_id = IDS["t"]
    answer = ctx.call(handle, version, request(version, [("t", [0, 1])]))
    assert offsets(answer, version) == {("t", 0): (5, "note", "NONE"), ("t", 1): (-1, "", "NONE")}


@pytest.mark.parametrize("count", [0, 1, 3, 4, 6, 7])
def test_each_of_many_partitions_is_answered_once(monkeypatch, count):
    monkeypatch.setattr(offset_fetch, "AT_ONCE", 3)
    answer = context().call(handle, 8, request(8, [("t", list(range(count)))]))
    (row,) = answer.groups[0].topics
    assert [each.partition_index for each in row.partitions] == list(range(count))


def begun(ctx, version, steps):
    """A request for 1 200 offsets of `t`, all committed, after some steps; the next ones are left to do."""
    for start in range(0, 1_200, 400):
        assert set(ctx.world.commit({("t", partition): 5 for partition in range(start, start + 400)})) == {"NONE"}
    ctx.version = version
    ctx.token = ctx.world.token()
    handling = handle(ctx, round_trip(request(version, [("t", list(range(1_200)))]), version))
    for _ in range(steps):
        next(handling)
    return handling


@pytest.mark.parametrize("version", range(1, 11))
@pytest.mark.parametrize("steps", [2, 3, 4])
def test_nobody_sees_half_of_a_group_that_is_deleted_meanwhile(version, steps):
    ctx = context()
    handling = begun(ctx, version, steps)
    ctx.world.send(events.DeleteGroup(ctx.world.token(), "g"))
    assert ctx.world.shard.offsets.count("g") == 1_201, "the deletion has begun, and removes all at its end"
    answer = round_trip(finished(handling), version)
    if version == 1:
        assert len(offsets(answer, 1)) == 1_200
        assert set(offsets(answer, 1).values()) == {(-1, "", "COORDINATOR_LOAD_IN_PROGRESS")}
    else:
        group = answer if version < 8 else answer.groups[0]
        assert (error(group), group.topics) == ("COORDINATOR_LOAD_IN_PROGRESS", [])


def test_a_coordinator_that_moves_meanwhile_is_read_no_more():
    ctx = context()
    handling = begun(ctx, 8, 3)
    ctx.groups.error_code = errors.NOT_COORDINATOR
    (group,) = finished(handling).groups
    assert (error(group), group.topics) == ("NOT_COORDINATOR", [])


@pytest.mark.parametrize("version", range(2, 11))
def test_null_topics_mean_all_committed_offsets(version):
    ctx = context()
    assert offsets(ctx.call(handle, version, request(version, None)), version) == {
        ("t", 0): (5, "note", "NONE"),
        ("u", 1): (6, "note", "NONE"),
    }
    ctx.denied.add(("Describe", "Topic", "u"))
    assert set(offsets(ctx.call(handle, version, request(version, None)), version)) == {("t", 0)}


def test_the_leader_epoch_comes_from_version_5():
    ctx = context()
    for version in (4, 5, 8):
        group = ctx.call(handle, version, request(version, [("t", [0])]))
        group = group if version < 8 else group.groups[0]
        assert group.topics[0].partitions[0].committed_leader_epoch == (7 if version >= 5 else -1)


def test_one_request_may_name_several_groups():
    ctx = context()
    ctx.denied.add(("Describe", "Group", "secret"))
    groups = [Request.OffsetFetchRequestGroup(group_id=each, topics=None) for each in ("g", "unknown", "secret")]
    answer = ctx.call(handle, 8, Request(groups=groups))
    assert [(group.group_id, len(group.topics), error(group)) for group in answer.groups] == [
        ("g", 2, "NONE"),
        ("unknown", 0, "NONE"),
        ("secret", 0, "GROUP_AUTHORIZATION_FAILED"),
    ]


@pytest.mark.parametrize("version", range(1, 11))
def test_an_error_of_the_group_stands_where_the_version_has_a_place_for_it(version):
    ctx = context()
    ctx.groups.error_code = errors.NOT_COORDINATOR
    answer = ctx.call(handle, version, request(version, [("t", [0])]))
    if version == 1:
        assert offsets(answer, version) == {("t", 0): (-1, "", "NOT_COORDINATOR")}
    else:
        group = answer if version < 8 else answer.groups[0]
        assert (error(group), group.topics) == ("NOT_COORDINATOR", [])


def test_topics_without_permission_and_unknown_ids_have_errors():
    ctx = context()
    ctx.denied.add(("Describe", "Topic", "u"))
    answer = ctx.call(handle, 10, request(10, [("u", [1]), ("missing", [0]), ("t", [0])]))
    assert offsets(answer, 10)["u", 1] == (-1, "", "TOPIC_AUTHORIZATION_FAILED")
    assert offsets(answer, 10)["?", 0] == (-1, "", "UNKNOWN_TOPIC_ID")


def test_all_offsets_by_id_leave_out_deleted_topics():
    ctx = context()
    ctx.world.commit({("gone", 0): 1})
    assert ("gone", 0) in offsets(ctx.call(handle, 9, request(9, None)), 9)
    assert set(offsets(ctx.call(handle, 10, request(10, None)), 10)) == {("t", 0), ("u", 1)}
    add_topic(ctx.metadata, "gone", b"g" * 16, 1)
    assert len(ctx.call(handle, 10, request(10, None)).groups[0].topics) == 3
