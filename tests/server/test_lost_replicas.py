"""Replicas whose log is out of service: others lead, nobody waits for them, and they are back when their log is."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.metadata import events
from pykafkad.metadata.placement import LOST_DIRECTORY
from pykafkad.server import directories
from pykafkad.server.full_disk import LOOK_SECONDS, ROOM_BYTES
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


def fail(log, code):
    log.fail(StorageFailure("write", log.directory, OSError(code, "refused")))


def state(world):
    return world.image.partition("t", 0)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_another_replica_leads(world, disk, code):
    """At once, whether or not the log may come back."""
    disk.free_bytes = 0
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    fail(log_of(world, leader), code)
    assert put(world, leader) == "KAFKA_STORAGE_ERROR"
    world.advance(0.2)
    assert (state(world).leader, state(world).isr) == (follower, (follower,))
    assert put(world, follower) == "NONE"
    disk.free_bytes = ROOM_BYTES
    world.advance(2 * LOOK_SECONDS)
    if code == errno.EIO:
        assert LOST_DIRECTORY in state(world).directories and state(world).isr == (follower,)
        world.stop_broker(leader)
        world.start_broker(leader)
    world.until(lambda: len(state(world).isr) == 2)
    assert LOST_DIRECTORY not in state(world).directories
    assert log_of(world, leader).end_offset == log_of(world, follower).end_offset == 2


def test_a_follower_that_is_out_of_service_holds_no_acknowledgement_up(world, disk):
    """Its leader does not wait for `replica.lag.time.max.ms`."""
    disk.free_bytes = 0
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    fail(log_of(world, follower), errno.ENOSPC)
    world.advance(0.2)
    assert (state(world).leader, state(world).isr) == (leader, (leader,))
    assert put(world, leader) == "NONE"
    disk.free_bytes = ROOM_BYTES
    world.until(lambda: len(state(world).isr) == 2)


def test_the_last_one_in_sync_stays_the_leader_and_comes_back(world, disk):
    """As where all brokers have their data on one disk, which is full for a while."""
    disk.free_bytes = 0
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    fail(log_of(world, leader), errno.ENOSPC)
    fail(log_of(world, follower), errno.ENOSPC)
    world.advance(1.0)
    (last,) = state(world).isr
    assert state(world).leader == last and put(world, last) == "KAFKA_STORAGE_ERROR"
    disk.free_bytes = ROOM_BYTES
    world.until(lambda: len(state(world).isr) == 2)
    assert put(world, last) == "NONE" and LOST_DIRECTORY not in state(world).directories


def test_one_that_fails_again_and_again_is_known_as_it_is(world, disk):
    leader, follower = created(world)
    log = log_of(world, leader)
    for _ in range(3):
        fail(log, errno.ENOSPC)
        world.until(lambda: state(world).isr == (follower,))
        world.until(lambda: len(state(world).isr) == 2)
    assert LOST_DIRECTORY not in state(world).directories and log.offline is None


def test_a_partition_with_one_replica_stays_where_it_is(world, disk):
    world.create_topic("t", 1, 1)
    world.advance(0.5)
    (only,) = state(world).replicas
    assert put(world, only) == "NONE"
    disk.free_bytes = 0
    fail(log_of(world, only), errno.ENOSPC)
    world.advance(1.0)
    assert state(world).leader == only and LOST_DIRECTORY not in state(world).directories
    disk.free_bytes = ROOM_BYTES
    world.until(lambda: log_of(world, only).offline is None)
    assert put(world, only) == "NONE"


def test_an_assignment_that_is_out_of_date_is_not_asked_for_again(world, disk, monkeypatch):
    """A controller in another process is asked until it answers: by then the log may be back."""
    asked = []

    def recorded(*fields):
        asked.append(events.AssignReplicasToDirs(*fields))
        return asked[-1]

    monkeypatch.setattr(directories, "AssignReplicasToDirs", recorded)
    leader, _ = created(world)
    disk.free_bytes = 0
    fail(log_of(world, leader), errno.ENOSPC)
    world.advance(0.2)
    (lost,) = asked
    assert list(lost.replicas.values()) == [LOST_DIRECTORY]
    disk.free_bytes = ROOM_BYTES
    world.until(lambda: len(state(world).isr) == 2)
    assert lost.replicas == {} and len(asked) == 2


def test_a_replica_that_is_back_leads_where_nobody_does(disk):
    """It left while too few were in sync to commit anything, and so has everything."""
    world = BrokersWorld(2, disk=disk, default_replication_factor=2, min_insync_replicas=2)
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    disk.free_bytes = 0
    fail(log_of(world, leader), errno.ENOSPC)
    world.until(lambda: state(world).leader == follower)
    world.process.kill_broker(follower)
    world.until(lambda: state(world).leader == -1)
    disk.free_bytes = ROOM_BYTES
    world.until(lambda: state(world).leader == leader)
    world.start_broker(follower)
    world.until(lambda: len(state(world).isr) == 2)
    assert put(world, leader) == "NONE"
    world.stop()


def test_controllers_elsewhere_are_told_by_a_request(disk):
    world = QuorumWorld(disk=disk, default_replication_factor=3)
    world.create_topic("t", 1, 3)
    world.until(lambda: len(state(world).isr) == 3, 90)
    leader = state(world).leader
    log = world.broker(leader).partitions.get("t", 0)
    assert log.end_offset == 0
    disk.free_bytes = 0
    fail(log, errno.ENOSPC)
    world.until(lambda: len(state(world).isr) == 2, 90)
    assert state(world).leader not in (leader, -1) and LOST_DIRECTORY in state(world).directories
    disk.free_bytes = ROOM_BYTES
    world.until(lambda: len(state(world).isr) == 3, 90)
    assert LOST_DIRECTORY not in state(world).directories and log.offline is None
    world.stop()
