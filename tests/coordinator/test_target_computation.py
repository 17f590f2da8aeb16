"""Targets of large groups, which are computed in steps while the group is served."""

from __future__ import annotations

import sys
from random import Random

import pytest

from pykafkad.coordinator import consumer_records, events, target_computation
from pykafkad.errors import name
from tests import seeds
from tests.coordinator import test_consumer_properties, test_streams_properties
from tests.coordinator.consumer_world import ConsumerWorld
from tests.coordinator.streams_world import StreamsWorld, subtopology, topology
from tests.coordinator.world import subscription

LINES_PER_STEP = 15_000
"""The most lines of code that a step may run, an item of a comprehension being a line: a millisecond or two."""


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(target_computation, "LARGE_WORK", 0)


class Never(Random):
    """No computation ends by itself."""

    def random(self):
        return 0.99


def waiting_world(**settings):
    """A group of two settled members, `a` and `b`, and a third one that waits for the target of the group's epoch."""
    world = ConsumerWorld(group_consumer_assignment_interval_ms=0, **settings)
    members = world.joined("a", "b")
    world.chance = Never()
    third = world.member("c")
    assert third.beat() == "WAITING"
    return world, *members, third


# While a target is computed.


def test_the_heartbeat_that_needs_the_target_waits_for_it_and_others_do_not(all_are_large):
    world, a, b, third = waiting_world()
    before, epoch = a.partitions, a.epoch
    assert a.beat() == b.beat() == "NONE"
    assert a.partitions == before and a.epoch == epoch and world.group.state == "Assigning"
    world.compute()
    assert third.beat() == "NONE" and third.epoch == world.group.epoch == world.group.target_epoch
    world.chance = None
    world.settle(a, b, third)
    assert [len(each.partitions) for each in (a, b, third)] == [2, 2, 2]


def test_a_small_group_has_its_target_in_the_same_step(monkeypatch):
    world = ConsumerWorld(topics=(("t", 100),))
    (member,) = world.joined("a")
    assert len(member.partitions) == 100 and not world.computing
    monkeypatch.setattr(target_computation, "LARGE_WORK", 100)
    world.chance = Never()
    assert world.member("b").beat() == "WAITING"


def test_the_target_of_an_earlier_epoch_is_written_while_members_go_on_joining(all_are_large):
    world, a, b, third = waiting_world()
    epoch = world.group.epoch
    later = [world.member(each) for each in "def"]
    for member in later:
        assert member.beat() == "NONE" and not member.partitions
    assert len(world.computing) == 1
    world.compute()
    assert world.group.target_epoch == epoch < world.group.epoch
    assert third.beat() == "NONE" and third.epoch == epoch
    world.chance = None
    world.settle(a, b, third, *later, rounds=10)
    assert [len(each.partitions) for each in (a, b, third, *later)] == [1] * 6


def test_a_member_that_is_gone_gets_no_target(all_are_large):
    world, a, b, third = waiting_world()
    b.leave()
    start = len(world.log)
    world.compute()
    assert "b" not in world.group.targets and "c" in world.group.targets and len(world.log) > start
    assert third.beat() == "NONE"
    world.chance = None
    world.settle(a, third)
    assert sorted(a.partitions | third.partitions) == [("t", number) for number in range(6)]


def test_the_member_that_waits_may_be_gone(all_are_large):
    world, *_, third = waiting_world()
    token, answers = third.waiting, len(world.replies)
    third.leave()
    world.compute()
    assert name(world.replies[token].error_code) == "NONE" and world.replies[token].assignment.topic_partitions == []
    assert len(world.replies) == answers + 2 and not world.shard.computations
    assert third.beat() == "NONE", "the answer from before is all that it gets"


def test_the_target_of_a_group_that_is_gone_is_dropped(all_are_large):
    world, a, b, third = waiting_world()
    token = third.waiting
    for member in (a, b, third):
        member.leave()
    assert world.delete_group() == "NONE"
    start = len(world.log)
    world.compute()
    assert len(world.log) == start and world.shard.groups == {} == world.shard.computations
    assert token in world.replies


def test_a_new_group_of_the_name_does_not_get_the_target_of_the_old_one(all_are_large):
    world, a, b, third = waiting_world()
    old = third.waiting
    for member in (a, b, third):
        member.leave()
    assert world.delete_group() == "NONE"
    newcomer = world.member("n")
    assert newcomer.beat() == "WAITING" and old in world.replies
    assert len(world.computing) == 2
    world.compute()
    assert newcomer.beat() == "NONE" and len(newcomer.partitions) == 6
    assert set(world.group.targets) == {"n"} and not world.shard.computations


def static_world():
    """A group of a static member `a` and two others, the last one of which waits for a target."""
    world = ConsumerWorld(group_consumer_assignment_interval_ms=0)
    a, b = world.member("a", instance="i"), world.member("b")
    for member in (a, b):
        assert member.beat() == "NONE"
    world.settle(a, b)
    world.chance = Never()
    third = world.member("c")
    assert third.beat() == "WAITING"
    return world, a, b, third


@pytest.mark.parametrize("ids", [("a2",), ("a2", "a3")])
def test_a_static_member_that_comes_back_meanwhile_gets_the_target_of_its_former_id(all_are_large, ids):
    world, back, b, third = static_world()
    for member_id in ids:
        back.leave(static=True)
        back = world.member(member_id, instance="i")
        assert back.beat() == "NONE"
    epoch = world.group.epoch
    world.compute()
    assert world.group.target_epoch == world.group.epoch == epoch
    assert set(world.group.targets) == {ids[-1], "b", "c"} and third.beat() == "NONE"
    given = [(topic, each) for target in world.group.targets.values() for topic in target for each in target[topic]]
    assert len(given) == len(set(given)) == 6
    assert world.replayed().groups["g"].targets == world.group.targets
    world.chance = None
    world.settle(back, b, third, rounds=10)
    assert [len(each.partitions) for each in (back, b, third)] == [2, 2, 2]


def test_a_target_that_another_record_has_overtaken_is_dropped(all_are_large):
    """The static member has another target when it comes back. The outcome would give partitions to two."""
    world, a, b, third = static_world()
    epoch = world.group.target_epoch
    world.shard.apply(consumer_records.target("g", "a", {}))
    a.leave(static=True)
    back = world.member("a2", instance="i")
    assert back.beat() == "NONE"
    world.compute()
    assert world.group.target_epoch == epoch
    world.chance = None
    world.settle(back, b, third, rounds=10)
    assert [len(each.partitions) for each in (back, b, third)] == [2, 2, 2]


def test_a_member_that_has_another_target_overtakes_the_outcome_too(all_are_large):
    world, *_ = waiting_world()
    epoch = world.group.target_epoch
    world.shard.apply(consumer_records.target("g", "b", {}))
    world.compute()
    assert world.group.target_epoch == epoch


def test_who_waits_looks_for_the_next_coordinator_when_the_shard_ends(all_are_large):
    world, *_, third = waiting_world()
    (computation,) = world.shard.computations.values()
    ended = world.shard.step(events.Resigned(), world.clock.now(), world.clock.now_ms())
    assert [(effect.token, name(effect.message.error_code)) for effect in ended] == [(third.waiting, "NOT_COORDINATOR")]
    assert list(world.computing[0].steps) == [], "the rest of the work is not done"
    assert world.shard.step(events.TargetComputed(computation, None), 0.0, 0) == []
    assert world.shard.step(events.TargetComputed(computation, ({}, {})), 0.0, 0) == []


def test_a_computation_that_failed_is_begun_again_by_a_later_heartbeat(all_are_large):
    world, a, b, third = waiting_world()
    epoch = world.group.target_epoch
    world.send(world.computing.pop().then(None))
    world.advance(0)
    assert third.beat() == "NONE" and third.epoch == epoch
    world.chance = None
    world.settle(a, b, third)
    assert len(third.partitions) == 2


def test_a_classic_member_does_not_wait(all_are_large):
    """It is told by its next heartbeat that there is a new target."""
    world = ConsumerWorld(group_consumer_assignment_interval_ms=0)
    world.joined("a")
    world.chance = Never()
    protocols = (("range", subscription("t")),)
    token = world.join("", protocols=protocols, client="classic")
    answer = world.answer(token)
    assert name(answer.error_code) == "NONE" and len(world.computing) == 1
    world.compute()
    assert world.group.target_epoch == world.group.epoch
    assert world.heartbeat(answer.member_id, answer.generation_id) == "REBALANCE_IN_PROGRESS"


def test_a_group_that_has_become_classic_gets_no_target(all_are_large):
    world = ConsumerWorld(group_consumer_assignment_interval_ms=0)
    (a,) = world.joined("a")
    world.chance = Never()
    world.join("", protocols=(("range", subscription("t")),))
    assert a.leave() == "NONE" and world.group.type == "classic"
    start = len(world.log)
    world.compute()
    assert len(world.log) == start and world.group.type == "classic" and not world.shard.computations


def test_a_streams_group_says_that_its_tasks_are_being_assigned(all_are_large):
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=0, group_streams_assignment_interval_ms=0)
    a, b = world.member("a"), world.member("b")
    world.joined(a)
    world.chance = Never()
    assert b.beat() == "WAITING"
    assert a.beat() == "NONE" and 5 in a.codes and len(a.owned()) == 4
    world.compute()
    assert b.beat() == "NONE" and b.epoch == world.group.epoch and 5 not in b.codes
    world.chance = None
    world.joined(a, b, rounds=3)
    assert len(a.owned()) == len(b.owned()) == 2


def test_the_first_target_of_a_streams_group_is_computed_in_steps_too(all_are_large):
    world = StreamsWorld()
    world.chance = Never()
    a = world.member("a")
    assert a.beat() == a.beat() == "NONE" and not world.computing
    world.advance(3)
    assert len(world.computing) == 1
    world.compute()
    assert a.beat() == "NONE" and len(a.owned()) == 4


# No step is long.


def lines_of_steps(steps):
    """How many lines of code each step runs, to the next yield."""
    counts = [0]

    def traced(frame, event, _):
        if event == "line":
            counts[-1] += 1
        return traced

    sys.settrace(traced)
    try:
        for _ in steps:
            counts.append(0)
    finally:
        sys.settrace(None)
    return counts


def check_steps(world):
    (effect,) = world.computing
    counts = lines_of_steps(effect.steps)
    assert max(counts) <= LINES_PER_STEP, max(counts)
    assert sum(counts) > 4 * LINES_PER_STEP, "it is large"


@pytest.mark.long
@pytest.mark.parametrize(("subtopologies", "partitions"), [(1, 10_000), (100, 100)])
@pytest.mark.parametrize(("members", "copies"), seeds.sampled([(1, 0), (3, 1)], 2))
def test_ten_thousand_tasks(subtopologies, partitions, members, copies):
    world = StreamsWorld(
        topics=[("text", partitions), *((f"g-store-{each}-changelog", partitions) for each in range(subtopologies))],
        group_streams_initial_rebalance_delay_ms=0,
        group_streams_num_standby_replicas=copies,
    )
    brings = topology(
        *(
            subtopology(each, sources=["text"], changelogs=[f"g-store-{each}-changelog"])
            for each in range(subtopologies)
        )
    )
    for number in range(members - 1):
        world.member(f"m{number}", brings=brings).beat()
    world.advance(2)
    world.chance = Never()
    assert world.member("last", brings=brings).beat() == "WAITING"
    check_steps(world)


@pytest.mark.long
@pytest.mark.parametrize("assignor", seeds.sampled(["uniform", "range"], 2))
@pytest.mark.parametrize("topics", [("t",), ("t", "u")])
def test_a_thousand_members(assignor, topics):
    world = ConsumerWorld(topics=(("t", 2_000), ("u", 500)))
    for number in range(1_000):
        world.member(f"m{number}", topics=topics[: 1 + number % 2], assignor=assignor).beat()
    world.advance(2)
    world.chance = Never()
    assert world.member("last", topics=topics, assignor=assignor).beat() == "WAITING"
    check_steps(world)


# Random lives in which every target is computed in steps, and ends at any time.


def run(life, monkeypatch, seed):
    monkeypatch.setattr(target_computation, "LARGE_WORK", 0)
    life.world.chance = Random(seed)
    work = (lambda client: life.world.compute(), lambda client: life.world.compute(3))
    life.actions = (*life.actions, *work * 2)


def end(life):
    """Everybody is answered; from now on nobody waits."""
    world = life.world
    for _ in range(10):
        world.compute()
    world.chance = None
    assert not world.shard.computations and not world.computing
    assert world.replies.keys() >= set(world.heartbeats)


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
@pytest.mark.parametrize("of_type", [test_consumer_properties, test_streams_properties], ids=["consumer", "streams"])
def test_random_lives_of_groups(monkeypatch, of_type, seed):
    life = of_type.Life(seed)
    hard_state = of_type.hard_state
    run(life, monkeypatch, seed)
    for _ in range(3):
        life.run(50)
        assert hard_state(life.world.shard) == hard_state(life.world.replayed())
    end(life)
    of_type.settle(life)
    assert hard_state(life.world.shard) == hard_state(life.world.replayed())
