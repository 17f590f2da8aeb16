"""ConsumerGroupDescribe: versions, members, and groups that are not shown."""

from __future__ import annotations

import pytest

from pykafkad.errors import NOT_COORDINATOR
from pykafkad.handlers import table
from pykafkad.handlers.consumer_group_describe import handle
from pykafkad.handlers.consumer_group_heartbeat import handle as heartbeat
from pykafkad.wire import messages
from tests.handlers.group_surroundings import error
from tests.handlers.test_consumer_group_heartbeat import consumer_context, joining


def describe(ctx, version, *group_ids, **fields):
    ctx.row = table.by_key(69)
    return ctx.call(handle, version, messages.ConsumerGroupDescribeRequest(group_ids=list(group_ids), **fields)).groups


def with_member(**fields):
    ctx = consumer_context()
    assert error(ctx.call(heartbeat, 1, joining(instance_id="i", rack_id="r", **fields))) == "NONE"
    return ctx


@pytest.mark.parametrize("version", (0, 1))
def test_every_version_describes_a_member(version):
    (row,) = describe(with_member(), version, "g")
    assert (error(row), row.group_state, row.group_epoch, row.assignment_epoch) == ("NONE", "Stable", 2, 2)
    assert row.assignor_name == "uniform"
    (member,) = row.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 2)
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.member_type) == (["t"], 1 if version else -1)
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.topic_name, each.partitions) for each in assignment.topic_partitions] == [("t", [0, 1])]


def test_groups_that_are_not_shown():
    ctx = with_member()
    ctx.world.commit({("t", 0): 1}, group="classic")
    rows = describe(ctx, 1, "none", "classic", "")
    assert [(error(row), row.error_message) for row in rows] == [
        ("GROUP_ID_NOT_FOUND", "Group none not found."),
        ("GROUP_ID_NOT_FOUND", "Group classic is not a consumer group."),
        ("INVALID_GROUP_ID", None),
    ]
    ctx.groups.error_code = NOT_COORDINATOR
    assert [error(row) for row in describe(ctx, 1, "g")] == ["NOT_COORDINATOR"]


def test_topics_that_the_caller_may_not_see():
    ctx = with_member()
    ctx.denied.add(("Describe", "Topic", "t"))
    (row,) = describe(ctx, 1, "g")
    assert (error(row), row.members) == ("TOPIC_AUTHORIZATION_FAILED", [])
    ctx.denied.add(("Describe", "Group", "g"))
    assert [error(row) for row in describe(ctx, 1, "g")] == ["GROUP_AUTHORIZATION_FAILED"]


def test_operations_of_the_caller():
    (row,) = describe(with_member(), 1, "g", include_authorized_operations=True)
    assert row.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    (row,) = describe(with_member(), 1, "g")
    assert row.authorized_operations == -(2**31)


def test_the_protocol_can_be_switched_off():
    ctx = with_member()
    ctx.metadata.features["group.version"] = 0
    assert [error(row) for row in describe(ctx, 1, "g", "h")] == ["UNSUPPORTED_VERSION"] * 2
