"""Throttles of replication (KIP-73): what a reassigned replica copies is limited at its leader or at itself, and
replicas that are in sync are never held back."""

from __future__ import annotations

import pytest

from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.server.test_replicated_brokers import reassign, state
from tests.simulation.brokers_world import BrokersWorld

BROKER, TOPIC = 4, 2
VALUE = b"v" * 10_000
RECORDS = 40
COPIED_BYTES = RECORDS * len(VALUE)
RATE = 50_000
LEADER = ("leader.replication.throttled.rate", "leader.replication.throttled.replicas")
FOLLOWER = ("follower.replication.throttled.rate", "follower.replication.throttled.replicas")
SETTINGS = {"min_insync_replicas": 1, "replica_fetch_max_bytes": 20_000, "replica_fetch_response_max_bytes": 20_000}


@pytest.fixture
def world():
    made = BrokersWorld(**SETTINGS)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def configure(world, kind, name, value, resource="", operation=0):
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name=name, config_operation=operation, value=value)
    row = request.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=[change])
    # A broker takes its own settings alone, and those of everybody.
    asked = int(resource) if kind == BROKER and resource else 1
    answer = world.ask(asked, request(resources=[row], validate_only=False), 1)
    assert answer.responses[0].error_code == 0, answer


def filled(world):
    """A topic of one replica with records; its broker, and another one."""
    world.create_topic("t", 1, 1)
    leader = world.leader("t")
    for _ in range(RECORDS):
        answer = world.ask(leader, produce("t", {0: batch(VALUE)}), 12)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return leader, next(each for each in (1, 2, 3) if each != leader)


def seconds_to_copy(world, leader, other):
    """How long it takes until the other replica is in sync."""
    began = world.clock.now()
    reassign(world, [leader, other])
    world.until(lambda: sorted(state(world).isr) == sorted((leader, other)))
    return world.clock.now() - began


@pytest.mark.parametrize("side", [LEADER, FOLLOWER], ids=["leader", "follower"])
@pytest.mark.parametrize("form", ["*", "0:{throttled}", "0:{throttled},7:9"])
def test_a_replica_copies_no_faster_than_its_throttle(world, side, form):
    leader, other = filled(world)
    rate, replicas = side
    configure(world, BROKER, rate, str(RATE))
    configure(world, TOPIC, replicas, form.format(throttled=leader if side is LEADER else other), "t")
    seconds = seconds_to_copy(world, leader, other)
    # A burst of one window, and one answer above it, come before the throttle can act.
    assert COPIED_BYTES / RATE - 3 < seconds < COPIED_BYTES / RATE + 4


@pytest.mark.parametrize("side", [LEADER, FOLLOWER], ids=["leader", "follower"])
def test_the_replicas_of_other_brokers_and_partitions_are_not_throttled(world, side):
    leader, other = filled(world)
    rate, replicas = side
    configure(world, BROKER, rate, str(RATE))
    configure(world, TOPIC, replicas, f"1:{leader},1:{other},0:{other if side is LEADER else leader}", "t")
    assert seconds_to_copy(world, leader, other) < 3


@pytest.mark.parametrize("side", [LEADER, FOLLOWER], ids=["leader", "follower"])
def test_a_throttle_that_goes_holds_nothing_back_any_more(world, side):
    """As kafka-reassign-partitions --verify does it, which deletes the settings."""
    leader, other = filled(world)
    rate, replicas = side
    configure(world, BROKER, rate, "1000", str(leader if side is LEADER else other))
    configure(world, TOPIC, replicas, "*", "t")
    reassign(world, [leader, other])
    world.advance(20)
    assert state(world).isr == (leader,)
    configure(world, TOPIC, replicas, None, "t", operation=1)
    world.advance(3)
    assert sorted(state(world).isr) == sorted((leader, other))


def test_the_rate_of_one_broker_counts_before_that_of_all(world):
    leader, other = filled(world)
    configure(world, BROKER, LEADER[0], "1000")
    configure(world, BROKER, LEADER[0], "10000000", str(leader))
    configure(world, TOPIC, LEADER[1], "*", "t")
    assert seconds_to_copy(world, leader, other) < 3


@pytest.mark.parametrize("side", [LEADER, FOLLOWER], ids=["leader", "follower"])
def test_replicas_in_sync_are_never_throttled(world, side):
    world.create_topic("t", 1, 3)
    world.until(lambda: len(state(world).isr) == 3)
    rate, replicas = side
    configure(world, BROKER, rate, "1")
    configure(world, TOPIC, replicas, "*", "t")
    began = world.clock.now()
    for _ in range(10):
        answer = world.ask(world.leader("t"), produce("t", {0: batch(VALUE)}), 12)
        assert answer.responses[0].partition_responses[0].error_code == 0
    assert world.clock.now() - began < 10
    assert len(state(world).isr) == 3
