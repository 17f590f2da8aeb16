"""What a log needs to know of its topic's settings; for type checkers, a running broker never imports this."""

from __future__ import annotations

from typing import Protocol


class LogConfig(Protocol):
    """Kafka's topic settings of the same names, with `_` for `.`; `pykafkad.config.TopicSettings` has them all.

    Times of -1 or beyond `NEVER_MS` mean "without a limit"."""

    cleanup_policy: frozenset[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int


class CleanerConfig(Protocol):
    """The log cleaner's settings: Kafka's broker settings of these names, which `pykafkad.config.Settings` has."""

    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_buffer_size: int
    log_cleaner_threads: int
    producer_id_expiration_ms: int
