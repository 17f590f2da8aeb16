"""Topic settings for tests of the log: Kafka's defaults, changed by keyword."""

from __future__ import annotations

import random
from types import SimpleNamespace

from pykafkad.clock import ManualClock
from pykafkad.disk import Disk
from pykafkad.log.directory import LogDirectory

NEVER = (1 << 63) - 1

DEFAULTS = {
    "segment_bytes": 1 << 30, "segment_ms": 604_800_000, "segment_jitter_ms": 0, "segment_index_bytes": 10 << 20,
    "index_interval_bytes": 4096, "retention_ms": 604_800_000, "retention_bytes": -1, "max_message_bytes": 1_048_588,
    "cleanup_policy": frozenset(("delete",)), "compression_type": "producer", "compression_gzip_level": -1,
    "compression_lz4_level": 9, "compression_zstd_level": 3, "message_timestamp_type": "CreateTime",
    "message_timestamp_before_max_ms": NEVER, "message_timestamp_after_max_ms": 3_600_000, "flush_messages": NEVER,
    "flush_ms": NEVER, "file_delete_delay_ms": 60_000,
}

TOPIC_ID = bytes(range(16))


def topic_settings(**changes) -> SimpleNamespace:
    return SimpleNamespace(**{**DEFAULTS, **changes})


def open_directory(path, *, disk=None, clock=None) -> LogDirectory:
    return LogDirectory(str(path), disk=disk or Disk(), clock=clock or ManualClock(), random=random.Random(1))


def open_log(directory: LogDirectory, topic: str = "t", partition: int = 0, **changes):
    log = directory.open_partition(topic, partition, TOPIC_ID, topic_settings(**changes))
    log.assign_epoch(0)
    return log
