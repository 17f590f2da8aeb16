"""SyncGroup: versions, and requests that are refused before the group gets them."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.sync_group import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error


def request(**fields):
    return messages.SyncGroupRequest(**{"group_id": "g", "generation_id": 1, **fields})


@pytest.mark.parametrize("version", range(6))
def test_a_member_gets_its_assignment_in_every_version(version):
    ctx = Context()
    generation, (leader,) = ctx.world.stable()
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    answer = ctx.call(handle, version, request(member_id=leader, generation_id=generation, **named))
    assert (error(answer), answer.assignment) == ("NONE", leader.encode())
    assert answer.protocol_name == (None if version < 5 else "range")


@pytest.mark.parametrize("named", [{}, {"protocol_type": "consumer"}, {"protocol_name": "range"}])
def test_version_5_must_name_the_protocol(named):
    ctx = Context()
    ctx.denied.add(("Read", "Group", "g"))
    assert error(ctx.call(handle, 5, request(**named))) == "INCONSISTENT_GROUP_PROTOCOL"


def test_invalid_requests_are_refused_before_the_group_gets_them():
    ctx = Context()
    assert error(ctx.call(handle, 4, request(group_id=""))) == "INVALID_GROUP_ID"
    ctx.denied.add(("Read", "Group", "g"))
    assert error(ctx.call(handle, 4, request())) == "GROUP_AUTHORIZATION_FAILED"
    ctx.denied.clear()
    ctx.groups.error_code = errors.COORDINATOR_LOAD_IN_PROGRESS
    assert error(ctx.call(handle, 4, request())) == "COORDINATOR_LOAD_IN_PROGRESS"
