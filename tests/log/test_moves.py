"""Moving a log between directories: records that were synced in the old directory are synced in the new one."""

from __future__ import annotations

from pykafkad.log.moves import FutureReplica
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
