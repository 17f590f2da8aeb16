"""JoinGroup of classic groups."""

from __future__ import annotations

import pytest

from tests.coordinator.world import World, error


def test_a_first_member_waits_the_initial_delay_then_leads_alone():
    world = World()
    token = world.join(client="app")
    assert world.state() == "PreparingRebalance"
    world.advance(2.9)
    assert world.answer(token) is None
    world.advance(0.1)
    answer = world.answer(token)
    assert (error(answer), answer.generation_id, answer.protocol_type, answer.protocol_name) == (
        "NONE",
        1,
        "consumer",
        "range",
    )
    assert answer.leader == answer.member_id and answer.member_id.startswith("app-")
    assert [(m.member_id, m.group_instance_id, m.metadata) for m in answer.members] == [
        (answer.member_id, None, b"topics")
    ]
    assert world.state() == "CompletingRebalance"


def test_member_ids_are_the_client_id_and_a_version_4_uuid():
    from uuid import UUID

    world = World()
    answer = world.answer(world.join(client="c", id_required=True))
    assert UUID(answer.member_id.removeprefix("c-")).version == 4


def test_a_new_dynamic_member_gets_an_id_and_joins_with_it():
    """The first response is MEMBER_ID_REQUIRED (KIP-394)."""
    world = World()
    first = world.answer(world.join(id_required=True))
    assert error(first) == "MEMBER_ID_REQUIRED" and first.generation_id == -1
    token = world.join(first.member_id, id_required=True)
    world.advance(3)
    assert error(world.answer(token)) == "NONE"
    assert world.answer(token).member_id == first.member_id


def test_a_member_id_that_is_never_used_expires_after_the_session_timeout():
    world = World()
    first = world.answer(world.join(id_required=True, session_ms=7_000))
    world.advance(6.9)
    assert world.shard.groups["g"].pending_joins
    world.advance(0.2)
    assert not world.shard.groups["g"].pending_joins
    assert error(world.answer(world.join(first.member_id, id_required=True))) == "UNKNOWN_MEMBER_ID"


def test_a_static_member_needs_no_round_trip():
    world = World()
    token = world.join(instance="i1", id_required=True)
    world.advance(3)
    answer = world.answer(token)
    assert error(answer) == "NONE" and answer.member_id.startswith("i1-")
    assert answer.members[0].group_instance_id == "i1"


def test_an_unknown_member_id_is_refused_in_an_unknown_group_and_in_a_known_one():
    world = World()
    answer = world.answer(world.join("nobody"))
    assert (error(answer), answer.member_id) == ("UNKNOWN_MEMBER_ID", "nobody")
    assert world.state() is None
    world.stable()
    assert error(world.answer(world.join("nobody"))) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", (("range", b""),)), ("consumer", ())])
def test_a_group_needs_a_protocol_type_and_a_protocol(protocol_type, protocols):
    world = World()
    answer = world.answer(world.join(protocol_type=protocol_type, protocols=protocols))
    assert error(answer) == "INCONSISTENT_GROUP_PROTOCOL"


def test_a_new_member_must_share_the_protocol_type_and_a_protocol_with_all_members():
    world = World()
    world.stable(protocols=(("range", b""), ("roundrobin", b"")))
    assert error(world.answer(world.join(protocol_type="connect"))) == "INCONSISTENT_GROUP_PROTOCOL"
    assert error(world.answer(world.join(protocols=(("sticky", b""),)))) == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.answer(world.join(protocols=(("roundrobin", b""),))) is None


def test_the_protocol_with_most_votes_among_those_common_to_all_is_chosen():
    world = World()
    tokens = [
        world.join(protocols=(("a", b"1"), ("b", b""), ("c", b""))),
        world.join(protocols=(("b", b""), ("a", b"2"), ("d", b""))),
        world.join(protocols=(("d", b""), ("a", b"3"), ("b", b""))),
    ]
    world.advance(6)
    answers = [world.answer(token) for token in tokens]
    assert {answer.protocol_name for answer in answers} == {"a"}
    assert [member.metadata for member in answers[0].members] == [b"1", b"2", b"3"]


def test_only_the_leader_gets_the_list_of_members():
    world = World()
    tokens = [world.join() for _ in range(3)]
    world.advance(6)
    answers = [world.answer(token) for token in tokens]
    assert [len(answer.members) for answer in answers] == [3, 0, 0]
    assert len({answer.leader for answer in answers}) == 1 and {answer.generation_id for answer in answers} == {1}


def test_the_initial_delay_is_extended_while_members_join_up_to_the_rebalance_timeout():
    """Each extension lasts as long as the delay. One without a new member is the last (KIP-134)."""
    world = World()
    tokens = [world.join(rebalance_ms=8_000)]
    world.advance(2)
    tokens.append(world.join(rebalance_ms=8_000))
    world.advance(3)  # t=5: the first round ended at 3 and was extended
    assert world.answer(tokens[0]) is None
    tokens.append(world.join(rebalance_ms=8_000))
    world.advance(2.9)  # t=7.9: the second round ended at 6; 2 seconds were left, not 3
    assert world.answer(tokens[0]) is None
    tokens.append(world.join(rebalance_ms=8_000))
    world.advance(0.1)
    assert [error(world.answer(token)) for token in tokens] == ["NONE"] * 4


def test_the_initial_delay_is_not_extended_without_new_members():
    world = World()
    token = world.join()
    world.advance(3)
    assert world.answer(token) is not None


def test_a_new_member_of_a_stable_group_starts_a_rebalance_that_waits_for_all():
    world = World()
    generation, (leader, follower) = world.stable(2)
    token = world.join()
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(leader, generation) == "REBALANCE_IN_PROGRESS"
    first = world.join(leader)
    assert world.answer(token) is None
    second = world.join(follower)
    assert [world.answer(each).generation_id for each in (token, first, second)] == [generation + 1] * 3
    assert world.answer(first).leader == leader


def test_members_that_do_not_join_within_the_rebalance_timeout_are_removed():
    world = World()
    generation, (leader, follower) = world.stable(2, rebalance_ms=20_000, session_ms=30_000)
    token = world.join(rebalance_ms=20_000)
    again = world.join(follower, rebalance_ms=20_000, session_ms=30_000)
    world.advance(19.9)
    assert world.answer(token) is None
    world.advance(0.1)
    answer = world.answer(again)
    assert answer.leader == follower and len(answer.members) == 2
    assert world.heartbeat(leader, generation) == "UNKNOWN_MEMBER_ID"


def test_an_unchanged_leader_starts_a_rebalance_and_an_unchanged_follower_does_not():
    """The number of partitions, for example, can change although the leader's metadata does not."""
    world = World()
    generation, (leader, follower) = world.stable(2)
    told = world.answer(world.join(follower))
    assert (told.generation_id, told.leader, told.members) == (generation, leader, [])
    assert world.state() == "Stable"
    world.join(leader)
    assert world.state() == "PreparingRebalance"


def test_a_follower_with_new_metadata_starts_a_rebalance():
    world = World()
    _, (_, follower) = world.stable(2)
    world.join(follower, protocols=(("range", b"other"),))
    assert world.state() == "PreparingRebalance"


def test_a_member_that_missed_its_join_response_gets_it_again():
    world = World()
    tokens = [world.join(), world.join()]
    world.advance(6)
    first, second = (world.answer(token) for token in tokens)
    again = world.answer(world.join(first.member_id))
    assert again.generation_id == first.generation_id and len(again.members) == 2
    assert world.answer(world.join(second.member_id)).members == []
    world.join(second.member_id, protocols=(("range", b"changed"),))
    assert world.state() == "PreparingRebalance"


def test_a_join_while_members_wait_for_the_assignment_makes_them_join_again():
    world = World()
    tokens = [world.join(), world.join()]
    world.advance(6)
    _first, second = (world.answer(token) for token in tokens)
    parked = world.sync(second.member_id, 1)
    assert world.answer(parked) is None
    world.join()
    assert error(world.answer(parked)) == "REBALANCE_IN_PROGRESS"
    assert world.state() == "PreparingRebalance"


def test_a_full_group_refuses_new_members_and_keeps_its_own():
    world = World(group_max_size=2)
    _generation, (leader, follower) = world.stable(2)
    answer = world.answer(world.join())
    assert (error(answer), answer.member_id) == ("GROUP_MAX_SIZE_REACHED", "")
    assert error(world.answer(world.join(follower))) == "NONE"
    world.join(leader)
    assert world.state() == "PreparingRebalance"
    assert error(world.answer(world.join(follower))) == "NONE"


def test_a_group_above_a_lowered_limit_refuses_the_last_members_to_join_again():
    world = World()
    generation, members = world.stable(3)
    world.settings.group_max_size = 2
    world.restart()
    assert world.state() == "PreparingRebalance"
    tokens = [world.join(member) for member in members]
    assert error(world.answer(tokens[2])) == "GROUP_MAX_SIZE_REACHED"
    world.advance(60)
    assert {world.answer(token).generation_id for token in tokens[:2]} == {generation + 1}


def test_the_number_of_unused_member_ids_is_bounded(monkeypatch):
    from pykafkad.coordinator import membership

    monkeypatch.setattr(membership, "MAX_PENDING_JOINS", 3)
    world = World()
    given = [world.answer(world.join(id_required=True)) for _ in range(4)]
    assert [error(each) for each in given] == ["MEMBER_ID_REQUIRED"] * 3 + ["GROUP_MAX_SIZE_REACHED"]
    world.join(given[0].member_id, id_required=True)
    assert error(world.answer(world.join(id_required=True))) == "MEMBER_ID_REQUIRED"


def test_a_static_member_cannot_join_with_the_id_given_to_a_dynamic_one():
    """Kafka fails with the same unspecific error."""
    world = World()
    given = world.answer(world.join(id_required=True))
    assert error(world.answer(world.join(given.member_id, instance="i"))) == "UNKNOWN_SERVER_ERROR"


def test_a_new_member_whose_join_is_delayed_for_five_minutes_is_removed():
    world = World()
    _generation, (_leader,) = world.stable(rebalance_ms=600_000, session_ms=900_000)
    token = world.join(rebalance_ms=600_000)
    world.advance(299)
    assert world.answer(token) is None
    world.advance(2)
    answer = world.answer(token)
    assert (error(answer), answer.member_id) == ("UNKNOWN_MEMBER_ID", "")


def test_a_new_group_is_written_to_the_log_before_its_first_generation():
    """A restarted Kafka knows the group, so ListGroups shows it."""
    world = World()
    world.join(id_required=True)
    assert world.log and world.replayed().groups["g"].state == "Empty"
    assert world.replayed().groups["g"].generation == 0


def test_a_coordinator_that_resigns_answers_waiting_members_with_not_coordinator():
    from pykafkad.coordinator.events import Resigned

    world = World()
    _generation, (leader, follower) = world.stable(2, group="h")
    joining = world.join()
    world.join(leader, group="h")
    b = world.join(follower, group="h")
    syncing = world.sync(follower, world.answer(b).generation_id, group="h")
    world.send(Resigned())
    assert [error(world.answer(each)) for each in (joining, syncing)] == ["NOT_COORDINATOR"] * 2
