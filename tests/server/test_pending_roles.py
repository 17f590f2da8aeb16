"""Thousands of partitions that change their leaders together: each turn adopts a part of them, in order, and who asks
for one that waits sees what the metadata says."""

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.handlers import fetch_follower
from pykafkad.log.partition_log import PartitionLog
from pykafkad.log.replica import LEADER
from pykafkad.server import pending_partitions
from pykafkad.server.leader_fetcher import LeaderFetcher
from pykafkad.server.partitions import Partitions
from pykafkad.server.pending_partitions import PendingPartitions
from pykafkad.server.purgatory import Purgatory
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.simulation.brokers_world import BrokersWorld

COUNT = 60
AT_ONCE, PER_TURN, PER_FETCH = 4, 3, 2
LOADS = 5
STEPS = {PendingPartitions: "fired", LeaderFetcher: "_ask"}


@pytest.fixture
def world(monkeypatch):
    """Three brokers with a topic of which all have all partitions; small limits."""
    monkeypatch.setattr(pending_partitions, "ROLES_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(pending_partitions, "ROLES_PER_TURN", PER_TURN)
    monkeypatch.setattr(fetch_follower, "AT_ONCE", PER_FETCH)
    made = BrokersWorld(broker_session_timeout_ms=1000)
    made.create_topic("t", COUNT, 3)
    made.advance(2.0)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


@pytest.fixture
def stopped(monkeypatch):
    """What waits goes on waiting until `stopped.undo()`."""
    with monkeypatch.context() as patch:
        yield patch


def stop_steps(patch, *classes):
    """Nothing of what waits is done by itself, and no follower asks for partitions; or one of these."""
    held = []
    for each in classes or STEPS:
        patch.setattr(each, STEPS[each], lambda self, *key: held.append((self, key)))
    return held


def go_on(patch, held):
    patch.undo()
    for each, key in held:
        getattr(each, STEPS[type(each)])(*key)


def fail(world, victim):
    """Kill a broker; the others are told when its session has ended."""
    world.process.kill_broker(victim)
    world.advance(1.2)


def all_as_the_image_says(world, *brokers):
    for node_id in brokers:
        partitions = world.broker(node_id).partitions
        for state in world.image.topics["t"].partitions:
            log = partitions._by_name["t", state.index]
            assert (log.replica.leader_epoch, log.replica.partition_epoch) == (
                state.leader_epoch,
                state.partition_epoch,
            )
            assert (log.replica.role == LEADER) == (state.leader == node_id) == (log not in partitions.not_led_here)
            assert list(log.replica.isr) == list(state.isr)


def produce_to(world, node_id, index):
    return world.ask(node_id, produce("t", {index: batch(b"x")}, acks=1), 9).responses[0].partition_responses[0]


def test_no_turn_adopts_more_than_its_share(world, monkeypatch):
    """The fetches of two followers make a broker adopt what they look at, so they have their share, too."""
    adopt, turns = Partitions._adopt, {}

    def counted(self, log, state):
        key = self._node_id, world.runtime.turns
        turns[key] = turns.get(key, 0) + 1
        adopt(self, log, state)

    monkeypatch.setattr(Partitions, "_adopt", counted)
    fail(world, 1)
    world.advance(3.0)
    assert sum(turns.values()) >= 2 * COUNT
    assert max(turns.values()) <= AT_ONCE + PER_TURN + 4 * PER_FETCH
    all_as_the_image_says(world, 2, 3)


@pytest.mark.parametrize("are_first", [False, True])
def test_no_turn_opens_more_logs_for_followers_than_its_share(world, monkeypatch, are_first):
    """The share is that of all followers in the process; the others are asked for a moment later, also by a follower
    that has no session with its leader yet."""
    if are_first:
        world = BrokersWorld()
    world.runtime.loads_per_turn = LOADS
    question, turns = LeaderFetcher._question, {}

    def counted(self, followed):
        turn = world.runtime.turns
        turns[turn] = turns.get(turn, 0) + followed.is_to_load
        return question(self, followed)

    monkeypatch.setattr(LeaderFetcher, "_question", counted)
    began = world.clock.now()
    world.create_topic("more", COUNT, 3)
    world.until(lambda: all(log.is_loaded for each in (1, 2, 3) for log in world.broker(each).partitions))
    assert max(turns.values()) == LOADS and sum(turns.values()) > COUNT
    assert world.clock.now() - began < 2.0


def test_logs_that_are_out_of_service_take_nobodys_share(world, stopped):
    """Neither do they make a fetcher ask for more again and again."""
    world.runtime.loads_per_turn = LOADS
    held = stop_steps(stopped, LeaderFetcher)
    world.create_topic("more", COUNT, 3)
    followed = [log for log in world.broker(2).partitions if log in world.broker(2).partitions.not_led_here]
    unopened = [log for log in followed if log.topic == "more" and not log.is_loaded]
    out_of_service, served = unopened[: 3 * LOADS], unopened[3 * LOADS :]
    assert len(served) > LOADS
    for log in out_of_service:
        log.offline = StorageFailure("read", log.directory, "broken")
    go_on(stopped, held)
    world.until(lambda: all(log.is_loaded for log in served))
    turns = world.runtime.turns
    world.advance(1.0)
    assert world.runtime.turns - turns < 200


def test_a_few_are_adopted_with_the_change(world):
    world.create_topic("few", AT_ONCE, 3)
    moved = [state for state in world.image.topics["few"].partitions if state.leader == 1]
    assert moved
    delta = world.image.whole_delta()
    delta.partitions = {each: state for each, state in delta.partitions.items() if each[0] == "few"}
    world.broker(2).partitions.apply(delta, world.image, loading=False)
    assert not world.broker(2).partitions.roles


def test_a_change_wakes_only_who_waits_for_what_has_changed(world, monkeypatch):
    """Whoever waits for one of thousands of other partitions is not asked each time whether that concerns it."""
    touched = []
    touch = Purgatory.touch
    monkeypatch.setattr(Purgatory, "touch", lambda self, key: touched.append(key) or touch(self, key))
    world.create_topic("few", AT_ONCE, 3)
    logs = [each for each in touched if isinstance(each, PartitionLog)]
    assert {log.topic for log in logs} == {"few"}


def test_who_asks_for_a_partition_sees_its_new_leader(world, stopped):
    """By name and by id, on the new leader and on the one before it; everybody else waits."""
    fail(world, 1)
    world.start_broker(1)
    world.until(lambda: all(len(state.isr) == 3 for state in world.image.topics["t"].partitions))
    world.advance(2.0)
    held = stop_steps(stopped)
    request = messages.ElectLeadersRequest
    peer = world.connect(2)
    peer.send(request(election_type=0, topic_partitions=None, timeout_ms=30_000), 2)
    world.turn()
    waiting = world.broker(2).partitions.roles.waiting
    image = world.image.topics["t"]
    logs = world.broker(2).partitions._by_name
    moved = [each for each in range(COUNT) if ("t", each) in waiting and logs["t", each].replica.role == LEADER]
    assert len(moved) > 3 and not peer.answers
    assert {image.partitions[each].leader for each in moved} == {1}
    log = logs["t", moved[0]]
    assert log.replica.leader_epoch < image.partitions[moved[0]].leader_epoch
    assert world.broker(2).partitions.get_by_id(image.id, moved[0]) is log
    assert log.replica.leader_epoch == image.partitions[moved[0]].leader_epoch
    was_leader = moved[1]
    assert produce_to(world, 2, was_leader).error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert produce_to(world, 1, was_leader).error_code == errors.NONE
    assert ("t", was_leader) not in waiting and ("t", moved[-1]) in waiting
    go_on(stopped, held)
    world.until(lambda: peer.answers)
    all_as_the_image_says(world, 1, 2, 3)


def test_a_change_in_between_is_the_one_that_counts(world, stopped):
    held = stop_steps(stopped)
    fail(world, 1)
    assert world.broker(3).partitions.roles.waiting
    fail(world, 2)
    assert {state.leader for state in world.image.topics["t"].partitions} == {3}
    go_on(stopped, held)
    world.advance(2.0)
    all_as_the_image_says(world, 3)
    assert all(produce_to(world, 3, each).error_code == errors.NONE for each in (0, COUNT - 1))


def test_a_topic_goes_while_its_partitions_wait(world, stopped):
    """A new one of that name has its own partitions."""
    held = stop_steps(stopped)
    fail(world, 1)
    request = messages.DeleteTopicsRequest
    answer = world.ask(2, request(topics=[request.DeleteTopicState(name="t")], timeout_ms=1000), 6)
    assert answer.responses[0].error_code == 0
    assert not world.broker(2).partitions.roles.waiting
    go_on(stopped, held)
    world.create_topic("t", 3, 2)
    world.advance(1.0)
    assert {len(state.isr) for state in world.image.topics["t"].partitions} == {2}
    assert all(world.broker(each).partitions.get("t", 0) for each in (2, 3))


def test_a_clean_stop_adopts_the_rest(world, stopped):
    stop_steps(stopped)
    fail(world, 1)
    assert world.broker(2).partitions.roles.waiting
    world.broker(2).finish_work()
    assert not world.broker(2).partitions.roles.waiting
    all_as_the_image_says(world, 2)


def test_one_that_waits_keeps_its_place():
    """Added again it is done once, in the order of the first time, and both who asked are answered after it."""
    planned, done, answered = [], [], []
    pending = PendingPartitions(planned.append, lambda: 0.0, lambda topic, index: done.append((topic, index)), 2)
    for each in ("a", "b", "c", "a"):
        pending.add(each, 0)
    pending.after(lambda: answered.append("first"))
    pending.add("b", 0)
    pending.after(lambda: answered.append("second"))
    assert (pending.asked, pending.added, len(pending)) == (5, 3, 3)
    pending.fired("")
    assert done == [("a", 0), ("b", 0)] and not answered and len(planned) == 2
    pending.fired("")
    assert done == [("a", 0), ("b", 0), ("c", 0)] and answered == ["first", "second"]
