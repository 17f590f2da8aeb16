"""SyncGroup, Heartbeat, LeaveGroup, and time-outs."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import record_codec
from tests.coordinator.world import World, error


def completing(count=2, **options):
    """A group whose members have joined and not synced: world, generation, member ids, the leader first."""
    world = World()
    tokens = [world.join(**options) for _ in range(count)]
    world.advance(6)
    answers = sorted((world.answer(token) for token in tokens), key=lambda answer: not answer.members)
    return world, answers[0].generation_id, [answer.member_id for answer in answers]


# SyncGroup.


def test_members_wait_for_the_leader_and_get_their_own_part():
    world, generation, (leader, follower) = completing()
    parked = world.sync(follower, generation)
    assert world.answer(parked) is None
    first = world.sync(leader, generation, {leader: b"one", follower: b"two", "stranger": b"x"})
    answers = [world.answer(first), world.answer(parked)]
    assert [(error(a), a.assignment, a.protocol_type, a.protocol_name) for a in answers] == [
        ("NONE", b"one", "consumer", "range"),
        ("NONE", b"two", "consumer", "range"),
    ]
    assert world.state() == "Stable"


def test_a_member_without_an_assignment_gets_an_empty_one():
    world, generation, (leader, follower) = completing()
    parked = world.sync(follower, generation)
    world.sync(leader, generation, {leader: b"all"})
    assert (error(world.answer(parked)), world.answer(parked).assignment) == ("NONE", b"")


def test_assignments_of_a_follower_are_ignored():
    world, generation, (leader, follower) = completing()
    parked = world.sync(follower, generation, {follower: b"mine", leader: b""})
    assert world.answer(parked) is None and world.state() == "CompletingRebalance"


def test_the_assignment_is_written_before_it_is_sent():
    world, generation, (leader,) = completing(1)
    token = world.token()
    from pykafkad.coordinator.events import SyncGroup
    from pykafkad.effects import Append, Reply
    from pykafkad.wire import messages

    request = messages.SyncGroupRequest(group_id="g", generation_id=generation, member_id=leader)
    effects = world.send(SyncGroup(token, request))
    kinds = [type(effect) for effect in effects if type(effect) in (Append, Reply)]
    assert kinds == [Append, Reply]


def test_a_late_sync_in_a_stable_group_gets_the_current_assignment():
    world = World()
    generation, (_leader, follower) = world.stable(2)
    assert world.answer(world.sync(follower, generation)).assignment == follower.encode()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"member_id": "stranger"}, "UNKNOWN_MEMBER_ID"),
        ({"generation": 99}, "ILLEGAL_GENERATION"),
        ({"instance": "nobody"}, "UNKNOWN_MEMBER_ID"),
        ({"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol_name": "sticky"}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol_type": "consumer", "protocol_name": "range"}, "NONE"),
        ({"group": "other"}, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_a_sync_is_checked(options, expected):
    world = World()
    generation, (leader,) = world.stable()
    options = {"member_id": leader, "generation": generation, **options}
    assert error(world.answer(world.sync(**options))) == expected


def test_a_sync_during_the_join_phase_is_refused():
    world = World()
    generation, (leader,) = world.stable()
    world.join()
    assert error(world.answer(world.sync(leader, generation))) == "REBALANCE_IN_PROGRESS"


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout():
    world, generation, (leader, follower) = completing(rebalance_ms=15_000, session_ms=60_000)
    parked = world.sync(leader, generation, {})
    assert error(world.answer(parked)) == "NONE" and world.state() == "Stable"
    world.advance(15)
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(follower, generation) == "UNKNOWN_MEMBER_ID"
    assert world.heartbeat(leader, generation) == "REBALANCE_IN_PROGRESS"


def test_a_leader_that_never_syncs_is_removed_and_waiting_members_join_again():
    world, generation, (_leader, follower) = completing(rebalance_ms=15_000, session_ms=60_000)
    parked = world.sync(follower, generation)
    world.advance(15)
    assert error(world.answer(parked)) == "REBALANCE_IN_PROGRESS"
    again = world.join(follower)
    assert world.answer(again).leader == follower and world.answer(again).generation_id == generation + 1


def test_when_all_have_synced_nothing_happens_at_the_rebalance_timeout():
    world = World()
    generation, members = world.stable(2, rebalance_ms=15_000, session_ms=60_000)
    assert ("sync", "g") not in world.timers
    world.advance(30)
    assert world.state() == "Stable" and world.heartbeat(members[0], generation) == "NONE"


def test_an_assignment_that_does_not_fit_a_batch_is_refused_and_members_join_again():
    """Kafka answers UNKNOWN_SERVER_ERROR when the group's record is too large for its log."""
    world, generation, (leader, follower) = completing()
    parked = world.sync(follower, generation)
    written = len(world.log)
    first = world.sync(leader, generation, {leader: bytes(1_048_588), follower: b""})
    assert [error(world.answer(each)) for each in (first, parked)] == ["UNKNOWN_SERVER_ERROR"] * 2
    assert world.state() == "PreparingRebalance" and len(world.log) == written


def test_an_interrupted_rebalance_drops_the_assignments_of_the_last_generation():
    world = World()
    _generation, (leader,) = world.stable()
    world.join(leader)
    assert world.state() == "CompletingRebalance"
    world.join()
    assert [member.member_assignment for member in world.shard.describe("g").members] == [b"", b""]


# Heartbeats.


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "NONE"),
        ({"member_id": "stranger"}, "UNKNOWN_MEMBER_ID"),
        ({"generation": 0}, "ILLEGAL_GENERATION"),
        ({"instance": "nobody"}, "UNKNOWN_MEMBER_ID"),
        ({"group": "other"}, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_a_heartbeat_is_checked(options, expected):
    world = World()
    generation, (leader,) = world.stable()
    assert world.heartbeat(**{"member_id": leader, "generation": generation, **options}) == expected


def test_heartbeats_extend_the_session_while_a_member_waits_for_the_assignment():
    world, generation, (leader,) = completing(1, session_ms=10_000)
    for _ in range(5):
        world.advance(6.5)
        assert world.heartbeat(leader, generation) == "NONE"


def test_a_member_without_heartbeats_is_removed_at_its_session_timeout_and_not_before():
    world = World()
    generation, (leader, follower) = world.stable(2, session_ms=10_000)
    for _ in range(9):
        world.advance(1)
        assert world.heartbeat(leader, generation) == "NONE"
    world.advance(0.9)
    assert world.state() == "Stable"
    world.advance(0.2)
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(follower, generation) == "UNKNOWN_MEMBER_ID"


def test_a_heartbeat_sets_no_timer():
    """A stable group sets one timer per session timeout."""
    world = World()
    generation, members = world.stable(3, session_ms=10_000)
    before = world.timer_sets
    for _ in range(100):
        world.advance(0.5)
        for member in members:
            assert world.heartbeat(member, generation) == "NONE"
    assert world.timer_sets - before <= 6


def test_members_with_delayed_requests_need_no_heartbeats():
    world = World()
    generation, (leader, follower) = world.stable(2, session_ms=10_000, rebalance_ms=40_000)
    token = world.join(leader, session_ms=10_000, rebalance_ms=40_000)
    for _ in range(4):
        world.advance(9)
        assert world.heartbeat(follower, generation) == "REBALANCE_IN_PROGRESS"
    world.join(follower, session_ms=10_000, rebalance_ms=40_000)
    assert error(world.answer(token)) == "NONE"
    parked = world.sync(follower, generation + 1)
    for _ in range(3):
        world.advance(9)
        world.heartbeat(leader, generation + 1)
    assert world.answer(parked) is None
    world.sync(leader, generation + 1, {})
    world.advance(9)
    assert world.heartbeat(follower, generation + 1) == "NONE"


def test_when_the_last_member_expires_the_group_is_empty_in_a_new_generation():
    world = World()
    generation, _ = world.stable(session_ms=10_000)
    world.advance(11)
    group = world.shard.groups["g"]
    assert (group.state, group.generation, group.protocol_name, group.leader_id) == (
        "Empty",
        generation + 1,
        None,
        None,
    )
    assert group.protocol_type == "consumer"
    assert world.replayed().groups["g"].generation == generation + 1


def test_the_session_of_a_new_member_begins_when_it_has_joined():
    """Until then it has five minutes, because it cannot send heartbeats without its id."""
    world, _generation, (_leader,) = completing(1, session_ms=10_000)
    world.advance(6.9)
    assert world.state() == "CompletingRebalance"
    world.advance(0.2)
    assert world.state() == "Empty"


def test_a_rebalance_does_not_wait_for_an_expired_member_id():
    world = World()
    generation, (leader,) = world.stable(session_ms=60_000)
    world.join(id_required=True, session_ms=6_000)
    token = world.join(leader, session_ms=60_000)
    world.advance(5.9)
    assert world.answer(token) is None
    world.advance(0.2)
    assert world.answer(token).generation_id == generation + 1


# LeaveGroup.


def test_a_member_that_leaves_makes_the_others_join_again():
    world = World()
    generation, (leader, follower) = world.stable(2)
    assert world.leave(leader) == ["NONE"]
    assert world.heartbeat(follower, generation) == "REBALANCE_IN_PROGRESS"
    token = world.join(follower)
    assert world.answer(token).leader == follower
    assert world.leave(leader) == ["UNKNOWN_MEMBER_ID"]


def test_a_group_is_empty_when_its_last_member_leaves():
    world = World()
    generation, (leader,) = world.stable()
    assert world.leave(leader) == ["NONE"]
    assert (world.state(), world.shard.groups["g"].generation) == ("Empty", generation + 1)


def test_the_join_phase_does_not_wait_for_a_member_that_leaves():
    world = World()
    generation, (leader, follower) = world.stable(2)
    token = world.join(leader)
    assert world.answer(token) is None
    assert world.leave(follower) == ["NONE"]
    assert world.answer(token).generation_id == generation + 1


def test_leaving_does_not_end_the_initial_delay():
    world = World()
    tokens = [world.join(instance="a"), world.join(instance="b")]
    assert world.leave(("", "b")) == ["NONE"]
    assert world.answer(tokens[0]) is None
    assert error(world.answer(tokens[1])) == "UNKNOWN_MEMBER_ID"
    world.advance(6)
    assert len(world.answer(tokens[0]).members) == 1


def test_several_members_leave_with_one_request_and_each_has_its_own_result():
    world = World()
    world.stable(session_ms=60_000)
    (member,) = world.shard.groups["g"].members
    pending = world.answer(world.join(id_required=True)).member_id
    assert world.leave(member, "stranger", pending, ("", "nobody"), ("", None)) == [
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_MEMBER_ID",
    ]


def test_leaving_an_unknown_group_is_refused():
    world = World()
    assert world.leave("a", ("b", "i"), group="none") == ["UNKNOWN_MEMBER_ID"] * 2


def test_a_member_that_is_removed_while_it_waits_for_its_assignment_gets_an_error():
    world, generation, (_leader, follower) = completing()
    parked = world.sync(follower, generation)
    assert world.leave(follower) == ["NONE"]
    assert error(world.answer(parked)) == "UNKNOWN_MEMBER_ID"


# Static members (KIP-345).


def static_group(world, *instances, **options):
    tokens = {instance: world.join(instance=instance, **options) for instance in instances}
    world.advance(6)
    ids = {instance: world.answer(token).member_id for instance, token in tokens.items()}
    leader = world.shard.groups["g"].leader_id
    generation = world.shard.groups["g"].generation
    for instance, member_id in ids.items():
        if member_id != leader:
            world.sync(member_id, generation, instance=instance)
    world.sync(leader, generation, {member_id: instance.encode() for instance, member_id in ids.items()})
    assert world.state() == "Stable"
    return generation, ids


def test_a_static_follower_that_returns_keeps_its_assignment_without_a_rebalance():
    world = World()
    generation, ids = static_group(world, "a", "b")
    answer = world.answer(world.join(instance="b"))
    assert (error(answer), answer.generation_id, answer.members, answer.skip_assignment) == (
        "NONE",
        generation,
        [],
        False,
    )
    assert answer.member_id != ids["b"] and answer.leader == ids["a"]
    assert world.state() == "Stable"
    assert world.answer(world.sync(answer.member_id, generation, instance="b")).assignment == b"b"
    assert world.heartbeat(ids["b"], generation, instance="b") == "FENCED_INSTANCE_ID"
    assert world.heartbeat(ids["b"], generation) == "UNKNOWN_MEMBER_ID"
    assert answer.member_id in world.replayed().groups["g"].members


def test_a_static_leader_that_returns_is_told_to_keep_the_assignment():
    """It gets the list of members, and must not compute a new assignment (KIP-814)."""
    world = World()
    _generation, ids = static_group(world, "a", "b")
    answer = world.answer(world.join(instance="a"))
    assert answer.leader == answer.member_id and answer.skip_assignment
    assert {member.member_id for member in answer.members} == {answer.member_id, ids["b"]}
    assert world.shard.groups["g"].leader_id == answer.member_id


def test_an_older_static_leader_that_returns_takes_itself_for_a_follower():
    world = World()
    _generation, ids = static_group(world, "a", "b")
    answer = world.answer(world.join(instance="a", may_skip=False))
    assert (answer.leader, answer.members, answer.skip_assignment) == (ids["a"], [], False)
    assert world.shard.groups["g"].leader_id == answer.member_id


def test_a_static_member_that_returns_with_another_protocol_starts_a_rebalance():
    world = World()
    both = (("range", b""), ("sticky", b""))
    static_group(world, "a", protocols=both)
    token = world.join(instance="a", protocols=(("sticky", b""), ("range", b"")))
    assert world.answer(token).protocol_name == "sticky" and world.answer(token).generation_id == 2


def test_the_protocols_of_a_static_member_that_returns_replace_its_old_ones():
    world = World()
    _generation, _ids = static_group(world, "a", protocols=(("range", b""), ("old", b"")))
    world.join(instance="a", protocols=(("range", b""), ("new", b"")))
    assert world.state() == "Stable"
    assert error(world.answer(world.join(protocols=(("old", b""),)))) == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.answer(world.join(protocols=(("new", b""),))) is None


def test_a_static_member_that_returns_before_the_assignment_starts_a_rebalance():
    world = World()
    tokens = [world.join(instance="a"), world.join(instance="b")]
    world.advance(6)
    ids = [world.answer(token).member_id for token in tokens]
    parked = world.sync(ids[1], 1, instance="b")
    world.join(instance="b")
    assert error(world.answer(parked)) == "FENCED_INSTANCE_ID"
    assert world.state() == "PreparingRebalance"


def test_a_second_static_member_fences_the_first_whose_join_is_delayed():
    world = World()
    first = world.join(instance="a")
    second = world.join(instance="a")
    assert error(world.answer(first)) == "FENCED_INSTANCE_ID"
    world.advance(3)
    assert error(world.answer(second)) == "NONE" and len(world.answer(second).members) == 1


def test_static_members_that_miss_a_rebalance_stay_in_the_group():
    world = World()
    _generation, ids = static_group(world, "a", "b", rebalance_ms=10_000, session_ms=60_000)
    token = world.join(ids["a"], instance="a", rebalance_ms=10_000, session_ms=60_000)
    assert world.answer(token) is None
    world.advance(10)
    answer = world.answer(token)
    assert {member.group_instance_id for member in answer.members} == {"a", "b"}


def test_a_rebalance_waits_for_the_sessions_of_the_last_static_members():
    world = World()
    _generation, ids = static_group(world, "a", "b", rebalance_ms=10_000, session_ms=25_000)
    newcomer = world.join(rebalance_ms=10_000)
    given = world.answer(newcomer)
    assert given is None
    world.leave(next(m for m in world.shard.groups["g"].members if m not in ids.values()))
    world.advance(12)
    assert world.state() == "PreparingRebalance"
    world.advance(20)
    assert world.state() == "Empty"


def test_an_administrator_removes_static_members_by_instance_id():
    world = World()
    generation, ids = static_group(world, "a", "b")
    assert world.leave(("", "a")) == ["NONE"]
    assert world.heartbeat(ids["b"], generation, instance="b") == "REBALANCE_IN_PROGRESS"
    assert world.leave((ids["b"], "a")) == ["UNKNOWN_MEMBER_ID"]


def test_a_wrong_member_id_for_an_instance_id_is_fenced_everywhere():
    world = World()
    generation, _ids = static_group(world, "a", "b")
    assert world.heartbeat("x", generation, instance="a") == "FENCED_INSTANCE_ID"
    assert error(world.answer(world.sync("x", generation, instance="a"))) == "FENCED_INSTANCE_ID"
    assert error(world.answer(world.join("x", instance="a"))) == "FENCED_INSTANCE_ID"
    assert world.leave(("x", "a")) == ["FENCED_INSTANCE_ID"]
    assert world.commit({("t", 0): 1}, member_id="x", generation=generation, instance="a") == ["FENCED_INSTANCE_ID"]


# Restart.


def test_a_restarted_coordinator_knows_the_last_generation_and_expects_heartbeats():
    world = World()
    generation, (leader, follower) = world.stable(2, session_ms=10_000)
    world.restart()
    assert world.state() == "Stable"
    assert world.heartbeat(leader, generation) == "NONE"
    assert world.answer(world.sync(follower, generation)).assignment == follower.encode()
    world.advance(9)
    world.heartbeat(leader, generation)
    world.advance(2)
    assert world.state() == "PreparingRebalance"


def test_a_restart_forgets_a_rebalance_under_way():
    world = World()
    generation, (leader, follower) = world.stable(2)
    world.join(leader)
    world.restart()
    assert world.state() == "Stable" and world.heartbeat(follower, generation) == "NONE"


def test_the_record_of_a_group_equals_kafkas():
    world = World()
    _generation, (leader, follower) = world.stable(2, protocols=(("range", b"meta"), ("other", b"")))
    record = record_codec.decode(*world.log[-1])
    value = record.value
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 1, "range", leader)
    assert [(m.member_id, m.subscription, m.assignment) for m in value.members] == [
        (leader, b"meta", leader.encode()),
        (follower, b"meta", follower.encode()),
    ]
    assert value.members[0].client_host == "/127.0.0.1"
    assert world.log[-1][1][:2] == (3).to_bytes(2, "big") and world.log[-1][0][:2] == (2).to_bytes(2, "big")
