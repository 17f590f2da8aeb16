"""Retention: removing old segments from a log by time, by size and by DeleteRecords.

Whole segments are removed, oldest first, and only below the high watermark. If the active segment is due too, a new one
is rolled first. Compacted logs that are open are looked at by the cleaner, all others by the periodic check. The files
are renamed to `….deleted` at once and removed after `file.delete.delay.ms`. A slice that is being sent keeps its file
open."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log.file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from pykafkad.log.segment import NEVER_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.segment import Segment


def logs_of_check(logs: Iterable[PartitionLog], cleaner_enabled: bool) -> tuple[list[PartitionLog], list[PartitionLog]]:
    """The logs that the periodic check looks at (`log.retention.check.interval.ms`): those that are open, and those
    that it has to open for it.

    Open compacted logs are left to the cleaner (`logs_of_cleaner`), as nothing else may change a log that is being
    cleaned. The cleaner opens a log only for something that it would clean, and there is nothing to clean in a log of
    one segment; so unopened logs with `compact,delete` are the check's, unless the cleaner is off."""
    opened, unopened = [], []
    for log in logs:
        if log.offline is not None:
            continue
        policy = log.settings.cleanup_policy
        if not log.is_loaded:
            if "compact" not in policy or ("delete" in policy and cleaner_enabled):
                unopened.append(log)
        elif "compact" not in policy:
            opened.append(log)
    return opened, unopened


def logs_of_cleaner(logs: Iterable[PartitionLog], busy: Collection[PartitionLog]) -> list[PartitionLog]:
    """The open compacted logs, but for those in `busy`, which are being cleaned."""
    return [
        log
        for log in logs
        if "compact" in log.settings.cleanup_policy and log.is_loaded and log.offline is None and log not in busy
    ]


def delete_records(log: PartitionLog, before_offset: int) -> int:
    """See `PartitionLog.delete_records`."""
    if before_offset < 0 or before_offset > log.high_watermark:
        raise KafkaError(
            errors.OFFSET_OUT_OF_RANGE,
            f"records before {before_offset} of {log.topic}-{log.partition} cannot be "
            f"deleted: its high watermark is {log.high_watermark}",
        )
    if before_offset > log.log_start_offset:
        log.before_change()
        log.log_start_offset = before_offset
        log.epochs.truncate_from_start(before_offset)
    return log.log_start_offset


def run(log: PartitionLog, now_ms: int) -> int:
    """See `PartitionLog.run_retention`."""
    settings = log.settings
    removed = 0
    if "delete" in settings.cleanup_policy:
        if settings.retention_ms >= 0:
            removed += _remove_while(
                log, now_ms, lambda segment, _: now_ms - segment.largest_timestamp_ms > settings.retention_ms
            )
        if settings.retention_bytes >= 0:
            removed += _remove_above_size(log, now_ms, settings.retention_bytes)
    # Segments below the log start, which DeleteRecords moves, are removed under any cleanup policy.
    removed += _remove_while(
        log, now_ms, lambda _, next_base: next_base is not None and next_base <= log.log_start_offset
    )
    return removed


def next_due_ms(log: PartitionLog) -> int:
    """When the next segment is due if nothing is appended; call this right after `run`."""
    first, settings = log.segments[0], log.settings
    if "delete" not in settings.cleanup_policy or settings.retention_ms < 0 or not first.size:
        return NEVER_MS
    return first.largest_timestamp_ms + settings.retention_ms + 1


def _remove_above_size(log: PartitionLog, now_ms: int, retention_bytes: int) -> int:
    excess = log.size_bytes - retention_bytes

    def is_excess(segment: Segment, _: int | None) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    return _remove_while(log, now_ms, is_excess)


def _remove_while(log: PartitionLog, now_ms: int, is_due: Callable[[Segment, int | None], bool]) -> int:
    """Remove segments from the front while `is_due(segment, base of the next or None)` and the high watermark allow."""
    segments = log.segments
    count = 0
    for at, segment in enumerate(segments):
        next_base = segments[at + 1].base_offset if at + 1 < len(segments) else None
        end = log.end_offset if next_base is None else next_base
        if log.high_watermark < end or (next_base is None and not segment.size) or not is_due(segment, next_base):
            break
        count += 1
    if not count:
        return 0
    log.before_change()
    if count == len(segments):
        log.roll(now_ms)
    gone = segments[:count]
    del segments[:count]
    start = segments[0].base_offset
    if start > log.log_start_offset:
        log.log_start_offset = start
        log.epochs.truncate_from_start(start)
    log.recovery_point = max(log.recovery_point, start)
    try:
        for segment in gone:
            _rename_deleted(log, segment, now_ms)
    except StorageFailure as failure:
        # Files that were not renamed are part of the log again at the next start, and may not be synced. So no further
        # append may be acknowledged.
        raise log.fail(failure) from None
    log.look_for_aborted()
    return count


def _rename_deleted(log: PartitionLog, segment: Segment, now_ms: int) -> None:
    log.forget_sealed(segment)
    disk = segment.disk
    for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX):
        path = segment.prefix + suffix
        if disk.exists(path):
            disk.rename(path, path + DELETED_SUFFIX)
            log.delete_later(path + DELETED_SUFFIX, now_ms)
