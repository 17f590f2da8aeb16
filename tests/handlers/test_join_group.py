"""JoinGroup: what depends on the version, and what is refused before the group is asked."""

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
        parked, part = ctx.groups.delayed
        part.deliver(ctx.world.replies[parked])
    answer = ctx.world.replies[token]
    assert (error(answer), answer.protocol_name, answer.generation_id) == ("NONE", "range", 1)


@pytest.mark.parametrize("version", range(10))
def test_errors_name_no_protocol_as_each_version_says_it(version):
    """Empty before version 7, null from there on."""
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
def test_what_is_refused_before_the_group_is_asked(fields, expected):
    ctx = Context()
    answer = ctx.call(handle, 9, request(member_id="m", **fields))
    assert (error(answer), answer.member_id, answer.protocol_name) == (expected, "m", None)
    assert ctx.world.shard.groups == {}


def test_without_the_right_nobody_is_named():
    ctx = Context()
    ctx.denied.add(("Read", "Group", "g"))
    answer = ctx.call(handle, 5, request(member_id="m"))
    assert (error(answer), answer.member_id, answer.protocol_name) == ("GROUP_AUTHORIZATION_FAILED", "", "")


def test_a_group_that_is_coordinated_elsewhere():
    ctx = Context()
    ctx.groups.error_code = errors.NOT_COORDINATOR
    assert error(ctx.call(handle, 9, request())) == "NOT_COORDINATOR"


@pytest.mark.parametrize(
    ("length", "expected"), [(32_767, "UNKNOWN_SERVER_ERROR"), (32_731, "UNKNOWN_SERVER_ERROR"), (32_730, "NONE")]
)
def test_an_id_that_no_answer_could_carry_is_not_given_out(world, peer, length, expected):
    """A static member's id begins with that of its instance."""
    peer.ask(messages.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    answer = peer.ask(request(group_instance_id="x" * length), 9)
    if answer is NOTHING:
        world.advance(10)
        answer = peer.answers[-1]
    assert (error(answer), bool(answer.member_id)) == (expected, expected == "NONE")
    assert peer.closed is None


def test_a_protocol_without_a_name_is_none(world, peer):
    """What the group settled on is null from version 7 on if its name is empty."""
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
