"""Slices of a log that is cut before they are read: other records may stand there, or parts of them."""

import errno

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log import follower_log
from pykafkad.log.file_slice import MAX_CUTS, LogCut
from pykafkad.log.reopening import ReopenJob
from pykafkad.log.segment import PREFETCH_SIZE_BYTES
from tests.log.settings import NOW_MS, append, batch, offsets_of, open_directory, open_log
from tests.simulation.disk import MemoryDisk

RECORD_BYTES = 2 * PREFETCH_SIZE_BYTES


@pytest.fixture
def disk():
    return MemoryDisk()


def log_of(disk, **changes):
    """Ten batches of one record each."""
    log = open_log(open_directory(disk=disk), **changes)
    append(log, *(batch(size=RECORD_BYTES) for _ in range(10)))
    return log


def cut(log, end_offset):
    """Cut, and have others take the place of what was there."""
    follower_log.truncate(log, end_offset, NOW_MS)
    append(log, *(batch(size=RECORD_BYTES + 1) for _ in range(10 - end_offset)))


@pytest.mark.parametrize(
    ("changes", "limits"),
    [
        ({}, {"max_bytes": 1 << 30}),
        ({}, {"max_bytes": 1 << 30, "end_offset": 8}),
        ({}, {"max_bytes": 3 * RECORD_BYTES}),
        ({"index_interval_bytes": 1}, {"max_bytes": 3 * RECORD_BYTES}),
        ({}, {"max_bytes": 1}),
        ({"segment_bytes": 6 * RECORD_BYTES}, {"max_bytes": 1 << 30}),
    ],
    ids=["to the end", "to the high watermark", "of so many bytes", "by the index", "one batch", "of an older segment"],
)
def test_a_slice_of_a_log_that_was_cut_is_refused(disk, changes, limits):
    log = log_of(disk, **changes)
    log.lead(1, sole_replica=True)
    limits = {"end_offset": log.end_offset, **limits}
    found = log.read(1, **limits)
    rest = found.after(10)
    assert found.pread()[10:] == rest.pread()
    cut(log, 1)
    for each in (found, rest, found.after(10), found.up_to(10), rest.up_to(5)):
        with pytest.raises(LogCut, match="the log was cut while its records were sent"):
            each.pread()
        with pytest.raises(LogCut):
            each.fileno()
    assert offsets_of(log.read(1, **limits))[0] == 1
    log.read(1, **limits).fileno()


def test_what_is_below_all_cuts_is_read_on(disk):
    """A leader that follows another one now has cut what was not committed, and readers get what is."""
    log = log_of(disk)
    log.lead(1, sole_replica=True)
    found = log.read(1, 1 << 30, end_offset=5)
    expected = offsets_of(found)
    cut(log, 7)
    cut(log, 5)
    assert offsets_of(found) == expected == [1, 2, 3, 4]
    assert len(found.after(10).pread()) == found.size_bytes - 10
    later = log.read(1, 1 << 30, end_offset=5)
    cut(log, 4)
    for each in (found, later):
        with pytest.raises(LogCut):
            each.pread()
    assert offsets_of(found.up_to(found.size_bytes // 4)) == [1]


def test_so_many_cuts_are_remembered(disk):
    """A slice from before them is refused; nothing is kept for it."""
    log = log_of(disk)
    old = log.read(0, 1 << 30, end_offset=1)
    for number in range(MAX_CUTS + 1):
        if number == 1:
            found = log.read(0, 1 << 30, end_offset=1)
        cut(log, 9)
    assert offsets_of(found) == [0] and len(log.segments[0].cuts._positions) == MAX_CUTS
    with pytest.raises(LogCut):
        old.pread()


def test_a_log_that_came_back_from_a_full_disk_knows_slices_from_before(disk):
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, *(batch(size=RECORD_BYTES) for _ in range(10)))
    found, below = (log.read(offset, 1 << 30, end_offset=offset + 1) for offset in (5, 1))
    disk.fail("write", error=errno.ENOSPC)
    with pytest.raises(StorageFailure):
        append(log, batch(size=RECORD_BYTES))
    job = ReopenJob(log, NOW_MS, directory.offsets)
    job.run()
    job.finish()
    assert offsets_of(found) == [5]
    cut(log, 2)
    assert offsets_of(below) == [1]
    with pytest.raises(LogCut):
        found.pread()


def test_what_was_read_before_the_cut_is_given(disk):
    log = open_log(open_directory(disk=disk))
    append(log, *(batch(size=20) for _ in range(10)))
    found = log.read(1, 400, end_offset=log.end_offset)
    expected = offsets_of(found)
    follower_log.truncate(log, 2, NOW_MS)
    assert offsets_of(found) == expected == [1, 2, 3, 4]


def test_segments_that_are_gone_are_read_on(disk):
    """Their files stay as long as somebody reads them, as they were."""
    log = log_of(disk, segment_bytes=3 * RECORD_BYTES)
    found = log.read(8, 1 << 30, end_offset=log.end_offset)
    expected = found.pread()
    follower_log.truncate(log, 2, NOW_MS)
    assert found.pread() == expected


def test_a_cut_that_takes_no_records_refuses_nothing(disk):
    """Records that a full disk did not take were never read."""
    log = log_of(disk)
    found = log.read(1, 1 << 30, end_offset=log.end_offset)
    expected = found.pread()
    follower_log.truncate(log, log.end_offset, NOW_MS)
    disk.fail("write", error=errno.ENOSPC, part=100)
    with pytest.raises(StorageFailure):
        append(log, batch(size=RECORD_BYTES))
    assert log.offline is not None and found.pread() == expected
