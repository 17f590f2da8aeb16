"""A log that a full disk took out of service is recovered while the broker runs."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.reopening import ReopenJob, can_reopen
from tests.log.settings import NOW_MS, append, batch, content, offsets_of, open_directory, open_log
from tests.simulation.disk import MemoryDisk


def reopen(directory, log):
    job = ReopenJob(log, NOW_MS, directory.offsets)
    job.run()
    job.finish()


@pytest.mark.parametrize("part", [0, 1, 70, 10_000])
@pytest.mark.parametrize("can_truncate", [True, False])
def test_the_log_ends_with_what_was_acknowledged(part, can_truncate):
    """Even if the file holds the whole refused batch. Its producer may send it again."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, segment_bytes=400)
    for sequence in range(5):
        append(log, batch(1, 100, producer_id=7, producer_epoch=0, base_sequence=sequence))
    disk.fail("write", part=part)
    if not can_truncate:
        disk._failures["truncate"] = [1, False, 0]
    refused = batch(1, 100, producer_id=7, producer_epoch=0, base_sequence=5)
    with pytest.raises(StorageFailure):
        append(log, refused)
    assert can_reopen(log) and log.producers[7].next_sequence == 6
    disk.heal()
    before = log.read(0, 1 << 20, end_offset=log.high_watermark)
    reopen(directory, log)
    assert log.offline is None and not can_reopen(log)
    assert (log.end_offset, log.high_watermark, log.producers[7].next_sequence) == (5, 5, 5)
    assert offsets_of(before)[0] == 0, "a read that is under way goes on"
    assert append(log, batch(1, 100, producer_id=7, producer_epoch=0, base_sequence=5)) == [5]
    assert [header.base_offset for header, _ in content(log)] == list(range(6))


def test_a_disk_that_is_still_full_can_be_tried_again():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, batch(2))
    disk.fail("write", part=50)
    disk._failures["truncate"] = [1, True, 0]
    with pytest.raises(StorageFailure):
        append(log, batch(2))
    with pytest.raises(StorageFailure):
        reopen(directory, log)
    assert log.offline is not None and log.end_offset == 2
    disk.heal()
    reopen(directory, log)
    assert append(log, batch()) == [2]


def test_a_log_that_could_not_be_opened_is_opened_at_its_next_use():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch(2))
    directory.close()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    assert not log.is_loaded
    disk.fail("open", sticky=True)
    with pytest.raises(StorageFailure):
        log.load()
    disk.heal()
    assert can_reopen(log)
    reopen(directory, log)
    assert (log.end_offset, log.offline) == (2, None)


@pytest.mark.parametrize(("operation", "code"), [("write", errno.EIO), ("sync", errno.ENOSPC)])
def test_other_failures_are_final(operation, code):
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, batch(2))
    disk.fail(operation, error=code)
    with pytest.raises(StorageFailure):
        append(log, batch(2))
        log.flush()
    assert log.offline is not None and not can_reopen(log)
