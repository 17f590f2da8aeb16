"""The log cleaner: it chooses the compacted log to clean next and runs the cleaning, as Kafka's LogCleaner does.

The cleaner takes the dirtiest log with `cleanup.policy=compact`: the one with the largest share of dirty bytes. Dirty
bytes lie between the offset that the last run reached (`cleaner-offset-checkpoint`) and the first segment that may not
be cleaned. That is the active segment, the segment of the last stable offset, or the first with records younger than
`min.compaction.lag.ms`. A log is cleaned when its dirty share is above `min.cleanable.dirty.ratio`, or when one of its
records has waited for `max.compaction.lag.ms`.

A run (`clean`) is a generator of the small steps of `compaction.py`. A log whose batches cannot be parsed is not
cleaned again, as in Kafka.

Where we differ: the map of keys holds the keys, where Kafka's holds 16-byte hashes. So
`log.cleaner.dedupe.buffer.size` holds fewer keys, and a log with very many keys is cleaned in more runs. A batch that
loses records keeps its base timestamp. A disk error before the segments are exchanged ends the run and leaves the log
in service."""

from __future__ import annotations

import posixpath
from collections import namedtuple

from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log import checkpoints, compaction, swap, txn_index
from pykafkad.log.file_names import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from pykafkad.log.offset_map import OffsetMap
from pykafkad.log.record_scan import BrokenRecords
from pykafkad.wire.batch import HEADER_SIZE_BYTES, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.disk import Disk
    from pykafkad.log.compaction import Steps
    from pykafkad.log.log_config import LogConfig
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.segment import Segment
CLEANER_FILE = "cleaner-offset-checkpoint"
# The largest span of offsets that one segment can index.
_MAX_SPAN = 0x7FFFFFFF


class Candidate(
    namedtuple("Candidate", ("log", "first_dirty_offset", "end_offset", "clean_bytes", "dirty_bytes", "is_overdue"))
):
    """A log to clean: the offsets [first_dirty_offset, end_offset) are new, and `end_offset` is the base of a segment
    that stays as it is. `is_overdue` says that a record in it has waited for longer than `max.compaction.lag.ms`."""

    __slots__ = ()

    log: PartitionLog
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool


class Cleaned:
    """The result of a run: bytes read and written, and the offset up to which the log is clean now."""

    __slots__ = ("end_offset", "read_bytes", "written_bytes")

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.read_bytes = 0
        self.written_bytes = 0


class CleaningAborted(Exception):
    """The log was deleted, moved or went offline, or is no longer compacted."""


class LogCleaner:
    """Chooses logs and remembers how far each is clean. `uncleanable` are the logs on which a run has failed."""

    __slots__ = ("_checkpoints", "_disk", "_looked_at", "uncleanable")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._checkpoints: dict[str, dict[tuple[str, int], int]] = {}
        self._looked_at: set[PartitionLog] = set()
        self.uncleanable: set[PartitionLog] = set()

    # -- what was cleaned ----------------------------------------------------------------------------------------------

    def _cleaned_offsets(self, log: PartitionLog) -> dict[tuple[str, int], int]:
        directory = posixpath.dirname(log.directory)
        offsets = self._checkpoints.get(directory)
        if offsets is None:
            offsets = self._checkpoints[directory] = checkpoints.decode_offsets(
                self._disk.read(f"{directory}/{CLEANER_FILE}")
            )
        return offsets

    def note_cleaned(self, log: PartitionLog, offset: int, present: Iterable[PartitionLog]) -> None:
        """Checkpoint that `log` is clean below `offset`; rows of logs that are not in `present` are removed.

        The file is not synced: a power loss that takes rows away costs another cleaning and nothing else."""
        offsets = self._cleaned_offsets(log)
        directory = posixpath.dirname(log.directory)
        kept = {(each.topic, each.partition) for each in present}
        for key in [key for key in offsets if key not in kept]:
            del offsets[key]
        offsets[log.topic, log.partition] = offset
        self._disk.replace(f"{directory}/{CLEANER_FILE}", checkpoints.encode_offsets(offsets), sync=False)

    def forget(self, logs: Iterable[PartitionLog]) -> None:
        """Forget deleted logs, because a new log may get the same name."""
        changed: dict[str, None] = {}
        for log in logs:
            if self._cleaned_offsets(log).pop((log.topic, log.partition), None) is not None:
                changed[posixpath.dirname(log.directory)] = None
        for directory in changed:
            self._disk.replace(
                f"{directory}/{CLEANER_FILE}", checkpoints.encode_offsets(self._checkpoints[directory]), sync=False
            )

    # -- choosing ------------------------------------------------------------------------------------------------------

    def pick(self, logs: Iterable[PartitionLog], now_ms: int, busy: Iterable[PartitionLog] = ()) -> Candidate | None:
        """The dirtiest log that is due for cleaning, or None. Logs in `busy` are skipped."""
        logs = list(logs)
        self.uncleanable = {log for log in self.uncleanable if not log.closed}
        self._looked_at = {log for log in self._looked_at if not log.closed}
        best, best_ratio = None, -1.0
        for log in logs:
            if not self._may_clean(log) or log in busy:
                continue
            try:
                candidate = self._assess(log, now_ms, logs)
            except StorageFailure:
                # The log is offline now, or reports the failure at its next use.
                continue
            total = candidate.clean_bytes + candidate.dirty_bytes
            if not total:
                continue
            ratio = candidate.dirty_bytes / total
            if (
                (candidate.is_overdue and candidate.dirty_bytes) or ratio > log.settings.min_cleanable_dirty_ratio
            ) and ratio > best_ratio:
                best, best_ratio = candidate, ratio
        return best

    def _may_clean(self, log: PartitionLog) -> bool:
        if (
            "compact" not in log.settings.cleanup_policy
            or log.closed
            or log.offline is not None
            or log in self.uncleanable
        ):
            return False
        if log.is_loaded:
            return True
        if log in self._looked_at:
            return False
        # An unopened log does not change, so one look at its files is enough: with a single segment there is nothing
        # to clean.
        self._looked_at.add(log)
        return log.count_segment_files() > 1

    def _assess(self, log: PartitionLog, now_ms: int, logs: list[PartitionLog]) -> Candidate:
        cleaned = self._cleaned_offsets(log).get((log.topic, log.partition))
        start, end = log.log_start_offset, log.end_offset
        first_dirty = start if cleaned is None else cleaned
        if not start <= first_dirty <= end:
            # The log was truncated or starts later now, so all of it counts as dirty.
            first_dirty = start
            self.note_cleaned(log, first_dirty, logs)
        segments = log.segments
        dirty = log.segments_from(first_dirty)[:-1] if first_dirty < segments[-1].base_offset else []
        first_uncleanable = min(log.last_stable_offset, segments[-1].base_offset, self._too_young(log, dirty, now_ms))
        end_at = log.segment_at(max(first_dirty, first_uncleanable))
        end_offset = segments[end_at].base_offset
        first = min(log.segment_at(min(first_dirty, end_offset)), end_at)
        return Candidate(
            log,
            first_dirty,
            end_offset,
            sum(segment.size for segment in segments if segment.base_offset < first_dirty),
            sum(segment.size for segment in segments[first:end_at]),
            self._is_overdue(log, dirty, now_ms),
        )

    @staticmethod
    def _too_young(log: PartitionLog, dirty: list[Segment], now_ms: int) -> int:
        lag_ms = log.settings.min_compaction_lag_ms
        if lag_ms > 0:
            for segment in dirty:
                if segment.largest_timestamp_ms > now_ms - lag_ms:
                    return segment.base_offset
        return log.end_offset

    @staticmethod
    def _is_overdue(log: PartitionLog, dirty: list[Segment], now_ms: int) -> bool:
        clean_until_ms = now_ms - log.settings.max_compaction_lag_ms
        return any(0 < first_timestamp_ms(segment) < clean_until_ms for segment in dirty)

    # -- one run -------------------------------------------------------------------------------------------------------

    def clean(
        self, candidate: Candidate, now_ms: int, io: compaction.Io, *, buffer_bytes: int, load_factor: float
    ) -> Steps[Cleaned]:
        """Clean a log. A generator: `compaction.py` says what it yields; it returns a `Cleaned`.

        Raises `CleaningAborted`, `StorageFailure`, or `BrokenRecords` for batches that cannot be parsed; the log is
        then in `uncleanable`. In all three cases the log keeps its old segments."""
        log = candidate.log
        try:
            return (yield from _watched(log, _clean(candidate, now_ms, OffsetMap(buffer_bytes, load_factor), io)))
        except (KafkaError, BrokenRecords, IndexError, ValueError) as error:
            self.uncleanable.add(log)
            raise BrokenRecords(f"{log.topic}-{log.partition}: {error}") from error


def first_timestamp_ms(segment: Segment) -> int:
    """The largest timestamp of a segment's first batch, which the segment's age counts from; -1 without batches."""
    if segment.first_timestamp_ms is None:
        if segment.written_size < HEADER_SIZE_BYTES:
            return -1
        segment.first_timestamp_ms = parse_header(segment.file.pread(HEADER_SIZE_BYTES, 0)).max_timestamp_ms
    return segment.first_timestamp_ms


def _watched(log: PartitionLog, steps: Steps[Cleaned]) -> Steps[Cleaned]:
    """Run `steps` while the log is in service, compacted and in its directory; else raise `CleaningAborted`."""
    answer: object = None
    directory = log.directory
    while True:
        if (
            log.closed
            or log.directory != directory
            or log.offline is not None
            or "compact" not in log.settings.cleanup_policy
        ):
            steps.close()
            raise CleaningAborted(f"{log.topic}-{log.partition} is not to be compacted any more")
        try:
            # The failure of a job on another thread is raised in the step that asked for the job.
            asked = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
        except StopIteration as end:
            cleaned: Cleaned = end.value
            return cleaned
        answer = yield asked


def _clean(candidate: Candidate, now_ms: int, offsets: OffsetMap, io: compaction.Io) -> Steps[Cleaned]:
    log, start, end = candidate.log, candidate.first_dirty_offset, candidate.end_offset
    aborted = txn_index.collect(log.segments, log.segments[0].base_offset, end)
    first = log.segment_at(start)
    dirty = [segment for segment in log.segments[first:] if segment.base_offset < end]
    yield from compaction.build_map(dirty, start, end, offsets, aborted, io)
    yield from offsets.complete(start)
    cleaned = Cleaned(offsets.latest_offset + 1)
    run = compaction.Pass(log, offsets, aborted, end, now_ms)
    old = [segment for segment in log.segments if segment.base_offset < cleaned.end_offset]
    for group in group_segments(old, log.settings, end):
        run.note_producers(log.producers)
        cleaned.read_bytes += sum(segment.size for segment in group)
        cleaned.written_bytes += yield from _clean_group(log, group, run, io, now_ms)
    yield from offsets.release()
    return cleaned


def _clean_group(
    log: PartitionLog, group: list[Segment], run: compaction.Pass, io: compaction.Io, now_ms: int
) -> Steps[int]:
    """Replace the segments of a group by one new segment; returns its size in bytes."""
    target = swap.begin(log, group[0].base_offset, now_ms)
    replaced = False
    try:
        for segment in group:
            yield from compaction.copy_segment(run, segment, target, io, log.settings.index_interval_bytes)
        target.aborted, run.transactions.kept = txn_index.AbortedTransactions(run.transactions.kept), []
        modified_ms = log.segments[0].disk.modified_ms(group[-1].file.path)
        yield lambda: swap.finish(target, modified_ms)
        swap.replace(log, group, target, now_ms)
        replaced = True
        yield lambda: target.disk.sync_directory(target.directory)
    finally:
        if not replaced and log.offline is None:
            # For a log that went offline in between, the next start finishes the exchange.
            swap.abandon(target)
    return target.size


def group_segments(segments: list[Segment], settings: LogConfig, first_uncleanable_offset: int) -> list[list[Segment]]:
    """Group neighbouring segments that fit into one: by `segment.bytes`, index sizes and the span of offsets."""
    groups: list[list[Segment]] = []
    size = index_bytes = time_index_bytes = 0
    for at, segment in enumerate(segments):
        indexes = [segment.disk.size(segment.prefix + suffix) for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)]
        end_offset = segments[at + 1].base_offset if at + 1 < len(segments) else first_uncleanable_offset
        if (
            groups
            and size + segment.size <= settings.segment_bytes
            and index_bytes + indexes[0] <= settings.segment_index_bytes
            and time_index_bytes + indexes[1] <= settings.segment_index_bytes
            and (not segment.size or end_offset - 1 - groups[-1][0].base_offset <= _MAX_SPAN)
        ):
            groups[-1].append(segment)
            size, index_bytes, time_index_bytes = (
                size + segment.size,
                index_bytes + indexes[0],
                time_index_bytes + indexes[1],
            )
        else:
            groups.append([segment])
            size, index_bytes, time_index_bytes = segment.size, *indexes
    return groups
