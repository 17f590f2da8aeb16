"""DescribeGroups: states, members, and groups that do not exist."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.describe_groups import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error


def describe(ctx, version, *groups, operations=False):
    request = messages.DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)
    return ctx.call(handle, version, request).groups


@pytest.mark.parametrize("version", range(7))
def test_every_version_describes_a_stable_group(version):
    ctx = Context()
    _, (leader,) = ctx.world.stable(client="app")
    (row,) = describe(ctx, version, "g")
    assert (error(row), row.group_state, row.protocol_type, row.protocol_data) == (
        "NONE",
        "Stable",
        "consumer",
        "range",
    )
    (member,) = row.members
    assert (member.member_id, member.client_id, member.client_host) == (leader, "app", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"topics", leader.encode())


def test_member_metadata_is_shown_only_while_the_group_is_stable():
    ctx = Context()
    ctx.world.stable()
    ctx.world.join(instance="i")
    (row,) = describe(ctx, 5, "g")
    assert (row.group_state, row.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in row.members] == [b"", b""]
    assert row.members[1].group_instance_id == "i"


@pytest.mark.parametrize("version", range(7))
def test_an_unknown_group_is_dead_and_from_version_6_an_error(version):
    """KIP-1043."""
    ctx = Context()
    (row,) = describe(ctx, version, "none")
    assert row.group_state == "Dead"
    assert error(row) == ("GROUP_ID_NOT_FOUND" if version >= 6 else "NONE")
    assert row.error_message == ("Group none not found." if version >= 6 else None)


def test_the_group_of_a_simple_consumer_is_empty_without_a_protocol():
    ctx = Context()
    ctx.world.commit({("t", 0): 1})
    (row,) = describe(ctx, 5, "g")
    assert (row.group_state, row.protocol_type, row.members) == ("Empty", "", [])


def test_authorized_operations_come_on_request():
    ctx = Context()
    ctx.world.commit({("t", 0): 1})
    assert describe(ctx, 5, "g")[0].authorized_operations == -(2**31)
    assert (
        describe(ctx, 5, "g", operations=True)[0].authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    )
    ctx.denied.add(("Delete", "Group", "g"))
    assert describe(ctx, 5, "g", operations=True)[0].authorized_operations == 1 << 3 | 1 << 8 | 1 << 10 | 1 << 11


def test_groups_without_permission_and_groups_of_other_brokers():
    ctx = Context()
    ctx.world.commit({("t", 0): 1})
    ctx.denied.add(("Describe", "Group", "secret"))
    assert [(row.group_id, error(row)) for row in describe(ctx, 5, "g", "secret")] == [
        ("secret", "GROUP_AUTHORIZATION_FAILED"),
        ("g", "NONE"),
    ]
    ctx.groups.error_code = errors.NOT_COORDINATOR
    (row,) = describe(ctx, 6, "g", operations=True)
    assert (error(row), row.group_state, row.authorized_operations) == ("NOT_COORDINATOR", "", -(2**31))
