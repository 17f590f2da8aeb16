"""Append, write and read of one partition."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire.batch import build_batch, parse_header
from pykafkad.wire.records import iterate_records
from tests.log.settings import open_directory, open_log

NOW_MS = 1_700_000_000_000


@pytest.fixture
def directory(tmp_path):
    directory = open_directory(tmp_path / "data")
    yield directory
    directory.close()


def batch(count=1, size=10, **keywords):
    return memoryview(build_batch([(None, b"v" * size)] * count, timestamp_ms=NOW_MS, **keywords))


def values(found):
    data, position, out = found.pread(), 0, []
    while position < len(data):
        header = parse_header(data, position)
        out += [(record.offset, record.value) for record in iterate_records(data[position:position + header.size_bytes])]
        position += header.size_bytes
    return out


def test_offsets_are_assigned_in_place_and_read_back(directory):
    """The leader numbers records from the end of the log and stamps its epoch into the batch."""
    log = open_log(directory)
    log.assign_epoch(7)
    first, second = batch(3), batch(2)
    assert log.append(first, NOW_MS)[:2] == (0, 2)
    assert log.append(second, NOW_MS)[:2] == (3, 4)
    assert parse_header(second).base_offset == 3
    assert parse_header(second).leader_epoch == 7
    assert (log.end_offset, log.written_end_offset) == (5, 0)
    log.write_pending()
    assert log.written_end_offset == 5
    assert [offset for offset, _ in values(log.read(0, 1 << 20, end_offset=5))] == [0, 1, 2, 3, 4]
    assert [offset for offset, _ in values(log.read(4, 1 << 20, end_offset=5))] == [3, 4]
    assert log.read(5, 1 << 20, end_offset=5) is None


def test_outside_the_log_is_out_of_range(directory):
    log = open_log(directory)
    log.append(batch(), NOW_MS)
    log.write_pending()
    for offset in (-1, 2):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, 100, end_offset=1)
        assert caught.value.code == errors.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("size", [10, 900, 5000, 20_000])
@pytest.mark.parametrize("max_bytes", [1, 100, 4096, 20_000, 70_000])
def test_reads_end_on_batch_boundaries_and_cover_the_log(directory, size, max_bytes):
    """Whole batches, at least one even if it is above the limit, each read going on where the last ended."""
    log = open_log(directory)
    for _ in range(60):
        log.append(batch(2, size), NOW_MS)
        log.write_pending()
    offset = 0
    while offset < log.end_offset:
        found = log.read(offset, max_bytes, end_offset=log.end_offset)
        got = values(found)
        assert got[0][0] == offset
        assert len(found) <= max_bytes or len(got) == 2
        offset = got[-1][0] + 1
    assert offset == 120


def test_reads_stop_at_the_end_they_are_given(directory):
    """A consumer does not see past the high watermark."""
    log = open_log(directory)
    for _ in range(10):
        log.append(batch(2), NOW_MS)
    log.write_pending()
    assert [offset for offset, _ in values(log.read(2, 1 << 20, end_offset=6))] == [2, 3, 4, 5]
    assert log.read(6, 1 << 20, end_offset=6) is None


def test_a_clean_restart_knows_everything_again(tmp_path):
    directory = open_directory(tmp_path / "data")
    log = open_log(directory)
    for _ in range(500):
        log.append(batch(2, 50), NOW_MS)
    log.write_pending()
    log.advance_high_watermark(log.written_end_offset)
    directory.close()
    directory = open_directory(tmp_path / "data")
    assert directory.clean
    log = open_log(directory)
    assert (log.end_offset, log.high_watermark, log.log_start_offset) == (1000, 1000, 0)
    assert [offset for offset, _ in values(log.read(999, 1 << 20, end_offset=1000))] == [998, 999]
    assert log.append(batch(1), NOW_MS).base_offset == 1000
    directory.close()
