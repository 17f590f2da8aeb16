"""Disk failures: the log goes offline, half-written batches do not count, reads go on, and a restart repairs it."""

from __future__ import annotations

import errno
import random

import pytest

from pykafkad.errors import StorageFailure
from tests import seeds
from tests.log.settings import NOW_MS, append, batch, content, offsets_of, open_directory, open_log
from tests.simulation.disk import MemoryDisk


@pytest.mark.parametrize("size", [100, 20_000])
@pytest.mark.parametrize("part", [0, 1, 70])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_takes_the_log_offline(size, part, code):
    """The end offset goes back, appends fail and reads go on, even if a part of the batch reached the file."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, batch(2), batch(2))
    disk.fail("write", part=part, error=code)
    with pytest.raises(StorageFailure) as caught:
        append(log, batch(2, size))
    assert str(log.offline) == str(caught.value)
    assert (log.end_offset, log.written_end_offset) == (4, 4)
    with pytest.raises(StorageFailure):
        log.append(batch(), NOW_MS)
    assert offsets_of(log.read(0, 1 << 20, end_offset=log.high_watermark)) == [0, 1, 2, 3]
    assert len(disk.files[log.segments[0].file.path].data) == log.segments[0].size


def test_a_kept_failure_holds_nothing_of_the_request():
    """An exception holds the frames that it was raised through, and the batch's buffer must be free for the next
    request."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    disk.fail("write", error=errno.ENOSPC)
    for _ in range(2):
        frame = bytearray(batch(2, 20_000))
        with pytest.raises(StorageFailure):
            _append_view(log, frame)
        frame.append(0)  # This raises BufferError while a view of the buffer exists.
    assert log.offline is not None and log.offline.__traceback__ is None and log.offline.__context__ is None


def _append_view(log, frame):
    view = memoryview(frame)
    log.append(view, NOW_MS)
    log.write_pending()


def test_if_the_truncation_fails_too_the_next_start_truncates():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, batch(2))
    disk.fail("write", part=50)
    disk._failures["truncate"] = [1, True, 0]
    with pytest.raises(StorageFailure):
        append(log, batch(2))
    assert len(disk.files[log.segments[0].file.path].data) == log.segments[0].size + 50
    disk.heal()
    directory.close()
    directory = open_directory(disk=disk)
    assert not directory.clean, "a log that went offline is recovered at the next start"
    log = open_log(directory)
    assert (log.end_offset, log.offline) == (2, None)
    assert append(log, batch()) == [2]


def test_a_failed_sync_is_final():
    """The kernel may have dropped the pages, so a second sync that succeeds proves nothing."""
    log = open_log(open_directory(disk=(disk := MemoryDisk())))
    append(log, batch())
    disk.fail("sync", error=errno.EIO)
    with pytest.raises(StorageFailure):
        log.flush()
    assert log.offline is not None and log.recovery_point == 0
    syncs = disk.calls["sync"]
    with pytest.raises(StorageFailure):
        log.flush()
    assert disk.calls["sync"] == syncs


def test_a_full_disk_takes_only_the_written_log_offline():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    first, second = open_log(directory), open_log(directory, partition=1)
    append(first, batch())
    append(second, batch())
    disk.fail("write")
    with pytest.raises(StorageFailure):
        append(first, batch())
    append(second, batch())
    assert (first.offline is not None, second.offline) == (True, None)


@pytest.mark.parametrize("operation", ["write", "open", "create", "rename", "sync", "truncate", "list", "read"])
def test_no_failing_call_loses_an_acknowledged_batch(operation):
    """The n-th call of each operation fails, for every n. Acknowledged batches are there after the next start."""
    for at in seeds.sampled(range(1, 400), 4):
        disk = MemoryDisk()
        chance = random.Random(at)
        acknowledged = []
        directory = log = None
        try:
            directory = open_directory(disk=disk)
            log = open_log(directory, segment_bytes=600, index_interval_bytes=200)
            log.load()
            disk.fail(operation, at=at, part=chance.randrange(200), sticky=at % 2)
            for number in range(12):
                before = log.end_offset
                append(log, batch(2, chance.randrange(200), producer_id=1, producer_epoch=0, base_sequence=2 * number))
                acknowledged = content(log)
                assert acknowledged[-1][0].base_offset == before
            directory.checkpoint()
            log.run_retention(NOW_MS)
            directory.close()
        except StorageFailure:
            pass
        reached = not disk._failures or disk._failures[operation][0] <= 0
        disk.heal()
        disk.kill()
        log = open_log(open_directory(disk=disk), segment_bytes=600, index_interval_bytes=200)
        assert content(log)[: len(acknowledged)] == acknowledged, (operation, at)
        assert log.producers.get(1) is None or log.producers[1].next_sequence == log.end_offset
        append(log, batch())
        if not reached:
            break
    else:
        pytest.fail("the run never got past the injected failures")


def test_a_lack_of_descriptors_does_not_take_the_log_offline():
    """At the first use and at a roll the request fails, nothing is lost or doubled, and the next request succeeds."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, segment_bytes=300)
    for fails in ("create", "create", "open", "create", "open"):
        disk.fail(fails, error=errno.EMFILE)
        end_offset = log.end_offset if log.is_loaded else 0
        sent = batch(2, 60, producer_id=7, producer_epoch=0, base_sequence=end_offset)
        with pytest.raises(StorageFailure) as failed:
            log.append(sent, NOW_MS)
        assert failed.value.is_passing and log.offline is None
        disk.heal()
        assert log.append(sent, NOW_MS).base_offset == end_offset
        log.write_pending()
    assert log.end_offset == 10 and len(log.segments) > 2
    disk.kill()
    log = open_log(open_directory(disk=disk), segment_bytes=300)
    assert [header.base_offset for header, _ in content(log)] == [0, 2, 4, 6, 8]


def recovered(disk, segment_bytes=300):
    """A log recovered after a kill, with unsynced segments and no open file."""
    log = open_log(open_directory(disk=disk), segment_bytes=segment_bytes)
    append(log, *[batch(1, 100) for _ in range(5)])
    disk.kill()
    directory = open_directory(disk=disk)
    log = open_log(directory, segment_bytes=segment_bytes)
    assert log.is_loaded and all(segment.open_file is None for segment in log.segments)
    return directory, log


@pytest.fixture
def without_descriptors(monkeypatch):
    """A function: after its call, no file can be opened and kept open."""

    def refuse(disk, path, *, create=False):
        raise StorageFailure("open", path, OSError(errno.EMFILE, "Too many open files"))

    return lambda: monkeypatch.setattr(MemoryDisk, "open", refuse)


@pytest.mark.parametrize("whole", [True, False])
def test_a_late_sync_of_a_deleted_topic_does_not_fail(whole):
    """A failed sync would take the whole directory out of service."""
    directory, log = recovered(MemoryDisk())
    job = log.whole_sync_job() if whole else log.sync_job()
    directory.delete_partition(log.topic, log.partition)
    job.run()
    job.finish()


def test_a_late_sync_of_segments_removed_by_retention_does_not_fail():
    _, log = recovered(MemoryDisk())
    job = log.whole_sync_job()
    assert log.run_retention(NOW_MS + 604_800_001)
    job.run()
    job.finish()
    assert log.offline is None


def test_a_sync_keeps_no_descriptor(without_descriptors):
    _, log = recovered(MemoryDisk())
    without_descriptors()
    log.flush()
    assert (log.offline, log.recovery_point) == (None, log.end_offset)


@pytest.mark.parametrize("whole", [True, False])
def test_leader_epochs_are_written_with_the_next_sync_after_a_lack_of_descriptors(whole):
    """The records are synced. The recovery point stays until the epochs are, so that recovery can rebuild them."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk), segment_bytes=300)
    append(log, *[batch(1, 100) for _ in range(5)])
    log.assign_epoch(7)
    append(log, batch(1, 1))
    begun = log.recovery_point
    disk.fail("write", error=errno.EMFILE)
    job = log.whole_sync_job() if whole else log.sync_job()
    disk.heal()
    job.run()
    job.finish()
    assert (log.offline, log.recovery_point, log.epochs.changed) == (None, begun, True)
    job = log.whole_sync_job() if whole else log.sync_job()
    job.run()
    job.finish()
    assert log.recovery_point > begun and not log.epochs.changed


def test_a_sync_can_be_tried_again_after_a_lack_of_descriptors():
    _, log = recovered(MemoryDisk())
    job = log.sync_job()
    job.failed(StorageFailure("sync", log.directory, OSError(errno.EMFILE, "Too many open files")))
    assert log.offline is None
    job.failed(StorageFailure("sync", log.directory, OSError(errno.EIO, "Input/output error")))
    assert log.offline is not None


@pytest.mark.parametrize("size", [100, 20_000])
def test_an_append_can_be_tried_again_after_a_lack_of_descriptors(size, without_descriptors, monkeypatch):
    _, log = recovered(MemoryDisk(), segment_bytes=1 << 20)
    end_offset = log.end_offset
    without_descriptors()
    for sequence in (0, 0):
        with pytest.raises(StorageFailure) as caught:
            append(log, batch(1, size, producer_id=7, producer_epoch=0, base_sequence=sequence))
        assert caught.value.is_passing
        assert (log.offline, log.end_offset, log.producers.get(7)) == (None, end_offset, None)
    monkeypatch.undo()
    assert append(log, batch(1, size, producer_id=7, producer_epoch=0, base_sequence=0)) == [end_offset]
    assert log.high_watermark == end_offset + 1
