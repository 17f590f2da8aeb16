"""Targets of large groups, which are computed in several turns, as a broker's clients see them."""

from copy import copy

import pytest

from pykafkad import errors
from pykafkad.coordinator import assignors, target_computation
from pykafkad.wire import messages
from tests.server.test_coordinator_host import TOPIC, TickingClock, code, commit_request, lead, make, of, settle
from tests.simulation.world import NOTHING


def test_records_that_are_refused_leave_a_large_group_its_next_target(monkeypatch):
    """The computation that they asked for never begins: who waits for it is answered, and the next one is computed."""
    monkeypatch.setattr("pykafkad.coordinator.target_computation.LARGE_WORK", 0)
    world = make(message_max_bytes=1500, clock=TickingClock(), group_consumer_assignment_interval_ms=0)
    for number in range(40):
        world.create_topic(f"topic-with-a-long-name-{number:020}")
    names = sorted(set(world.broker.image.topics) - {TOPIC})
    first, second, third = (world.connect() for _ in range(3))
    first.send(join_request("a", names[:2]), 1)
    finish(world)
    assert first.answers[-1].member_epoch > 0
    assert second.ask(join_request("b", names), 1).error_code == errors.UNKNOWN_SERVER_ERROR
    assert not world.broker.groups.runner_of(of("h")).machine.computations
    third.send(join_request("c", names[:2]), 1)
    finish(world)
    assert third.answers[-1].error_code == 0 and third.answers[-1].member_epoch > 0
    assert world.runtime.metrics.unexpected_errors == 0


@pytest.fixture
def large_group(monkeypatch):
    """A group whose target takes several turns, and two of whose members have joined: the second one waits."""
    monkeypatch.setattr("pykafkad.coordinator.target_computation.LARGE_WORK", 0)
    world = make(clock=TickingClock(), group_consumer_assignment_interval_ms=0)
    world.create_topic("many", 40)
    first, second = world.connect(), world.connect()
    first.send(join_request("a"), 1)
    finish(world)
    assert first.answers[-1].member_epoch > 0
    assert second.ask(join_request("b"), 1) is NOTHING and world.runtime.tasks
    return world, first, second


def finish(world):
    """The answer leaves in the turn after the target was written."""
    settle(world)
    world.turn()


def join_request(member, topics=("many",)):
    return messages.ConsumerGroupHeartbeatRequest(
        group_id="h",
        member_id=member,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )


def test_a_target_is_computed_in_several_turns_and_others_are_served_meanwhile(large_group):
    world, first, second = large_group
    epoch = first.answers[-1].member_epoch
    again = messages.ConsumerGroupHeartbeatRequest(group_id="h", member_id="a", member_epoch=epoch)
    assert first.ask(again, 1).member_epoch == epoch and not second.answers
    assert code(world.connect().ask(commit_request("g", 5), 8)) == 0
    finish(world)
    assert second.answers[-1].error_code == 0 and second.answers[-1].member_epoch == epoch + 1
    told = first.ask(again, 1)
    assert len(told.assignment.topic_partitions[0].partitions) == 20
    assert world.runtime.metrics.unexpected_errors == 0


def test_a_target_that_comes_after_its_shard_has_resigned_changes_nothing(large_group):
    world, _, second = large_group
    runner = world.broker.groups.runner_of(of("h"))
    lead(world, of("h"), False)
    world.turn()
    assert second.answers[-1].error_code == errors.NOT_COORDINATOR
    end = runner.log.end_offset
    finish(world)
    assert runner.log.end_offset == end and not world.runtime.tasks
    lead(world, of("h"), True)
    finish(world)
    assert world.broker.groups.runner_of(of("h")).machine.groups["h"].state == "Assigning"
    assert world.runtime.metrics.unexpected_errors == 0


def test_a_computation_that_fails_is_logged_and_begun_again(large_group, monkeypatch):
    world, first, second = large_group
    working = assignors.with_partitions
    monkeypatch.setattr(assignors, "with_partitions", None)
    finish(world)
    assert world.runtime.metrics.unexpected_errors == 1
    epoch = second.answers[-1].member_epoch
    assert epoch == first.answers[-1].member_epoch, "what held before still holds"
    finish(world)
    monkeypatch.setattr(assignors, "with_partitions", working)
    second.send(messages.ConsumerGroupHeartbeatRequest(group_id="h", member_id="b", member_epoch=epoch), 1)
    finish(world)
    assert second.answers[-1].member_epoch == epoch + 1


def heartbeat_request(member, epoch):
    return messages.ConsumerGroupHeartbeatRequest(group_id="h", member_id=member, member_epoch=epoch)


def nobody_waits(world):
    return not world.runtime.tasks and not world.broker.groups.runner_of(of("h")).machine.computations


def goes_on(world, first):
    """The group gets its target with the next heartbeats."""
    first.send(heartbeat_request("a", first.answers[-1].member_epoch), 1)
    finish(world)
    third = world.connect()
    third.send(join_request("c"), 1)
    finish(world)
    group = world.broker.groups.runner_of(of("h")).machine.groups["h"]
    return third.answers[-1].member_epoch == group.target_epoch == group.epoch and nobody_waits(world)


def test_who_waits_for_a_target_that_the_log_refuses_is_told(large_group):
    """As in Kafka, which computes within the heartbeat. The next heartbeat begins the next computation."""
    world, first, second = large_group
    log = world.broker.groups.runner_of(of("h")).log
    settings = log.settings
    narrow = copy(settings)
    narrow.max_message_bytes = 100
    log.update_settings(narrow)
    finish(world)
    assert second.answers[-1].error_code == errors.UNKNOWN_SERVER_ERROR and nobody_waits(world)
    log.update_settings(settings)
    assert goes_on(world, first) and world.runtime.metrics.unexpected_errors == 0


@pytest.mark.parametrize("name", ["finish", "answer"])
def test_a_bug_when_a_target_has_been_computed_does_not_wedge_its_group(large_group, monkeypatch, name):
    world, first, second = large_group

    def fail(*_):
        raise AttributeError(f"a bug in {name}")

    with monkeypatch.context() as patched:
        patched.setattr(target_computation, name, fail)
        finish(world)
    assert second.answers[-1].error_code == errors.UNKNOWN_SERVER_ERROR and nobody_waits(world)
    assert world.runtime.metrics.unexpected_errors == 1
    assert goes_on(world, first)


def test_a_bug_when_the_next_target_is_asked_for_does_not_wedge_the_group(large_group, monkeypatch):
    """The step has started the next computation, which never begins."""
    world, first, second = large_group
    world.connect().ask(join_request("d"), 1)
    working = target_computation.start

    def fail(shard, step):
        working(shard, step)
        assert step.computation is not None and shard.computations
        raise AttributeError("a bug after that")

    with monkeypatch.context() as patched:
        patched.setattr(target_computation, "start", fail)
        finish(world)
    assert second.answers[-1].error_code == errors.UNKNOWN_SERVER_ERROR and nobody_waits(world)
    assert goes_on(world, first)
