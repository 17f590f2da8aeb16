"""What a broker does by the clock: retention, deletion of what was renamed away, checkpoints, scheduled flushes.

Compacted logs are `compaction.py`'s, their retention included, as soon as they are open.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from pykafkad.errors import StorageFailure
from pykafkad.log import retention, syncing
from pykafkad.metadata import record_codec
from pykafkad.server.runtime import RuntimeNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.log_files import LogFiles
    from pykafkad.log.offset_checkpoints import CheckpointJob
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.syncing import SyncJob
    from pykafkad.server.directories import Directories
    from pykafkad.server.runtime import Runtime


_SYNC_SECONDS = 5.0
_EPOCH_FILES_PER_TURN = 16
_NOTES_PER_TURN = 500
_UNOPENED_PER_TURN = 16
_RENAMES_PER_TURN = 64
_REMOVALS_PER_JOB = 16
_STEP_SECONDS = 0.002
_HIGH_WATERMARK = "high watermark checkpoint"
_DELETIONS = "deletions"
_RENAMES = "renames of what was deleted"
_RETENTION = "retention"
_FLUSH = "flush"
_SYNC = "sync of rolled segments"
_PRODUCERS = "expiration of producers"


class Housekeeping(RuntimeNode):
    """Owner of the timers of these jobs. A job that fails is logged and tried again at its next time.

    All jobs but the deletions and the renames before them repeat at their intervals; those have a timer only while
    something waits."""

    __slots__ = (
        "_checkpointing",
        "_departed",
        "_directories",
        "_is_removing",
        "_removals",
        "_runtime",
        "_settings",
        "_to_note",
        "_unopened",
        "log_failed",
        "partitions",
    )

    def __init__(self, runtime: Runtime, settings: Settings, directories: Directories) -> None:
        self._runtime = runtime
        self._settings = settings
        self._directories = directories
        self.partitions: Iterable[PartitionLog] = ()
        """The logs of the partitions that a broker of this process holds."""
        self.log_failed: Callable[[Any, StorageFailure], object] | None = None
        """The broker's, for a log of a partition that went out of service."""
        self._is_removing = False
        self._removals: deque[tuple[LogDirectory, str, bool]] = deque()
        self._unopened: list[PartitionLog] = []
        # Logs whose offsets are still to be noted for the next checkpoint; None between two of them.
        self._to_note: list[tuple[LogDirectory, PartitionLog]] | None = None
        self._checkpointing: set[LogDirectory] = set()
        # How many partitions had left a directory when a checkpoint without them was asked for.
        self._departed: dict[LogDirectory, int] = {}

    def fired(self, job: str) -> None:
        """Do one job, or a turn's part of it, and set its timer anew."""
        goes_on = None
        try:
            goes_on = _JOBS[job](self)
        except StorageFailure as failure:
            self._runtime.logs.error("storage", "housekeeping-failed", job=job, reason=failure)
        if job in _REPEATED:
            self._runtime.timers.set((self, job), self._runtime.clock.now() + (0 if goes_on else self.interval(job)))
        self.plan_deletions()

    def start(self) -> None:
        """Set the timers of a node that begins to serve."""
        now = self._runtime.now
        for job in _REPEATED:
            # Kafka does these for the first time some while after its start, whatever their interval.
            first = self._settings.log_initial_task_delay_ms / 1000 if job in _DELAYED else self.interval(job)
            self._runtime.timers.set((self, job), now + first)
        self.plan_deletions()

    def close(self) -> None:
        """Nothing is done any more."""
        for job in _JOBS:
            self._runtime.timers.cancel((self, job))

    def plan_deletions(self) -> None:
        """Have what was renamed away removed when its delay (`file.delete.delay.ms`) is over, and what is to be renamed
        be that soon."""
        if any(directory.is_leaving for directory in self._directories.every()):
            self._runtime.timers.set((self, _RENAMES), self._runtime.now)
        for directory in self._directories.every():
            # A checkpoint soon: a partition that is made again must not wait for one.
            if directory.departed_count > self._departed.get(directory, 0):
                self._departed[directory] = directory.departed_count
                self._runtime.timers.set((self, _HIGH_WATERMARK), self._runtime.now)
        next_ms = [directory.next_deletion_ms for directory in self._directories.every()]
        due_ms = min((each for each in next_ms if each is not None), default=None)
        if due_ms is not None:
            self._runtime.timers.set(
                (self, _DELETIONS), self._runtime.now + max(0, due_ms - self._runtime.now_ms) / 1000
            )

    def interval(self, job: str) -> float:
        """Seconds between two runs, read anew each time: some of the settings can change live."""
        settings = self._settings
        if job == _RETENTION:
            return settings.log_retention_check_interval_ms / 1000
        if job == _PRODUCERS:
            return settings.producer_id_expiration_check_interval_ms / 1000
        if job == _HIGH_WATERMARK:
            # Log starts are written with them.
            often = min(
                settings.replica_high_watermark_checkpoint_interval_ms,
                settings.log_flush_start_offset_checkpoint_interval_ms,
            )
            return max(0.1, often / 1000)
        if job == _FLUSH:
            return max(0.1, min(settings.log_flush_offset_checkpoint_interval_ms, 60_000) / 1000)
        return _SYNC_SECONDS

    def _retention(self) -> bool:
        """Whether it goes on in the next turn: logs that nobody has opened since the start have to be opened for it."""
        waiting = self._unopened
        if not waiting:
            opened, unopened = retention.logs_of_check(self.partitions, self._settings.log_cleaner_enable)
            waiting += unopened
            for log in opened:
                self._each(log, _RETENTION, partial(log.run_retention, self._runtime.now_ms))
        until = self._runtime.clock.now() + _STEP_SECONDS
        for log in waiting[: -_UNOPENED_PER_TURN - 1 : -1]:
            waiting.pop()
            directory = self._directories.of(log)
            # It may be deleted by now, moved, opened or offline.
            if directory is not None and not log.closed and not log.is_loaded and log.offline is None:
                self._each(log, _RETENTION, partial(directory.run_retention_at_rest, log, self._runtime.now_ms))
            if self._runtime.clock.now() >= until:
                break
        return bool(waiting)

    def _expire_producers(self) -> None:
        expiration_ms = self._settings.producer_id_expiration_ms
        for log in list(self.partitions):
            if log.is_loaded and log.offline is None:
                log.producers.expire(self._runtime.now_ms, expiration_ms)

    def _checkpoint(self) -> bool:
        """Whether it goes on in the next turn: after an unclean start every log has a new leader epoch, and a file for
        it."""
        directories = self._directories
        if self._to_note is None:
            self._to_note = [(directory, log) for directory in directories.every() for log in directory.logs.values()]
        waiting, files = self._to_note, 0
        for directory, log in waiting[: -_NOTES_PER_TURN - 1 : -1]:
            waiting.pop()
            # It may be deleted by now, moved or offline.
            if directory.logs.get((log.topic, log.partition)) is log and _has_new_epochs(log):
                self._each(log, _HIGH_WATERMARK, log.write_epochs)
                files += 1
            directory.note_offsets(log)
            if files == _EPOCH_FILES_PER_TURN:
                break
        if waiting:
            return True
        self._to_note = None
        for directory in directories.every():
            # One that is not done by now goes on; the next one is due soon.
            if directory not in self._checkpointing:
                self._checkpointing.add(directory)
                job = directory.checkpoint_job()
                self._runtime.offload.submit(job.run, partial(self._checkpoint_written, directory, job))
        return False

    def _checkpoint_written(self, directory: LogDirectory, job: CheckpointJob, result: object) -> None:
        try:
            if isinstance(result, Exception):
                raise result
            if directory.failure is None and job.finish():
                self._runtime.offload.submit(job.sync_names, partial(self._checkpoint_done, directory))
                return
        except StorageFailure as failure:
            result = failure
        self._checkpoint_done(directory, result)

    def _checkpoint_done(self, directory: LogDirectory, result: object) -> None:
        self._checkpointing.discard(directory)
        self._departed[directory] = directory.departed_count
        if isinstance(result, StorageFailure):
            self._runtime.logs.error(
                "storage", "housekeeping-failed", job=_HIGH_WATERMARK, directory=directory.path, reason=result
            )
            self._directories.report(directory, result)
        elif isinstance(result, Exception):
            raise result

    def _flush(self) -> None:
        now_ms = self._runtime.now_ms
        for log in list(self.partitions):
            if syncing.is_flush_due(log, now_ms):
                log.flushed_ms = now_ms
                self._submit(log.whole_sync_job(), self._directories.of(log))

    def _renames(self) -> None:
        """A turn's share of the folders of deleted partitions."""
        until = self._runtime.clock.now() + _STEP_SECONDS
        for directory in list(self._directories.every()):
            for _ in range(_RENAMES_PER_TURN):
                if not directory.is_leaving or self._runtime.clock.now() >= until:
                    break
                try:
                    directory.rename_deleted()
                except StorageFailure as failure:
                    self._runtime.logs.error("storage", "delete-failed", directory=directory.path, reason=failure)

    def _deletions(self) -> None:
        for directory in self._directories.every():
            self._removals += [(directory, *due) for due in directory.take_due_deletions(self._runtime.now_ms)]
        if not self._is_removing:
            self._remove_some()

    def _remove_some(self) -> None:
        # A few in one job, and the next when they are gone: a sync that answers wait for stands behind no more of them,
        # nor a stop.
        removals = self._removals
        share = [removals.popleft() for _ in range(min(len(removals), _REMOVALS_PER_JOB))]
        self._is_removing = bool(share)
        if share:
            self._runtime.offload.submit(lambda: _remove(share), self._removed)

    def _removed(self, failures: list[StorageFailure] | Exception) -> None:
        for failure in [failures] if isinstance(failures, Exception) else failures:
            self._runtime.logs.warning("storage", "delete-failed", reason=failure)
        self._remove_some()

    def cancel_work(self) -> None:
        """The broker stops: what is not removed yet goes after the next start."""
        self._removals.clear()

    def _sync(self) -> None:
        # As in Kafka a segment is synced some time after it rolled, so that a restart after a crash reads little again.
        for directory in self._directories.every():
            for job in directory.sync_jobs():
                self._submit(job, directory)

    def _submit(self, job: SyncJob, directory: LogDirectory | None) -> None:
        self._runtime.offload.submit(job.run, lambda result: self._synced(job, directory, result))

    def _synced(self, job: SyncJob, directory: LogDirectory | None, result: object) -> None:
        if not isinstance(result, Exception):
            job.finish()
            return
        # Whatever a sync raised, it did not happen.
        self._runtime.logs.error("storage", "sync-failed", reason=result)
        if not isinstance(result, StorageFailure):
            self._runtime.unexpected(result)
            assert directory is not None
            result = StorageFailure("sync", directory.path, result)
        job.failed(result)
        self._failed(job.log, directory, result)

    def _each(self, log: PartitionLog, job: str, work: Callable[[], object]) -> None:
        """One log's failure must not keep the others from their turn."""
        try:
            work()
        except StorageFailure as failure:
            self._runtime.logs.error(
                "storage", "housekeeping-failed", job=job, topic=log.topic, partition=log.partition, reason=failure
            )
            self._failed(log, self._directories.of(log), failure)

    def _failed(self, log: LogFiles, directory: LogDirectory | None, failure: StorageFailure) -> None:
        """Tell the broker of a log that went out of service: nobody may ask for it who would notice."""
        is_partition = (log.topic, log.partition) != record_codec.LOG
        if log.offline is not None and not log.closed and is_partition and self.log_failed is not None:
            self.log_failed(log, failure)
        else:
            self._directories.report(directory, failure)


def _remove(removals: list[tuple[LogDirectory, str, bool]]) -> list[StorageFailure]:
    """Remove files and folders, on any thread; what could not be is told, and goes at the next start."""
    failures = []
    for directory, path, is_directory in removals:
        try:
            directory.remove(path, is_directory)
        except StorageFailure as failure:
            failures.append(failure)
    return failures


def _has_new_epochs(log: PartitionLog) -> bool:
    return log.is_loaded and log.offline is None and log.epochs.changed


_JOBS = {
    _RETENTION: Housekeeping._retention,
    _HIGH_WATERMARK: Housekeeping._checkpoint,
    _FLUSH: Housekeeping._flush,
    _DELETIONS: Housekeeping._deletions,
    _RENAMES: Housekeeping._renames,
    _SYNC: Housekeeping._sync,
    _PRODUCERS: Housekeeping._expire_producers,
}

_REPEATED = (_RETENTION, _HIGH_WATERMARK, _FLUSH, _SYNC, _PRODUCERS)
_DELAYED = (_RETENTION, _FLUSH)
