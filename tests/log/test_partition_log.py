"""Appending to, writing and reading one partition."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log.log_files import GATHER_SIZE_BYTES
from pykafkad.log.segment import MAX_REMEMBERED_POSITIONS
from pykafkad.wire.batch import parse_header
from tests.log.settings import (
    NOW_MS,
    append,
    batch,
    batches_of,
    content,
    offsets_of,
    open_directory,
    open_log,
    topic_settings,
)
from tests.simulation.disk import MemoryDisk


@pytest.fixture
def directory(tmp_path):
    directory = open_directory(tmp_path / "data")
    yield directory
    directory.close()


def test_offsets_are_assigned_in_place_and_read_back(directory):
    """The leader assigns offsets from the end of the log and writes its epoch into the batch."""
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
    assert offsets_of(log.read(0, 1 << 20, end_offset=5)) == [0, 1, 2, 3, 4]
    assert offsets_of(log.read(4, 1 << 20, end_offset=5)) == [3, 4]
    assert log.read(5, 1 << 20, end_offset=5) is None


def test_an_append_keeps_no_view_of_the_batch(directory):
    """The caller can empty its buffer right after the append."""
    log = open_log(directory)
    for size in (10, 20_000):
        buffer = bytearray(batch(size=size))
        view = memoryview(buffer)
        log.append(view, NOW_MS)
        view.release()
        buffer.clear()
    log.write_pending()
    assert [len(records[0].value) for _, records in content(log)] == [10, 20_000]


def test_a_full_gather_buffer_is_written(directory):
    """The buffer is bounded, so many small batches in one turn are written in several calls."""
    log = open_log(directory)
    count = 3 * GATHER_SIZE_BYTES // 1000
    for _ in range(count):
        log.append(batch(size=1000), NOW_MS)
    assert 0 < log.written_end_offset < log.end_offset
    log.write_pending()
    assert [header.base_offset for header, _ in content(log)] == list(range(count))


def test_a_large_batch_is_written_after_the_small_ones_before_it(directory):
    """A batch of 16 KiB or more is written at once, in order with the gathered batches."""
    log = open_log(directory)
    for size in (10, 30_000, 10, 10, 40_000):
        log.append(batch(size=size), NOW_MS)
    assert log.written_end_offset == log.end_offset == 5
    assert [(header.base_offset, len(records[0].value)) for header, records in content(log)] == [
        (0, 10),
        (1, 30_000),
        (2, 10),
        (3, 10),
        (4, 40_000),
    ]


# The type of the control record with which a leader begins its epoch in the metadata log (KIP-595).
LEADER_CHANGE = 2


def test_coordinators_and_the_quorum_append_records_of_their_own(directory):
    """Coordinators append keys and values, the quorum appends control batches. The leader epoch rises as given."""
    log = open_log(directory)
    assert log.append_records([(b"k", b"v"), (b"k2", None)], NOW_MS)[:2] == (0, 1)
    assert log.append_records([(None, b"change")], NOW_MS, control_type=LEADER_CHANGE, leader_epoch=3)[:2] == (2, 2)
    log.write_pending()
    (_first, records), (second, control) = content(log)
    assert [(record.key, record.value) for record in records] == [(b"k", b"v"), (b"k2", None)]
    assert (second.is_control, control[0].key, control[0].value, second.leader_epoch) == (
        True,
        b"\0\0\0\2",
        b"change",
        3,
    )
    assert log.end_offset_for_epoch(0) == (0, 2)


def test_offsets_outside_the_log_are_out_of_range(directory):
    log = open_log(directory)
    append(log, batch())
    for offset in (-1, 2):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, 100, end_offset=1)
        assert caught.value.code == errors.OFFSET_OUT_OF_RANGE


def test_offsets_below_the_start_are_out_of_range_even_if_the_file_holds_them(directory):
    log = open_log(directory)
    append(log, batch(2), batch(2))
    log.delete_records(3)
    assert offsets_of(log.read(3, 100, end_offset=4)) == [2, 3], "the batch that contains the start is given whole"
    with pytest.raises(KafkaError) as caught:
        log.read(2, 100, end_offset=4)
    assert caught.value.code == errors.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("size", [10, 900, 5000, 20_000])
@pytest.mark.parametrize("max_bytes", [1, 100, 4096, 20_000, 70_000])
def test_reads_give_whole_batches_and_cover_the_log(directory, size, max_bytes):
    """Each read returns at least one batch, even above the limit, and the next one continues there, across segments."""
    log = open_log(directory, segment_bytes=150_000)
    for _ in range(60):
        append(log, batch(2, size))
    offset = 0
    while offset < log.end_offset:
        found = log.read(offset, max_bytes, end_offset=log.end_offset)
        got = offsets_of(found)
        assert got[0] == offset
        assert len(found) <= max_bytes or len(got) == 2
        offset = got[-1] + 1
    assert offset == 120


def test_a_batch_above_the_limit_is_read_only_with_minimum_one_batch(directory):
    """Kafka returns such a batch only for the first partition of a Fetch that has data."""
    log = open_log(directory)
    append(log, batch(size=500), batch(size=500))
    assert log.read(0, 100, end_offset=2, minimum_one_batch=False) is None
    assert offsets_of(log.read(0, 700, end_offset=2, minimum_one_batch=False)) == [0]


def test_reads_stop_at_the_given_end_offset(directory):
    """A consumer reads nothing above the high watermark."""
    log = open_log(directory)
    append(log, *(batch(2) for _ in range(10)))
    assert offsets_of(log.read(2, 1 << 20, end_offset=6)) == [2, 3, 4, 5]
    assert log.read(6, 1 << 20, end_offset=6) is None


def test_gathered_batches_cannot_be_read(directory):
    log = open_log(directory)
    append(log, batch())
    log.append(batch(), NOW_MS)
    assert offsets_of(log.read(0, 1 << 20, end_offset=log.end_offset)) == [0]
    assert log.read(1, 1 << 20, end_offset=log.end_offset) is None


def test_the_high_watermark_never_falls_and_never_passes_the_written_end(directory):
    log = open_log(directory)
    log.append(batch(4), NOW_MS)
    assert log.advance_high_watermark(4) == 0
    log.write_pending()
    assert log.advance_high_watermark(9) == 4
    assert log.advance_high_watermark(2) == 4
    assert log.last_stable_offset == 4


def test_remembered_reader_positions_are_bounded(directory):
    """The positions of a limited number of readers are remembered."""
    log = open_log(directory)
    append(log, *(batch() for _ in range(3 * MAX_REMEMBERED_POSITIONS)))
    for offset in range(log.end_offset):
        assert offsets_of(log.read(offset, 100, end_offset=log.end_offset)) == [offset]
    assert len(log.segments[0].positions) <= MAX_REMEMBERED_POSITIONS


@pytest.mark.parametrize(
    ("changes", "count"),
    [({"segment_bytes": 1000}, 4), ({"segment_index_bytes": 32}, 5), ({"segment_index_bytes": 48}, 2)],
)
def test_a_segment_rolls_when_it_or_its_index_is_full(directory, changes, count):
    log = open_log(directory, index_interval_bytes=100, **changes)
    append(log, *(batch(size=230) for _ in range(10)))
    assert len(log.segments) == count
    for earlier, later in zip(log.segments, log.segments[1:], strict=False):
        assert earlier.locate(later.base_offset) == (earlier.size, 0)
    assert [header.base_offset for header, _ in content(log)] == list(range(10))


@pytest.mark.parametrize(
    ("timestamps", "bases"),
    [
        ((0, 1000, 1001, 2001, 5000), [0, 2, 4]),
        ((5000, 0, 6000, 6001), [0, 3]),
    ],
)
def test_a_segment_rolls_by_the_time_of_its_first_batch(directory, timestamps, bases):
    """segment.ms counts from the timestamp of the first batch to that of the next batch."""
    log = open_log(directory, segment_ms=1000)
    append(log, *(batch(timestamp_ms=NOW_MS + ms) for ms in timestamps), now_ms=NOW_MS + 10_000)
    assert [segment.base_offset for segment in log.segments] == bases


def test_a_segment_without_timestamps_rolls_by_the_clock(directory):
    log = open_log(directory, segment_ms=1000)
    append(log, batch(timestamp_ms=-1))
    append(log, batch(timestamp_ms=-1), now_ms=NOW_MS + 900)
    append(log, batch(timestamp_ms=-1), now_ms=NOW_MS + 1100)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_jitter_makes_segments_roll_earlier(directory):
    """segment.jitter.ms spreads the rolls: a segment rolls up to that much before segment.ms."""
    log = open_log(directory, segment_ms=1000, segment_jitter_ms=999)
    append(log, batch())
    jitter_ms = log.segments[0].jitter_ms
    assert 0 < jitter_ms < 999
    append(log, batch(timestamp_ms=NOW_MS + 1000 - jitter_ms))
    assert len(log.segments) == 1
    append(log, batch(timestamp_ms=NOW_MS + 1001 - jitter_ms))
    assert len(log.segments) == 2


def test_changed_settings_apply_from_the_next_append(directory):
    log = open_log(directory)
    append(log, batch(size=100))
    log.update_settings(topic_settings(max_message_bytes=100, segment_bytes=300))
    with pytest.raises(KafkaError) as caught:
        log.append(batch(size=100), NOW_MS)
    assert caught.value.code == errors.MESSAGE_TOO_LARGE
    append(log, batch(size=10), batch(size=10))
    assert len(log.segments) == 2


def test_a_log_is_opened_by_its_first_use():
    """A start with ten thousand partitions opens no file. Becoming leader does not open the log either."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch(3))
    directory.close()
    directory = open_directory(disk=disk)
    opened = disk.calls["open"]
    log = open_log(directory)
    log.lead(4, sole_replica=True)
    assert (log.is_loaded, disk.calls["open"]) == (False, opened)
    assert (log.high_watermark, log.end_offset, log.is_loaded) == (3, 3, True)
    assert log.end_offset_for_epoch(4) == (4, 3)
    append(log, batch())
    assert content(log)[-1][0].leader_epoch == 4


def test_an_append_reads_only_plain_attributes():
    """Python does not cache attributes of a class with `__getattr__`; that cost a tenth of a small Produce."""
    disk = MemoryDisk()

    def appended(log):
        append(log, batch(size=100))
        return hasattr(log, "__getattr__"), hasattr(log.segments[-1], "__getattr__")

    directory = open_directory(disk=disk)
    log = open_log(directory, segment_bytes=400)
    assert hasattr(log, "__getattr__")
    assert [appended(log) for _ in range(6)] == [(False, False)] * 6
    assert len(log.segments) > 1 and hasattr(log.segments[0], "__getattr__")
    log.release_file()
    assert appended(log) == (False, False)
    log.flush()
    log.unload()
    assert hasattr(log, "__getattr__") and appended(log) == (False, False)
    directory.close()
    assert appended(open_log(open_directory(disk=disk), segment_bytes=400)) == (False, False)


def test_a_clean_restart_restores_the_whole_state(tmp_path):
    directory = open_directory(tmp_path / "data")
    log = open_log(directory, segment_bytes=20_000)
    append(log, *(batch(2, 50) for _ in range(500)))
    before = content(log)
    directory.close()
    directory = open_directory(tmp_path / "data")
    assert directory.clean
    log = open_log(directory, segment_bytes=20_000)
    assert (log.end_offset, log.high_watermark, log.log_start_offset) == (1000, 1000, 0)
    assert content(log) == before
    assert offsets_of(log.read(999, 1 << 20, end_offset=1000)) == [998, 999]
    assert {segment.max_timestamp_ms for segment in log.segments} == {NOW_MS}
    assert log.max_timestamp_offset() == (0, NOW_MS, 0)
    assert append(log, batch()) == [1000]
    directory.close()


def test_a_slice_of_a_removed_segment_can_still_be_sent(directory):
    """The descriptor stays open as long as the slice exists."""
    log = open_log(directory, segment_bytes=200)
    append(log, batch(size=100), batch(size=100))
    found = log.read(0, 1000, end_offset=1)
    log.delete_records(2)
    assert log.run_retention(NOW_MS) == 1
    for path, is_directory in directory.take_due_deletions(NOW_MS + 60_000):
        directory.remove(path, is_directory)
    assert offsets_of(found) == [0]


def test_gather_buffers_are_given_back_each_turn(directory):
    """The logs of a directory share gather buffers, and a limited number of idle ones is kept."""
    logs = [open_log(directory, partition=partition) for partition in range(40)]
    for _ in range(2):
        for log in logs:
            log.append(batch(), NOW_MS)
        for log in logs:
            log.write_pending()
        assert 0 < len(directory.services.gather_pool) <= 32


def test_flush_messages_makes_a_sync_due(tmp_path):
    """The server syncs on another thread before it acknowledges. Gathered and directly written batches both count."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk), flush_messages=2)
    append(log, batch(size=10))
    assert not log.is_flush_due
    append(log, batch(size=20_000))
    assert log.is_flush_due
    job = log.whole_sync_job()
    append(log, batch(size=10))
    job.run()
    assert log.recovery_point == 0, "nothing counts before the loop knows"
    job.finish()
    assert (log.recovery_point, log.is_flush_due) == (2, False)
    assert [header.base_offset for header, *_ in batches_of(log.segments[0].file._content.synced)][:2] == [0, 1]
