"""Moving a log between directories: records that were synced in the old directory are synced in the new one."""

from __future__ import annotations

import pytest

from pykafkad.log.moves import NO_RATE_SECONDS, FutureReplica, MoveQueue
from tests.log.settings import append, batch, open_directory, open_log
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
    future.complete()
    future.take_place()
    job.finish()
    content = disk.files["/b/t-0/00000000000000000000.log"]
    assert log.recovery_point == 3 and content.synced == bytes(content.data)


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
    future.complete()
    future.take_place()
    disk.kill()
    log = open_log(open_directory("/b", disk=disk))
    assert (log.log_start_offset, log.end_offset) == (0, 2)


def test_the_new_files_are_synced_before_the_old_ones_are_removed(monkeypatch):
    disk = MemoryDisk()
    log, future = copied(disk)
    log.flush()
    done = []
    path = future.path
    monkeypatch.setattr(MemoryDisk, "sync_directory", lambda _, path: done.append(path))
    future.complete()
    assert done == [path]
    future.take_place()
    assert done == [path, "/b"]


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
