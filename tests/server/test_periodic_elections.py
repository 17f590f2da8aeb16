"""The controller elects leaders by itself: the preferred ones, and unclean ones where a topic allows that."""

from __future__ import annotations

import pytest

from pykafkad import config, errors
from pykafkad.metadata import elections, events, partition_changes
from pykafkad.server import periodic_elections
from pykafkad.server.logs import Sink, process_logs
from pykafkad.server.periodic_elections import LONGEST_PAUSE_SECONDS
from pykafkad.wire import messages
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.controllers import Controllers

CALM = {
    # Time passes in long steps here.
    "broker_session_timeout_ms": 10_000_000,
    "connections_max_idle_ms": 10_000_000,
    "offsets_topic_replication_factor": 3,
}


def leaders(world, topic="t"):
    return [state.leader for state in world.image.topics[topic].partitions]


def preferred(world, topic="t"):
    return [state.replicas[0] for state in world.image.topics[topic].partitions]


def in_sync(world, topic="t"):
    return all(len(state.isr) == 3 for state in world.image.topics[topic].partitions)


def others_lead(world):
    """Broker 1 was away, and is in sync again: it leads nothing."""
    world.create_topic("t", 6, 3)
    world.until(lambda: in_sync(world))
    world.stop_broker(1)
    world.until(lambda: 1 not in leaders(world))
    world.start_broker(1)
    world.until(lambda: in_sync(world))
    assert 1 in preferred(world) and 1 not in leaders(world)


def test_the_first_replica_leads_again_after_the_interval(monkeypatch):
    lines = []
    monkeypatch.setattr(process_logs(), "sink", Sink(lambda data: lines.append(data) or len(data)))
    world = BrokersWorld(leader_imbalance_check_interval_seconds=60, **CALM)
    began = world.clock.now()
    others_lead(world)
    own = preferred(world).count(1)
    world.advance(began + 59 - world.clock.now(), step=1)
    assert 1 not in leaders(world)
    world.advance(2)
    assert leaders(world) == preferred(world)
    told = [line for line in lines if b"leaders-elected" in line]
    assert len(told) == 1 and b"election=preferred" in told[0] and f"partitions={own}".encode() in told[0]
    world.advance(61, step=1)
    assert len([line for line in lines if b"leaders-elected" in line]) == 1, "nothing is left to be elected"
    assert world.runtime.metrics.unexpected_errors == 0
    world.stop()


def test_a_first_replica_that_is_not_in_sync_does_not_lead():
    """It leads after the interval in which it is."""
    world = BrokersWorld(leader_imbalance_check_interval_seconds=60, **CALM)
    world.create_topic("t", 3, 3)
    world.until(lambda: in_sync(world))
    world.stop_broker(1)
    world.advance(130, step=1)
    assert 1 in preferred(world) and 1 not in leaders(world)
    before = [state.leader_epoch for state in world.image.topics["t"].partitions]
    world.advance(61, step=1)
    assert [state.leader_epoch for state in world.image.topics["t"].partitions] == before
    world.start_broker(1)
    world.until(lambda: leaders(world) == preferred(world), 130)
    world.stop()


def test_it_can_be_switched_off():
    world = BrokersWorld(leader_imbalance_check_interval_seconds=60, auto_leader_rebalance_enable="false", **CALM)
    others_lead(world)
    world.advance(130, step=1)
    assert 1 not in leaders(world)
    world.stop()


@pytest.mark.long
def test_many_elections_need_several_changes(monkeypatch):
    """They follow one another in the same check."""
    for module in (events, elections, periodic_elections):
        monkeypatch.setattr(module, "MAX_ELECTIONS_PER_CHANGE", 1)
    world = BrokersWorld(leader_imbalance_check_interval_seconds=60, **CALM)
    counts = []
    real = periodic_elections.PeriodicElection.deliver
    monkeypatch.setattr(
        periodic_elections.PeriodicElection, "deliver", lambda self, count: (counts.append(count), real(self, count))
    )
    others_lead(world)
    own = preferred(world).count(1)
    assert own >= 2
    world.until(lambda: leaders(world) == preferred(world), 61)
    world.turn()
    assert [count for count in counts if count] == [1] * own
    world.stop()


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_partition_without_a_leader_gets_one_where_its_topic_allows_it(is_allowed):
    """Also when the topic allows it only since then."""
    world = BrokersWorld(
        leader_imbalance_check_interval_seconds=3600, unclean_leader_election_interval_ms=60_000, **CALM
    )
    world.create_topic("t", 1, 3)
    world.until(lambda: in_sync(world))
    (state,) = world.image.topics["t"].partitions
    first, *others = state.replicas
    for broker in others:
        world.stop_broker(broker)
    world.until(lambda: list(world.image.topics["t"].partitions[0].isr) == [first])
    # By now others may be behind it, and it goes before they are back.
    world.stop_broker(first)
    world.until(lambda: leaders(world) == [-1])
    for broker in others:
        world.start_broker(broker)
    world.advance(1)
    asked = messages.IncrementalAlterConfigsRequest
    change = asked.AlterableConfig(
        name="unclean.leader.election.enable", config_operation=0, value=str(is_allowed).lower()
    )
    resource = asked.AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    assert world.ask(others[0], asked(resources=[resource]), 1).responses[0].error_code == errors.NONE
    assert leaders(world) == [-1]
    world.advance(61, step=1)
    assert (leaders(world)[0] in others) is is_allowed
    assert (leaders(world) == [-1]) is not is_allowed
    world.stop()


@pytest.mark.long
def test_only_the_active_controller_elects(monkeypatch):
    """Another that becomes active goes on with it."""
    asked = []
    monkeypatch.setattr(
        periodic_elections.PeriodicElection, "deliver", lambda self, count: asked.append(self._node.node_id)
    )
    world = Controllers(1, (1, 2, 3), leader_imbalance_check_interval_seconds=10)
    leader = world.elect()
    world.until(lambda: len(asked) >= 2)
    assert set(asked) == {leader}
    world.kill(leader)
    other = world.elect()
    del asked[:]
    world.until(lambda: len(asked) >= 2)
    assert set(asked) == {other} and other != leader


def test_a_pause_has_a_limit():
    """Whatever the interval is: the system cannot be asked to wait for years."""
    settings = config.Settings.from_properties(
        {"leader.imbalance.check.interval.seconds": (str(2**63 - 1), "test"), "node.id": ("1", "test")}
    )
    waits = []

    class Runtime:
        def call_later(self, seconds, call):
            waits.append(seconds)

    class Node:
        runtime = Runtime()

    Node.settings = settings
    periodic_elections.begin(Node())
    assert waits == [LONGEST_PAUSE_SECONDS, 300.0]


def test_what_cannot_be_elected_changes_nothing():
    """Without any broker that could lead, no record is written."""
    world = BrokersWorld(**CALM)
    world.create_topic("t", 2, 3)
    image, settings = world.image, world.controller.settings
    for election in (partition_changes.PREFERRED, partition_changes.UNCLEAN):
        steps = elections.elect_by_itself(image, settings, election)
        with pytest.raises(StopIteration) as stop:
            while True:
                next(steps)
        assert stop.value.value == []
    world.stop()
