"""Segments of deleted records that a power loss brings back, some of them broken.

The names of their removal were not on the device yet. The crash machine found the first cases."""

from __future__ import annotations

import pytest

from pykafkad.log.partition_log import VERIFIED_CLIENT
from tests.log.settings import NOW_MS, append, batch, open_directory, open_log
from tests.log.test_power_loss import SEGMENT, SMALL, restarted, rolled
from tests.simulation.crash_disk import CrashDisk


@pytest.mark.parametrize("broken", [0, 9])
def test_broken_segments_below_the_start_that_come_back_do_not_move_the_start(broken):
    """Retention had removed them all and moved the recovery point. The next segment and the new names are lost."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    log.roll(NOW_MS)
    log.delete_records(12)
    log.run_retention(NOW_MS)
    directory.checkpoint()
    assert log.recovery_point == log.log_start_offset == 12
    for path in [path for path in disk.files if path.endswith(".deleted")]:
        disk.files[path.removesuffix(".deleted")] = disk.files.pop(path)
    del disk.files[SEGMENT.format(12, ".log")]
    disk.files[SEGMENT.format(broken, ".log")].data[70:] = bytes(10)
    for _ in range(2):
        directory, log = restarted(disk)
        assert (log.log_start_offset, log.end_offset) == (12, 12)
        directory.checkpoint()
    assert append(log, batch()) == [12]


@pytest.mark.parametrize("broken", [0, 9])
def test_broken_segments_below_the_start_that_come_back_end_no_log(broken):
    """Retention had removed them, and what was written since stays after a kill."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    log.roll(NOW_MS)
    log.delete_records(12)
    log.run_retention(NOW_MS)
    directory.checkpoint()
    append(log, batch(), batch())
    come_back(disk)
    disk.files[SEGMENT.format(broken, ".log")].data[70:] = bytes(10)
    for _ in range(2):
        directory, log = restarted(disk)
        assert (log.log_start_offset, log.end_offset) == (12, 14)


def with_a_producer(disk, **of_producer):
    """A log whose start is at 5, and where in the last deleted segment the one before its last batch ends."""
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, batch(3, 60))
    log.roll(NOW_MS)
    log.append(
        batch(1, 60, producer_id=7, producer_epoch=0, base_sequence=0, **of_producer), NOW_MS, origin=VERIFIED_CLIENT
    )
    log.write_pending()
    size_bytes = log.segments[-1].written_size
    if of_producer:
        log.append_end_marker(7, 0, 0, NOW_MS, is_abort=False)
    else:
        log.append(batch(1, 20, producer_id=7, producer_epoch=0, base_sequence=1), NOW_MS)
    log.write_pending()
    log.advance_high_watermark(log.written_end_offset)
    log.roll(NOW_MS)
    log.delete_records(5)
    log.run_retention(NOW_MS)
    directory.checkpoint()
    append(log, batch(), batch())
    return size_bytes


def come_back(disk):
    """Every deleted segment is there again, and no producer snapshot."""
    for path in [path for path in disk.files if path.endswith((".deleted", ".snapshot"))]:
        kept = disk.files.pop(path)
        if path.endswith(".deleted"):
            disk.files[path.removesuffix(".deleted")] = kept


def come_back_without_an_end(disk, size_bytes):
    """The same, and of the segment at 3 only so many bytes are left, before zeros."""
    come_back(disk)
    data = disk.files[SEGMENT.format(3, ".log")].data
    data[size_bytes:] = bytes(len(data) - size_bytes)


@pytest.mark.parametrize("is_short", [False, True])
def test_a_transaction_whose_end_is_missing_below_the_start_does_not_hang(is_short):
    """No other marker comes, so that readers of committed records would wait for ever."""
    disk = CrashDisk()
    size_bytes = with_a_producer(disk, is_transactional=True)
    come_back_without_an_end(disk, size_bytes)
    if is_short:
        del disk.files[SEGMENT.format(3, ".log")].data[size_bytes:]
    for end_offset in (7, 8):
        _, log = restarted(disk)
        assert (log.log_start_offset, log.end_offset, log.last_stable_offset) == (5, end_offset, end_offset)
        append(log, batch())
        assert log.last_stable_offset == end_offset + 1


def test_a_producer_whose_last_batch_is_missing_below_the_start_goes_on():
    disk = CrashDisk()
    come_back_without_an_end(disk, with_a_producer(disk))
    _, log = restarted(disk)
    assert append(log, batch(1, 20, producer_id=7, producer_epoch=0, base_sequence=2)) == [7]
