"""The transaction coordinator in the shell: what becomes of it when its log cannot be written, or is moved away."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.coordinator import transaction_records
from tests.handlers.transaction_requests import Producer
from tests.simulation.disk import MemoryDisk
from tests.simulation.slow_clock import SlowClock
from tests.simulation.world import World


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
def producer(disk):
    world = World("/data", disk=disk)
    made = Producer(world, world.connect()).create_topic().find()
    assert made.init() == "NONE"
    return made


def test_a_full_disk_is_told_and_nothing_half_done_stays(disk, producer):
    """The data path hears that the coordinator is elsewhere. After the next start all goes on."""
    world, asked = producer.world, []
    disk.fail("write", sticky=True)
    world.broker.transactions.add_partitions(
        "id", producer.producer_id, producer.epoch, [("t", 0), ("t", 1)], False, asked.append
    )
    world.turn()
    assert asked == [{("t", 0): errors.NOT_COORDINATOR, ("t", 1): errors.NOT_COORDINATOR}]
    disk.heal()
    world.stop()
    producer.world = again = world.restart()
    producer.peer = again.connect()
    producer.find()
    assert producer.state() == "Empty"
    assert producer.add(0, 1) == ["NONE", "NONE"]
    assert producer.end(version=5) == "NONE"
    assert producer.state() == "CompleteCommit"


def test_a_coordinator_that_nobody_uses_costs_nothing(disk):
    world = World("/data", disk=disk)
    assert list(world.broker.transactions.shards()) == [] and not world.broker.transactions.is_loading


@pytest.mark.parametrize("level", [0, 1, 2])
def test_records_are_written_in_the_finalized_version(disk, producer, level):
    """Kafka's value version 0 below transaction version 1."""
    world = producer.world
    world.broker.image.features["transaction.version"] = level
    record = transaction_records.transaction_state(
        "id",
        state="Empty",
        producer_id=1,
        previous_producer_id=1,
        next_producer_id=-1,
        producer_epoch=0,
        timeout_ms=1,
        partitions=(),
        start_ms=-1,
        update_ms=0,
        client_version=0,
    )
    _, value = world.broker.transactions.encode(record)
    assert value[:2] == (b"\0\1" if level else b"\0\0")


def test_the_end_of_a_large_transaction_takes_several_turns(disk, monkeypatch):
    """Its markers must not hold the loop."""
    monkeypatch.setattr("pykafkad.server.transaction_markers.AT_ONCE", 10)
    clock = SlowClock()
    world = World("/data", disk=disk, clock=clock)
    world.create_topic("t", 100)
    producer = Producer(world, world.connect()).find()
    assert producer.init() == "NONE"
    assert set(producer.add(*range(100))) == {"NONE"}
    clock.seconds = 0.0003
    assert producer.end() == "NONE"
    (transaction,) = [each for shard in world.broker.transactions.shards() for each in shard.transactions.values()]
    turns = 0
    while transaction.state != "CompleteCommit":
        assert transaction.state == "PrepareCommit"
        world.turn()
        turns += 1
    assert turns >= 2
    assert {world.broker.partitions.get("t", index).end_offset for index in range(100)} == {1}
