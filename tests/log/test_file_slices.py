"""Slices of a log that is cut before they are read: other records may stand there, or parts of them."""

import errno

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log import follower_log
from pykafkad.log.file_slice import LogCut
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
    begin = found.up_to(10)
    assert found.pread()[10:] == rest.pread()
    cut(log, 2)
    for each in (found, rest, begin, found.after(10), found.up_to(10), rest.up_to(5)):
        with pytest.raises(LogCut, match="the log was cut while its records were sent"):
            each.pread()
        with pytest.raises(LogCut):
            each.fileno()
    assert offsets_of(log.read(1, **limits))[0] == 1
    log.read(1, **limits).fileno()


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
