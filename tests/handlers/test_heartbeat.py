"""Heartbeat: versions, and what is refused before the group is asked."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.heartbeat import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error


def request(**fields):
    return messages.HeartbeatRequest(**{"group_id": "g", "generation_id": 1, **fields})


@pytest.mark.parametrize("version", range(5))
def test_a_member_is_heard_in_every_version(version):
    ctx = Context()
    _generation, (leader,) = ctx.world.stable()
    assert error(ctx.call(handle, version, request(member_id=leader))) == "NONE"
    assert error(ctx.call(handle, version, request(member_id="stranger"))) == "UNKNOWN_MEMBER_ID"


def test_while_the_group_is_loaded_the_member_has_done_its_part():
    ctx = Context()
    ctx.groups.error_code = errors.COORDINATOR_LOAD_IN_PROGRESS
    assert error(ctx.call(handle, 4, request())) == "NONE"
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert error(ctx.call(handle, 4, request())) == "NOT_COORDINATOR"


def test_what_is_refused_before_the_group_is_asked():
    ctx = Context()
    assert error(ctx.call(handle, 4, request(group_id=""))) == "INVALID_GROUP_ID"
    ctx.denied.add(("Read", "Group", "g"))
    assert error(ctx.call(handle, 4, request())) == "GROUP_AUTHORIZATION_FAILED"
