"""When a segment is full: Kafka's rules (LogSegment.shouldRoll), and the limits made ready for the append path."""

from __future__ import annotations

from pykafkad.log.segment import NEVER_MS, Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.log.log_config import LogConfig


def segment_ms(settings: LogConfig) -> int:
    """How long a segment takes batches."""
    # A segment must be closed before it can be compacted in time.
    if "compact" in settings.cleanup_policy:
        return min(settings.segment_ms, settings.max_compaction_lag_ms)
    return settings.segment_ms


def prepare(segment: Segment, settings: LogConfig, random: Random) -> None:
    """Set the segment's limits, which the append path compares each batch with: a batch within them needs no roll."""
    segment.size_limit = (
        0 if segment.indexes_full(settings.segment_index_bytes) else min(settings.segment_bytes, segment.room_end)
    )
    if settings.segment_jitter_ms > 0 and not segment.jitter_ms:
        segment.jitter_ms = random.randrange(min(settings.segment_jitter_ms, segment_ms(settings)))
    first = segment.first_timestamp_ms
    # Without a first timestamp `is_due` looks at every batch and goes by the wall clock.
    segment.roll_after_ms = (
        -NEVER_MS if first is None or first < 0 else first + segment_ms(settings) - segment.jitter_ms
    )


def is_due(
    segment: Segment, settings: LogConfig, size: int, max_timestamp_ms: int, last_offset: int, now_ms: int
) -> bool:
    """Whether a batch of this size, largest timestamp and last offset must go to a new segment."""
    first = segment.first_timestamp_ms
    waited_ms = max_timestamp_ms - first if first is not None and first >= 0 else now_ms - segment.created_ms
    return (
        segment.size + size > settings.segment_bytes
        or waited_ms > segment_ms(settings) - segment.jitter_ms
        or segment.indexes_full(settings.segment_index_bytes)
        or last_offset > segment.last_offset_limit
    )
