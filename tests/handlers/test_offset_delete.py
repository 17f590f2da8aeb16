"""OffsetDelete, version 0."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import name
from pykafkad.handlers.offset_delete import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error

Request = messages.OffsetDeleteRequest


def request(topics, group="g"):
    return Request(
        group_id=group,
        topics=[
            Request.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[Request.OffsetDeleteRequestPartition(partition_index=index) for index in partitions],
            )
            for topic, partitions in topics
        ],
    )


def rows(answer):
    return [(row.name, [(p.partition_index, name(p.error_code)) for p in row.partitions]) for row in answer.topics]


def test_each_partition_has_its_own_row():
    ctx = Context()
    ctx.world.commit({("t", 0): 5, ("u", 0): 5})
    ctx.denied.add(("Read", "Topic", "u"))
    answer = ctx.call(handle, 0, request([("missing", [0]), ("t", [0, 7]), ("u", [0])]))
    assert rows(answer) == [
        ("missing", [(0, "UNKNOWN_TOPIC_OR_PARTITION")]),
        ("t", [(7, "UNKNOWN_TOPIC_OR_PARTITION"), (0, "NONE")]),
        ("u", [(0, "TOPIC_AUTHORIZATION_FAILED")]),
    ]
    assert (ctx.world.committed("t", 0), ctx.world.committed("u", 0)) == (None, 5)


def test_an_error_of_the_group_stands_alone():
    ctx = Context()
    answer = ctx.call(handle, 0, request([("missing", [0]), ("t", [0])]))
    assert (error(answer), rows(answer)) == ("GROUP_ID_NOT_FOUND", [])
    assert error(ctx.call(handle, 0, request([("missing", [0])]))) == "GROUP_ID_NOT_FOUND"
    assert error(ctx.call(handle, 0, request([], group=""))) == "INVALID_GROUP_ID"
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert error(ctx.call(handle, 0, request([("t", [0])]))) == "NOT_COORDINATOR"
    ctx.denied.add(("Delete", "Group", "g"))
    assert error(ctx.call(handle, 0, request([("t", [0])]))) == "GROUP_AUTHORIZATION_FAILED"


def test_a_topic_that_does_not_exist_is_answered_once():
    ctx = Context()
    ctx.world.commit({("t", 0): 5})
    answer = ctx.call(handle, 0, request([("missing", [0]), ("t", [0]), ("missing", [1])]))
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert rows(answer) == [("missing", [(0, unknown), (1, unknown)]), ("t", [(0, "NONE")])]
