"""The rules of `partition_rules.py` hold in worlds under faults, and each of them is noticed when it does not."""

from __future__ import annotations

import pytest

from pykafkad.wire import messages
from tests.seeds import examples
from tests.simulation.partition_rules import RuledWorld
from tests.simulation.replication_checkers import Violation

FIRST, SEEDS, PARTS = 3000, 16, 2


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part):
    """They are looked at often, and leaders are elected meanwhile."""
    worlds = [RuledWorld(seed) for seed in range(FIRST + part, FIRST + max(PARTS, examples(SEEDS)), PARTS)]
    for world in worlds:
        world.run_all()
    assert all(world.rules.looks > 100 for world in worlds) and sum(world.rules.elections for world in worlds)


@pytest.fixture(scope="module")
def world():
    made = RuledWorld(1, without=())
    made.run(3.0)
    return made


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("leader", 3, "the leader is not in the ISR"),
        ("isr", (1, 9), "of the replicas"),
        ("isr", (1, 1), "of the replicas"),
        ("elr", (2,), "eligible leaders are in the ISR"),
        ("elr", (3,), "although the ISR is large enough"),
    ],
)
def test_what_the_controller_must_not_say(world, monkeypatch, name, value, said):
    state = world.state("a")
    for key, usual in (("leader", 1), ("isr", (1, 2)), ("elr", ())):
        monkeypatch.setattr(state, key, usual)
    world.rules.look()
    monkeypatch.setattr(state, name, value)
    with pytest.raises(Violation, match=said):
        world.rules.look()


def test_a_fenced_broker_is_in_no_isr(world, monkeypatch):
    monkeypatch.setattr(world.image.brokers[world.state("a").isr[0]], "fenced", True)
    with pytest.raises(Violation, match="are fenced"):
        world.rules.look()


def test_who_is_in_sync_has_what_is_committed(world, monkeypatch):
    monkeypatch.setitem(world.checkers.ends, ("a", 0), 1_000_000)
    with pytest.raises(Violation, match="with 1000000 committed"):
        world.rules.look()


def test_one_change_is_one_partition_epoch(world):
    topic = world.image.topics["a"]
    with pytest.raises(Violation, match="after the epochs"):
        for _ in range(2):
            world.rules.committed(messages.PartitionChangeRecord(topic_id=topic.id, partition_id=0))


def test_epochs_of_a_broker_rise(world):
    for epoch in (1_000, 1_001):
        world.rules.committed(messages.RegisterBrokerRecord(broker_id=9, broker_epoch=epoch))
    with pytest.raises(Violation, match="broker 9: epoch 1001 after 1001"):
        world.rules.committed(messages.RegisterBrokerRecord(broker_id=9, broker_epoch=1_001))
