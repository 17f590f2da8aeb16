"""Moving a log between directories: records that were synced in the old directory are synced in the new one."""

from __future__ import annotations

import random
from copy import copy

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.moves import NO_RATE_SECONDS, FutureReplica, MoveQueue
from tests.log.settings import append, batch, open_directory, open_log
from tests.simulation.crash_disk import CrashDisk
from tests.simulation.disk import MemoryDisk


def copied(disk):
    """A log and its whole, synced copy in another directory."""
    source, target = open_directory("/a", disk=disk), open_directory("/b", disk=disk)
    log = open_log(source)
    append(log, batch(), batch())
    future = FutureReplica(log, source, target)
    while (step := future.next_step()) is not None:
        step()
    return log, future


def test_a_sync_that_ends_after_a_move_does_not_raise_the_recovery_point():
    """The sync was of the files in the old directory."""
    disk = MemoryDisk()
    log, future = copied(disk)
    append(log, batch())
    job = log.whole_sync_job()
    job.run()
    future.take_place()
    job.finish()
    content = disk.files["/b/t-0/00000000000000000000.log"]
    assert log.recovery_point == 0 and log.end_offset == 3
    log.flush()
    assert log.recovery_point == 3 and content.synced == bytes(content.data)


def test_a_sync_of_files_that_a_move_has_renamed_fails_nothing():
    disk = MemoryDisk()
    log, future = copied(disk)
    log.roll(0)
    append(log, batch())
    job = log.sync_job()
    for segment in log.segments:
        segment.drop_file()
    future.take_place()
    job.run()
    job.finish()
    assert log.offline is None and log.recovery_point == 0


def test_what_was_synced_before_the_move_is_synced_after_it():
    """The copy is synced again while the recovery point is above its last sync; indexes and leader epochs too."""
    disk = MemoryDisk()
    log, future = copied(disk)
    append(log, batch())
    log.roll(0)
    append(log, batch())
    log.flush()
    assert log.recovery_point == 4
    step = future.next_step()
    step()
    assert future.next_step() is None
    future.take_place()
    names = sorted(
        name for name in disk.files if name.startswith("/b/t-0/") and not name.endswith("partition.metadata")
    )
    assert len(names) >= 5 and any(name.endswith("leader-epoch-checkpoint") for name in names)
    for name in names:
        assert disk.files[name].synced == bytes(disk.files[name].data), name


def test_a_failed_sync_of_the_old_files_does_not_take_a_moved_log_out_of_service():
    disk = MemoryDisk()
    log, future = copied(disk)
    append(log, batch())
    job = log.whole_sync_job()
    future.take_place()
    job.failed(StorageFailure("sync", "/a/t-0/00000000000000000000.log", "simulated"))
    assert log.offline is None
    append(log, batch())
    log.flush()
    assert log.recovery_point == log.end_offset == 4


def test_deleted_records_stay_deleted_if_the_broker_is_killed_soon_after_the_move():
    """The start of the log stands in a checkpoint of the old directory, and not yet in one of the new directory."""
    disk = MemoryDisk()
    source, target = open_directory("/a", disk=disk), open_directory("/b", disk=disk)
    log = open_log(source)
    append(log, batch(), batch(), batch())
    log.delete_records(2)
    source.checkpoint()
    future = FutureReplica(log, source, target)
    while (step := future.next_step()) is not None:
        step()
    future.take_place()
    disk.kill()
    log = open_log(open_directory("/b", disk=disk))
    assert (log.log_start_offset, log.end_offset) == (2, 3)


def test_a_snapshot_that_waits_for_a_sync_goes_to_the_new_folder():
    disk = MemoryDisk()
    log, future = copied(disk)
    log.late_snapshot = f"{log.directory}/00000000000000000002.snapshot", b"snapshot"
    future.take_place()
    assert log.late_snapshot == ("/b/t-0/00000000000000000002.snapshot", b"snapshot")


def test_checkpoints_of_an_earlier_partition_do_not_truncate_a_moved_one():
    disk = MemoryDisk()
    earlier = open_directory("/b", disk=disk)
    log = open_log(earlier)
    append(log, *[batch() for _ in range(20)])
    log.delete_records(15)
    log.flush()
    earlier.checkpoint()
    earlier.delete_partition(log.topic, log.partition)
    disk.kill()
    log, future = copied(disk)
    future.take_place()
    disk.kill()
    log = open_log(open_directory("/b", disk=disk))
    assert (log.log_start_offset, log.end_offset) == (0, 2)


def moving(name, source, target):
    """A move of a new log from one directory to another."""
    return FutureReplica(open_log(source, topic=name), source, target)


def test_moves_are_made_in_the_order_in_which_they_were_asked_for():
    queue, disk = MoveQueue(), MemoryDisk()
    source, target = open_directory("/a", disk=disk), open_directory("/b", disk=disk)
    first, second = moving("z", source, target), moving("a", source, target)
    queue.add(first)
    queue.add(second)
    assert (queue.first(), len(queue), second in queue) == (first, 2, True)
    assert queue.remove("z", 0) is first
    assert (queue.first(), first in queue, queue.remove("z", 0)) == (second, False, None)
    assert queue.into(target) == [second] and queue.out_of(source) == [second]
    assert queue.into(source) == queue.out_of(target) == []


@pytest.mark.parametrize(
    ("rate", "rest_until"),
    [(1_000_000, 101.0), (2**40, 100.0), (0, 100.0 + NO_RATE_SECONDS)],
    ids=["limited", "too short a pause", "stopped"],
)
def test_a_step_is_followed_by_the_pause_that_the_rate_asks_for(rate, rest_until):
    queue = MoveQueue()
    queue.copied(1_000_000, rate, 100.0)
    assert queue.rest_until == rest_until


def test_the_copy_is_found_if_a_power_loss_takes_its_new_name_and_not_the_end_of_the_old_folder():
    class Least(random.Random):
        def randrange(self, *_):
            return 0

    disk = CrashDisk()
    source = open_directory("/a", disk=disk)
    open_directory("/b", disk=disk)
    disk.commit()
    disk.names_apart = True
    disk.kill()
    log, future = copied(disk)
    name = future.path.rpartition("/")[2]
    future.take_place()
    future.source.release(log)
    disk.sync_directory(source.path)
    disk.lose_power(Least(1))
    assert not any(name.startswith("/a/t-0/") for name in disk.files)
    target = open_directory("/b", disk=disk)
    assert target.futures == {("t", 0): name}
    target.promote_future("t", 0)
    assert open_log(target).end_offset == 2


def test_a_segment_that_is_replaced_after_the_last_sync_is_synced_with_its_copy():
    """The recovery point is above it, so no later sync of the log would count it."""
    disk = MemoryDisk()
    source, target = open_directory("/a", disk=disk), open_directory("/b", disk=disk)
    log = open_log(source)
    append(log, batch(), batch())
    log.roll(0)
    append(log, batch())
    log.flush()
    future = FutureReplica(log, source, target)
    while (step := future.next_step()) is not None:
        step()
    cleaned = log.segments[0] = copy(log.segments[0])
    content = cleaned.file.pread(cleaned.size, 0)
    disk.rename(cleaned.file.path, f"{cleaned.file.path}.deleted")
    cleaned.file = disk.open(f"{cleaned.prefix}.log", create=True)
    cleaned.file.pwrite(content, 0)
    while (step := future.next_step()) is not None:
        step()
    future.take_place()
    copied = disk.files["/b/t-0/00000000000000000000.log"]
    assert bytes(copied.data) == content and copied.synced == content
