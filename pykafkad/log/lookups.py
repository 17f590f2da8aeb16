"""Finding offsets by timestamp, for ListOffsets. The time index gives the position where the scan of records starts."""

from __future__ import annotations

from pykafkad.wire.batch import NO_TIMESTAMP
from pykafkad.wire.records import iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.segment import Segment
    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record


def offset_for_timestamp(log: PartitionLog, timestamp_ms: int) -> tuple[int, int, int] | None:
    """(offset, timestamp, leader epoch) of the first record at or after a time, in log order; None if there is none."""
    for segment in log.segments:
        if segment.max_timestamp_ms < timestamp_ms:
            continue
        log.touch(segment)
        found = _first_at_or_after(segment, timestamp_ms, log.log_start_offset)
        if found is not None:
            return found
    return None


def _first_at_or_after(segment: Segment, timestamp_ms: int, start_offset: int) -> tuple[int, int, int] | None:
    entry_ms, relative_offset = segment.time_index.lookup(timestamp_ms)
    if relative_offset and not segment.indexes_trusted and not segment.confirms_time(entry_ms, relative_offset):
        segment.distrust_indexes()
        _, relative_offset = segment.time_index.lookup(timestamp_ms)
    start = segment.start_of_search(max(segment.base_offset + relative_offset, start_offset))
    for position, header in segment.headers(start):
        if header.max_timestamp_ms < timestamp_ms or header.last_offset < start_offset:
            continue
        for record in _records(segment, position, header):
            if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                return record.offset, record.timestamp_ms, header.leader_epoch
    return None


def max_timestamp_offset(log: PartitionLog) -> tuple[int, int, int] | None:
    """(offset, timestamp, leader epoch) of the first record with the largest timestamp; None without timestamps."""
    latest = max(log.segments, key=lambda segment: segment.max_timestamp_ms)
    if latest.max_timestamp_ms == NO_TIMESTAMP:
        return None
    if latest.max_timestamp_offset >= log.written_end_offset:
        # Its batch must be in the file to be found.
        log.write_pending()
    log.touch(latest)
    start = latest.start_of_search(latest.max_timestamp_offset)
    for position, header in latest.headers(start):
        if header.max_timestamp_ms != latest.max_timestamp_ms:
            continue
        if header.has_log_append_time:
            return header.last_offset, header.max_timestamp_ms, header.leader_epoch
        for record in _records(latest, position, header):
            if record.timestamp_ms == header.max_timestamp_ms:
                return record.offset, record.timestamp_ms, header.leader_epoch
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[Record]:
    return iterate_records(memoryview(segment.file.pread(header.size_bytes, position)), header)
