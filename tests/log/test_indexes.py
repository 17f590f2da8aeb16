"""The offset index and the time index: look-ups agree with a scan of the log, and the files have Kafka's format."""

from __future__ import annotations

import random
import struct

import pytest

from pykafkad.log.offset_index import OffsetIndex
from pykafkad.log.time_index import TimeIndex
from tests.log.settings import NOW_MS, append, batch, content, open_directory, open_log
from tests.simulation.disk import MemoryDisk


def filled(seed, **changes):
    """A log of several segments with unordered timestamps, and its headers and records."""
    chance = random.Random(seed)
    log = open_log(
        open_directory(disk=MemoryDisk()),
        segment_bytes=3000,
        index_interval_bytes=chance.choice((1, 200, 1000)),
        **changes,
    )
    for _ in range(chance.randrange(40, 120)):
        timestamp_ms = (
            chance.choice((NOW_MS + chance.randrange(-50, 50), -1))
            if seed % 3 == 0
            else NOW_MS + chance.randrange(-50, 50)
        )
        append(
            log,
            batch(chance.randrange(1, 4), chance.randrange(60), timestamp_ms=timestamp_ms, codec=chance.randrange(3)),
        )
    return log, content(log), chance


@pytest.mark.parametrize("seed", range(12))
def test_look_ups_by_offset_agree_with_a_scan(seed):
    log, rows, _ = filled(seed)
    positions, at = {}, {}
    for header, _ in rows:
        segment = log.segments[log.segment_at(header.base_offset)]
        positions[header.base_offset] = at.get(segment.base_offset, 0)
        at[segment.base_offset] = positions[header.base_offset] + header.size_bytes
    for header, _ in rows:
        segment = log.segments[log.segment_at(header.base_offset)]
        for offset in range(header.base_offset, header.end_offset):
            assert segment.offset_index.lookup(offset - segment.base_offset)[1] <= positions[header.base_offset]
            assert segment.locate(offset) == (positions[header.base_offset], header.size_bytes)


@pytest.mark.parametrize("seed", range(12))
def test_look_ups_by_time_agree_with_a_scan(seed):
    """The result is the first record in log order with a timestamp at or after the given one."""
    log, rows, _ = filled(seed)
    for start_offset in (0, 7, 8, 9, 30):
        log.delete_records(start_offset)
        records = [record for _, records in rows for record in records if record.offset >= start_offset]
        for timestamp_ms in (0, *range(NOW_MS - 52, NOW_MS + 52)):
            expected = next(
                ((record.offset, record.timestamp_ms, 0) for record in records if record.timestamp_ms >= timestamp_ms),
                None,
            )
            assert log.offset_for_timestamp(timestamp_ms) == expected


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_timestamp_is_found(seed):
    log, rows, _ = filled(seed)
    latest = max(
        (record for _, records in rows for record in records), key=lambda record: (record.timestamp_ms, -record.offset)
    )
    assert log.max_timestamp_offset() == (latest.offset, latest.timestamp_ms, 0)


def test_with_log_append_time_the_largest_timestamp_is_at_the_last_offset_of_its_batch():
    log = open_log(open_directory(disk=MemoryDisk()), message_timestamp_type="LogAppendTime")
    append(log, batch(3))
    assert log.max_timestamp_offset() == (2, NOW_MS, 0)


def test_an_empty_log_has_no_timestamp():
    log = open_log(open_directory(disk=MemoryDisk()))
    assert (log.max_timestamp_offset(), log.offset_for_timestamp(0)) == (None, None)


def test_an_entry_is_added_after_each_interval():
    """As in Kafka, the batch after more than index.interval.bytes of log gets an entry, with its last offset."""
    log = open_log(open_directory(disk=MemoryDisk()), index_interval_bytes=200)
    size = len(batch(2, 40))
    append(log, *(batch(2, 40) for _ in range(10)))
    index = log.segments[0].offset_index
    every = 200 // size + 1
    assert list(index.positions) == [number * size for number in range(every, 10, every)]
    assert list(index.offsets) == [2 * number + 1 for number in range(every, 10, every)]
    assert index.to_bytes() == b"".join(
        struct.pack(">ii", *entry) for entry in zip(index.offsets, index.positions, strict=False)
    )


def test_the_offset_index_file_has_kafkas_format():
    index = OffsetIndex()
    for entry in ((3, 100), (9, 220)):
        index.append(*entry)
    data = index.to_bytes()
    assert data == struct.pack(">iiii", 3, 100, 9, 220)
    read = OffsetIndex.from_bytes(data, 300)
    assert (list(read.offsets), list(read.positions)) == ([3, 9], [100, 220])
    for damaged in (data[:-1], data + bytes(8), data[8:] + data[:8], b"\xff" * 8):
        assert OffsetIndex.from_bytes(damaged, 300) is None
    assert OffsetIndex.from_bytes(data, 220) is None, "it points behind the end of the log"


def test_the_time_index_file_has_kafkas_format():
    index = TimeIndex()
    for entry in ((50, 3), (50, 5), (40, 6), (60, 9)):
        index.maybe_append(*entry)
    data = index.to_bytes()
    assert data == struct.pack(">qiqi", 50, 3, 60, 9), "only a later time makes an entry"
    assert TimeIndex.from_bytes(data).last() == (60, 9)
    for damaged in (data[:-1], data + bytes(12), data[12:] + data[:12]):
        assert TimeIndex.from_bytes(damaged) is None


def test_truncation_removes_later_entries():
    offsets, times = OffsetIndex(), TimeIndex()
    for number in range(5):
        offsets.append(10 * number, 100 * number)
        times.maybe_append(1000 + number, 10 * number)
    offsets.truncate(300)
    times.truncate(20)
    assert (list(offsets.positions), list(times.offsets)) == ([0, 100, 200], [0, 10])
    assert [offsets.last_within(*span) for span in ((0, 150), (100, 150), (0, 50), (100, 200))] == [
        (10, 100),
        None,
        None,
        (20, 200),
    ]


def test_a_file_may_be_checked_in_steps():
    """A file that is no index at all is refused. A single wrong entry between two steps is found when it is used."""
    index = OffsetIndex()
    times = TimeIndex()
    for number in range(1, 1001):
        index.append(number, number * 50)
        times.maybe_append(number * 10, number)
    data, time_data = index.to_bytes(), times.to_bytes()
    read, read_times = OffsetIndex.from_bytes(data, 10**6, step=256), TimeIndex.from_bytes(time_data, step=256)
    assert (read.offsets, read.positions) == (index.offsets, index.positions)
    assert (read_times.timestamps, read_times.offsets) == (times.timestamps, times.offsets)
    for step in (1, 7, 256, 999, 5000):
        for damaged in (
            bytes(8000),
            data[4000:] + data[:4000],
            data + data[:8],
            data + data[-8:],
            b"\xff" * 8 + data[8:],
        ):
            assert OffsetIndex.from_bytes(damaged, 10**6, step=step) is None, step
        for damaged in (
            bytes(12000),
            time_data[6000:] + time_data[:6000],
            time_data + time_data[:12],
            time_data + time_data[-12:],
        ):
            assert TimeIndex.from_bytes(damaged, step=step) is None, step
    swapped = data[:80] + data[88:96] + data[80:88] + data[96:]
    assert OffsetIndex.from_bytes(swapped, 10**6) is None
    assert OffsetIndex.from_bytes(swapped, 10**6, step=256) is not None


def test_a_large_timestamp_keeps_all_its_bits():
    index = TimeIndex()
    for timestamp_ms in (0, 1, 2**31 - 1, 2**31, 2**32 + 5, 1_795_277_580_640, 2**62):
        index.maybe_append(timestamp_ms, len(index) * 3)
    assert TimeIndex.from_bytes(index.to_bytes()).timestamps == index.timestamps
    assert TimeIndex.from_bytes(struct.pack(">qi", -2, 1)) is None
