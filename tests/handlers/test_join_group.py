"""JoinGroup: differences between versions, and requests that are refused before the group gets them."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.join_group import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error
from tests.simulation.world import NOTHING


def request(**fields):
    defaults = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m")],
    }
    return messages.JoinGroupRequest(**{**defaults, **fields})


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_in_every_version(version):
    ctx = Context(group_initial_rebalance_delay_ms=0)
    answer = ctx.call(handle, version, request())
    if version >= 4:
        assert error(answer) == "MEMBER_ID_REQUIRED" and answer.member_id.startswith("client-")
        answer = ctx.call(handle, version, request(member_id=answer.member_id))
    assert answer is None
    token = ctx.token
    ctx.world.advance(0)
    if version < 7:
        delayed, part = ctx.groups.delayed
        part.deliver(ctx.world.replies[delayed])
    answer = ctx.world.replies[token]
    assert (error(answer), answer.protocol_name, answer.generation_id) == ("NONE", "range", 1)


@pytest.mark.parametrize("version", range(10))
def test_the_absent_protocol_name_is_empty_or_null_by_version(version):
    """Empty before version 7, null from version 7."""
    ctx = Context()
    answer = ctx.call(handle, version, request(member_id="stranger"))
    assert (error(answer), answer.member_id, answer.generation_id, answer.members) == (
        "UNKNOWN_MEMBER_ID",
        "stranger",
        -1,
        [],
    )
    assert answer.protocol_name == ("" if version < 7 else None)


def test_version_0_has_no_rebalance_timeout_and_uses_the_session_timeout():
    ctx = Context()
    ctx.call(handle, 0, request(session_timeout_ms=7_000))
    (member,) = ctx.world.shard.groups["g"].members.values()
    assert member.rebalance_timeout_ms == 7_000


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"group_id": ""}, "INVALID_GROUP_ID"),
        ({"session_timeout_ms": 5_999}, "INVALID_SESSION_TIMEOUT"),
        ({"session_timeout_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT"),
    ],
)
def test_invalid_requests_are_refused_before_the_group_gets_them(fields, expected):
    ctx = Context()
    answer = ctx.call(handle, 9, request(member_id="m", **fields))
    assert (error(answer), answer.member_id, answer.protocol_name) == (expected, "m", None)
    assert ctx.world.shard.groups == {}


def test_an_authorization_error_has_no_member_id():
    ctx = Context()
    ctx.denied.add(("Read", "Group", "g"))
    answer = ctx.call(handle, 5, request(member_id="m"))
    assert (error(answer), answer.member_id, answer.protocol_name) == ("GROUP_AUTHORIZATION_FAILED", "", "")


def test_a_group_of_another_coordinator_is_refused():
    ctx = Context()
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert error(ctx.call(handle, 9, request())) == "NOT_COORDINATOR"


@pytest.mark.parametrize(
    ("length", "expected"), [(32_767, "UNKNOWN_SERVER_ERROR"), (32_731, "UNKNOWN_SERVER_ERROR"), (32_730, "NONE")]
)
def test_a_member_id_that_is_too_long_is_not_given_out(world, peer, length, expected):
    """The member id of a static member begins with its instance id."""
    peer.ask(messages.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    answer = peer.ask(request(group_instance_id="x" * length), 9)
    if answer is NOTHING:
        world.advance(10)
        answer = peer.answers[-1]
    assert (error(answer), bool(answer.member_id)) == (expected, expected == "NONE")
    assert peer.closed is None


def test_an_empty_protocol_name_is_null_from_version_7(world, peer):
    """The name is that of the group's protocol."""
    peer.ask(messages.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    answer = peer.ask(
        request(
            group_instance_id="i",
            protocols=[messages.JoinGroupRequest.JoinGroupRequestProtocol(name="", metadata=b"m")],
        ),
        9,
    )
    if answer is NOTHING:
        world.advance(10)
        answer = peer.answers[-1]
    assert (error(answer), answer.protocol_name, answer.protocol_type) == ("NONE", None, "consumer")
