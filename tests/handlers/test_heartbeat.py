"""Heartbeat: versions, and requests that are refused before the group gets them."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.heartbeat import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error


def request(**fields):
    return messages.HeartbeatRequest(**{"group_id": "g", "generation_id": 1, **fields})


@pytest.mark.parametrize("version", range(5))
def test_every_version_keeps_a_member_alive(version):
    ctx = Context()
    _generation, (leader,) = ctx.world.stable()
    assert error(ctx.call(handle, version, request(member_id=leader))) == "NONE"
    assert error(ctx.call(handle, version, request(member_id="stranger"))) == "UNKNOWN_MEMBER_ID"


def test_a_heartbeat_succeeds_while_the_group_is_loaded():
    ctx = Context()
    ctx.groups.error_code = errors.COORDINATOR_LOAD_IN_PROGRESS
    assert error(ctx.call(handle, 4, request())) == "NONE"
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert error(ctx.call(handle, 4, request())) == "NOT_COORDINATOR"


def test_invalid_requests_are_refused_before_the_group_gets_them():
    ctx = Context()
    assert error(ctx.call(handle, 4, request(group_id=""))) == "INVALID_GROUP_ID"
    ctx.denied.add(("Read", "Group", "g"))
    assert error(ctx.call(handle, 4, request())) == "GROUP_AUTHORIZATION_FAILED"
