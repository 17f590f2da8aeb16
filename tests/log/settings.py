"""Topic settings and small builders for tests of the log: Kafka's defaults, changed by keyword."""

from __future__ import annotations

import random
from types import SimpleNamespace

from pykafkad.clock import ManualClock
from pykafkad.disk import Disk
from pykafkad.log.directory import LogDirectory
from pykafkad.wire.batch import build_batch, parse_header
from pykafkad.wire.records import iterate_records

NEVER = (1 << 63) - 1
NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))

DEFAULTS = {
    "segment_bytes": 1 << 30,
    "segment_ms": 604_800_000,
    "segment_jitter_ms": 0,
    "segment_index_bytes": 10 << 20,
    "index_interval_bytes": 4096,
    "retention_ms": 604_800_000,
    "retention_bytes": -1,
    "max_message_bytes": 1_048_588,
    "cleanup_policy": frozenset(("delete",)),
    "compression_type": "producer",
    "compression_gzip_level": -1,
    "compression_lz4_level": 9,
    "compression_zstd_level": 3,
    "message_timestamp_type": "CreateTime",
    "message_timestamp_before_max_ms": NEVER,
    "message_timestamp_after_max_ms": 3_600_000,
    "flush_messages": NEVER,
    "flush_ms": NEVER,
    "file_delete_delay_ms": 60_000,
    "delete_retention_ms": 86_400_000,
    "min_compaction_lag_ms": 0,
    "max_compaction_lag_ms": NEVER,
    "min_cleanable_dirty_ratio": 0.5,
}


def topic_settings(**changes) -> SimpleNamespace:
    return SimpleNamespace(**{**DEFAULTS, **changes})


def open_directory(path="/data", *, disk=None, clock=None) -> LogDirectory:
    return LogDirectory(
        str(path), disk=disk or Disk(), clock=clock or ManualClock(), random=random.Random(1), failed_logs=[]
    )


def open_log(directory: LogDirectory, topic: str = "t", partition: int = 0, **changes):
    log = directory.open_partition(topic, partition, TOPIC_ID, topic_settings(**changes))
    log.lead(0, sole_replica=True)
    return log


def batch(count=1, size=10, *, timestamp_ms=NOW_MS, **keywords) -> memoryview:
    """A batch of `count` records with values of `size` bytes."""
    return memoryview(build_batch([(None, b"v" * size)] * count, timestamp_ms=timestamp_ms, **keywords))


def append(log, *batches, now_ms=NOW_MS):
    """Append batches and write them; returns their base offsets."""
    offsets = [log.append(each, now_ms).base_offset for each in batches]
    log.write_pending()
    log.advance_high_watermark(log.written_end_offset)
    return offsets


def batches_of(data) -> list:
    """The headers and records of whole batches."""
    position, found = 0, []
    while position < len(data):
        header = parse_header(data, position)
        found.append((header, list(iterate_records(data[position : position + header.size_bytes]))))
        position += header.size_bytes
    assert position == len(data), "a batch was cut"
    return found


def offsets_of(found) -> list[int]:
    """Offsets of the records in a slice."""
    return [record.offset for _, records in batches_of(found.pread()) for record in records]


def content(log) -> list:
    """Headers and records of the whole log."""
    found, offset = [], log.log_start_offset
    while offset < log.written_end_offset:
        rows = batches_of(log.read(offset, 1 << 20, end_offset=log.written_end_offset).pread())
        found += rows
        offset = rows[-1][0].end_offset
    return found
