"""Logs that a full disk takes out of service on one of several brokers, and their way back."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import StorageFailure, name
from pykafkad.log.follower import TruncateTo
from pykafkad.server import full_disk
from pykafkad.server.full_disk import LOOK_SECONDS
from tests.handlers.requests import batch, produce
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


def created(world):
    """The node ids of the leader and the follower of t-0, when both are in sync."""
    world.create_topic("t", 1, 2)
    world.until(lambda: len(world.image.partition("t", 0).isr) == 2)
    leader = world.leader("t", 0)
    return leader, 3 - leader


def log_of(world, node_id):
    return world.broker(node_id).partitions.get("t", 0)


def put(world, leader, acks=-1):
    answer = world.ask(leader, produce("t", {0: batch(b"x")}, acks=acks), 12)
    return name(answer.responses[0].partition_responses[0].error_code)


def fill(log):
    log.fail(StorageFailure("write", log.directory, OSError(errno.ENOSPC, "No space left on device")))


def test_what_followers_have_fetched_meanwhile_stays_committed(world, monkeypatch):
    """The log out of service can be read, and is loaded as it was when the work began."""
    leader, _ = created(world)
    log = log_of(world, leader)
    assert put(world, leader) == "NONE"
    finish = full_disk.ReopenJob.finish

    def committed_meanwhile(job):
        job.log.high_watermark = 2
        finish(job)

    monkeypatch.setattr(full_disk.ReopenJob, "finish", committed_meanwhile)
    assert put(world, leader) == "NONE" and log.end_offset == 2
    log.high_watermark = 1
    fill(log)
    assert put(world, leader) == "KAFKA_STORAGE_ERROR"
    world.until(lambda: log.offline is None)
    assert log.high_watermark == 2


def test_a_log_that_has_lost_records_does_not_come_back(world):
    """It would lead on in its epoch, and have its follower cut what both had acknowledged."""
    leader, follower = created(world)
    log = log_of(world, leader)
    assert put(world, leader) == put(world, leader) == "NONE"
    fill(log)
    assert put(world, leader) == "KAFKA_STORAGE_ERROR"
    active = log.segments[-1]
    active.file.pwrite(b"\xff", active.written_size - 1)
    world.advance(3 * LOOK_SECONDS)
    assert str(log.offline).endswith("the files end at offset 1, not 2")
    assert log_of(world, follower).end_offset == 2


def test_a_cut_that_finds_no_space_is_no_end_of_service(world, disk, monkeypatch, capfd):
    """The log serves on; what takes it out of service later is noticed."""
    leader, follower = created(world)
    log, broker = log_of(world, follower), world.broker(follower)
    assert put(world, leader) == put(world, leader) == "NONE"
    world.advance(10)
    broker.directories.of(log).checkpoint()
    fetcher = broker.replication.fetchers._by_leader[leader]
    write = type(disk).write

    def refuse(disk, path, data, *, sync=False):
        if path.endswith(".fresh.tmp"):
            raise StorageFailure("write", path, OSError(errno.ENOSPC, "No space left on device"))
        write(disk, path, data, sync=sync)

    with monkeypatch.context() as patch:
        patch.setattr(type(disk), "write", refuse)
        fetcher._perform(fetcher._followed[log], [TruncateTo(1)])
    lines = [line for line in capfd.readouterr().err.splitlines() if "No space left" in line]
    assert log.offline is None and len(lines) == 1 and "access-failed" in lines[0]
    world.advance(1)
    assert put(world, leader) == "NONE"
    world.until(lambda: log.end_offset == 3)
    fill(log)
    put(world, leader, acks=1)
    world.advance(2 * LOOK_SECONDS)
    world.until(lambda: log.offline is None and log.end_offset == 4)


@pytest.mark.parametrize("is_follower_stopped", [False, True])
def test_what_was_written_before_the_failed_write_of_a_turn_counts(disk, is_follower_stopped):
    """The leader's replica knows its end when the log is back: otherwise a follower that has everything would be ahead
    of it, and could never come back into the ISR."""
    disk.free_bytes *= 2
    world = BrokersWorld(2, disk=disk, default_replication_factor=2, min_insync_replicas=2)
    leader, follower = created(world)
    log = log_of(world, leader)
    assert put(world, leader) == "NONE"
    log.append(memoryview(bytearray(batch(b"y" * 20_000))), world.runtime.now_ms)
    world.broker(leader).commits.mark(log)
    fill(log)
    assert log.written_end_offset == 2 and log.high_watermark == 1
    if is_follower_stopped:
        world.stop_broker(follower)
    world.until(lambda: log.offline is None)
    if is_follower_stopped:
        world.start_broker(follower)
    world.until(lambda: len(log.replica.isr) == 2 and log.high_watermark == 2)
    assert put(world, leader) == "NONE"
    world.stop()


def fill_directory(disk, directory):
    """Nothing can be written there until the disk heals."""
    call = disk._call
    disk._call = lambda operation, path, data=None: call(
        operation if path.startswith(directory) else f"other {operation}", path, data
    )
    disk.fail("write", sticky=True)


@pytest.mark.parametrize("log_dirs", ["/data", "/a,/b"])
def test_one_of_several_brokers_that_stops_on_a_full_disk_comes_to_its_end(disk, log_dirs):
    """It is not marked as stopped cleanly, and starts again when there is space: no directory is kept locked."""
    world = BrokersWorld(2, disk=disk, default_replication_factor=2, log_dirs=log_dirs)
    leader, follower = created(world)
    assert put(world, leader) == "NONE"
    ended = []
    fill_directory(disk, world.broker(follower).directories.metadata.path)
    world.process.stop_broker(follower, lambda: ended.append(True))
    world.until(lambda: ended)
    disk.heal()
    world.start_broker(follower)
    world.until(lambda: len(world.image.partition("t", 0).isr) == 2)
    assert world.runtime.metrics.unexpected_errors == 0
    world.stop()


def test_a_broker_beside_a_quorum_that_stops_on_a_full_disk_comes_to_its_end(disk):
    world = QuorumWorld(disk=disk, default_replication_factor=3)
    world.create_topic("t", 1, 3)
    ended, started = [], []
    fill_directory(disk, world.broker(3).directories.metadata.path + "/recovery-point")
    world.process.stop_broker(3, lambda: ended.append(True))
    world.until(lambda: ended, 90)
    disk.heal()
    world.process.start_broker(3, lambda: started.append(True))
    world.until(lambda: started, 90)
    assert world.runtime.metrics.unexpected_errors == 0
    world.stop()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_broker_that_is_stopped_makes_and_recovers_nothing_more(world, disk, is_killed):
    """Its directories may be another's by now."""
    leader, _ = created(world)
    old = world.broker(leader)
    log = old.partitions.get("t", 0)
    disk.code, disk.refuses = errno.ENOSPC, old.directories.metadata.path
    world.create_topic("u", 2, 2)
    world.advance(1.0)
    unmade = old.partitions.get("u", 0)
    fill(log)
    assert put(world, leader) == "KAFKA_STORAGE_ERROR" and unmade.offline is not None
    disk.code = None
    (world.process.kill_broker if is_killed else world.stop_broker)(leader)
    world.advance(3 * LOOK_SECONDS)
    assert old.partitions.get("u", 0) is unmade and log.offline is not None
    owners = {type(key[0]).__name__ for key in world.runtime.timers._at if isinstance(key, tuple)}
    assert not owners & {"FullDisk", "UnmadePartitions"}
