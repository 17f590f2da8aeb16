"""Replicas whose log is out of service until a restart: others lead, nobody waits for them, and they come back."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log import recovery
from pykafkad.metadata.placement import LOST_DIRECTORY
from pykafkad.server.full_disk import LOOK_SECONDS
from tests.server.test_full_disks_of_replicas import created, log_of, put
from tests.server.test_quorum_cluster import QuorumWorld
from tests.server.test_unmade_partitions import RefusingDisk
from tests.simulation.brokers_world import BrokersWorld


@pytest.fixture
def disk():
    return RefusingDisk()


@pytest.fixture
def world(disk):
    made = BrokersWorld(2, disk=disk, default_replication_factor=2)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def fail(log, code=errno.EIO):
    log.fail(StorageFailure("write", log.directory, OSError(code, "refused")))


def state(world):
    return world.image.partition("t", 0)


def test_another_replica_leads_at_once(world):
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    fail(log_of(world, leader))
    assert put(world, leader) == "KAFKA_STORAGE_ERROR"
    world.advance(0.2)
    assert (state(world).leader, state(world).isr) == (follower, (follower,))
    assert put(world, follower) == "NONE"
    world.advance(2 * LOOK_SECONDS)
    assert LOST_DIRECTORY in state(world).directories and state(world).isr == (follower,)
    world.stop_broker(leader)
    world.start_broker(leader)
    world.until(lambda: len(state(world).isr) == 2)
    assert LOST_DIRECTORY not in state(world).directories
    assert log_of(world, leader).end_offset == log_of(world, follower).end_offset == 2


def test_a_disk_that_is_full_for_a_while_writes_no_metadata(world, disk):
    """Its metadata log would fail, too, and for good; the partition comes back by itself."""
    leader, _ = created(world)
    assert put(world, leader) == "NONE"
    offset = world.image.offset
    disk.free_bytes = 0
    disk.fail("write", sticky=True, error=errno.ENOSPC)
    assert put(world, leader) == "KAFKA_STORAGE_ERROR"
    world.advance(3.0)
    assert world.image.offset == offset
    disk.heal()
    disk.free_bytes = RefusingDisk.free_bytes
    world.advance(2 * LOOK_SECONDS)
    assert state(world).leader == leader and put(world, leader) == "NONE"
    world.create_topic("u", 1, 2)


def test_a_full_disk_that_fails_otherwise_hands_over(world, monkeypatch):
    """The log was to come back, and then nobody knew what the disk holds."""

    def refuse(disk, directory, *_):
        raise StorageFailure("read", directory, OSError(errno.EIO, "Input/output error"))

    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    monkeypatch.setattr(recovery, "load", refuse)
    fail(log_of(world, leader), errno.ENOSPC)
    world.until(lambda: state(world).leader == follower)


def test_a_follower_that_is_out_of_service_holds_no_acknowledgement_up(world):
    """Its leader does not wait for `replica.lag.time.max.ms`."""
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    fail(log_of(world, follower))
    world.advance(0.2)
    assert (state(world).leader, state(world).isr) == (leader, (leader,))
    assert put(world, leader) == "NONE"


def test_the_last_one_in_sync_stays_the_leader(world):
    """Nobody else may lead, and a restart brings it back."""
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    fail(log_of(world, leader))
    fail(log_of(world, follower))
    world.advance(1.0)
    (last,) = state(world).isr
    assert state(world).leader == last and put(world, last) == "KAFKA_STORAGE_ERROR"


def test_one_that_has_company_in_the_isr_only_later_hands_over_then(world):
    """Its proposal to take the other one in was on its way when its log failed."""
    leader, follower = created(world)
    log, broker = log_of(world, leader), world.broker(leader)
    assert put(world, leader) == "NONE"
    isr, log.replica.isr = log.replica.isr, (leader,)
    fail(log)
    assert put(world, leader) == "KAFKA_STORAGE_ERROR"
    world.advance(0.2)
    assert state(world).leader == leader
    log.replica.isr = isr
    broker.role_changed(log, state(world))
    world.until(lambda: state(world).leader == follower)


def test_a_request_that_is_late_is_put_right(world):
    """The replica was reassigned away and back meanwhile, say. Its log is in service."""
    leader, _ = created(world)
    assert put(world, leader) == "NONE"
    epoch = state(world).leader_epoch
    world.broker(leader).directories.name_again(log_of(world, leader), is_lost=True)
    world.until(lambda: state(world).leader_epoch > epoch)
    world.until(lambda: len(state(world).isr) == 2)
    assert LOST_DIRECTORY not in state(world).directories


def test_a_replica_that_is_named_again_leads_where_nobody_does(disk):
    """It left while too few were in sync to commit anything, and so has everything."""
    world = BrokersWorld(2, disk=disk, default_replication_factor=2, min_insync_replicas=2)
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    broker, log = world.broker(leader), log_of(world, leader)
    broker.role_changed = lambda *_: None
    broker.directories.name_again(log, is_lost=True)
    world.until(lambda: state(world).leader == follower)
    world.process.kill_broker(follower)
    world.until(lambda: state(world).leader == -1)
    del broker.role_changed
    broker.directories.name_again(log, is_lost=False)
    world.until(lambda: state(world).leader == leader)
    world.start_broker(follower)
    world.until(lambda: len(state(world).isr) == 2)
    assert put(world, leader) == "NONE"
    world.stop()


def test_a_partition_with_one_replica_stays_where_it_is(world):
    world.create_topic("t", 1, 1)
    world.advance(0.5)
    (only,) = state(world).replicas
    assert put(world, only) == "NONE"
    fail(log_of(world, only))
    world.advance(1.0)
    assert state(world).leader == only and LOST_DIRECTORY not in state(world).directories


def test_controllers_elsewhere_are_told_by_a_request(disk):
    world = QuorumWorld(disk=disk, default_replication_factor=3)
    world.create_topic("t", 1, 3)
    world.until(lambda: len(state(world).isr) == 3, 90)
    leader = state(world).leader
    log = world.broker(leader).partitions.get("t", 0)
    assert log.end_offset == 0
    fail(log)
    world.until(lambda: len(state(world).isr) == 2, 90)
    assert state(world).leader not in (leader, -1) and LOST_DIRECTORY in state(world).directories
    world.stop()
