"""LeaveGroup: one error for one member before version 3, a row for each member from version 3."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.leave_group import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error

Identity = messages.LeaveGroupRequest.MemberIdentity


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_the_error_of_the_member_is_that_of_the_answer(version):
    ctx = Context()
    _, (leader,) = ctx.world.stable()
    answer = ctx.call(handle, version, messages.LeaveGroupRequest(group_id="g", member_id="stranger"))
    assert error(answer) == "UNKNOWN_MEMBER_ID"
    assert error(ctx.call(handle, version, messages.LeaveGroupRequest(group_id="g", member_id=leader))) == "NONE"
    assert ctx.world.state() == "Empty"


@pytest.mark.parametrize("version", range(3, 6))
def test_from_version_3_each_member_has_a_row(version):
    ctx = Context()
    _, (leader,) = ctx.world.stable()
    request = messages.LeaveGroupRequest(
        group_id="g", members=[Identity(member_id=leader), Identity(group_instance_id="i")]
    )
    answer = ctx.call(handle, version, request)
    assert error(answer) == "NONE"
    assert [(row.member_id, row.group_instance_id, error(row)) for row in answer.members] == [
        (leader, None, "NONE"),
        ("", "i", "UNKNOWN_MEMBER_ID"),
    ]


@pytest.mark.parametrize("version", [0, 5])
def test_invalid_requests_are_refused_before_the_group_gets_them(version):
    ctx = Context()
    assert error(ctx.call(handle, version, messages.LeaveGroupRequest())) == "INVALID_GROUP_ID"
    ctx.denied.add(("Read", "Group", "g"))
    assert error(ctx.call(handle, version, messages.LeaveGroupRequest(group_id="g"))) == "GROUP_AUTHORIZATION_FAILED"
    ctx.denied.clear()
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert error(ctx.call(handle, version, messages.LeaveGroupRequest(group_id="g"))) == "NOT_COORDINATOR"
