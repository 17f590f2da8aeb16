"""Logs that a full disk took out of service come back when there is space again, without a restart.

One log after the other is recovered off the loop. One for which there is no space yet, or whose recovery fails for lack
of it, is looked at again `LOOK_SECONDS` later, and does not hold up the others."""

from __future__ import annotations

from functools import partial

from pykafkad.errors import StorageFailure
from pykafkad.log.reopening import ReopenJob, can_reopen
from pykafkad.wire.batch import HEADER_SIZE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker

LOOK_SECONDS = 5.0
ROOM_BYTES = 1024 * 1024
"""The space that a file system must have before a log is opened again, besides that for its indexes. With less it would
soon fail once more."""

_INDEX_BYTES = 20
"""One entry in each of the two indexes (8 and 12 bytes), for every `index.interval.bytes`."""

LOOKS_PER_TURN = 200
"""So many logs for which there is no space, or nothing to do any more, are looked at in one turn of the loop."""

_LOOK = "look for space"


class FullDisk:
    """The logs of a broker that wait for space, with when each is looked at next. The earliest is the first."""

    __slots__ = ("_broker", "_failed_logs", "_is_busy", "_is_closed", "_waiting")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[PartitionLog, float] = {}
        self._failed_logs: set[PartitionLog] = set()
        """Those that wait, and whose last recovery has failed."""
        self._is_busy = self._is_closed = False

    def add(self, log: PartitionLog) -> None:
        """The log has failed. It waits here if space can help it."""
        if can_reopen(log):
            self._wait(log)
            self._plan()

    def close(self) -> None:
        """The broker stops: nothing comes back any more."""
        self._is_closed = True
        self._waiting.clear()
        self._failed_logs.clear()
        self._broker.runtime.timers.cancel((self, _LOOK))

    def fired(self, _key: str) -> None:
        """Recover the first log that is due, and that there is space for: up to `LOOKS_PER_TURN` are looked at."""
        broker, rooms = self._broker, {}
        for _ in range(LOOKS_PER_TURN):
            log = next(iter(self._waiting), None)
            if self._is_busy or log is None or self._waiting[log] > broker.runtime.now:
                break
            del self._waiting[log]
            directory = broker.directories.of(log)
            if directory is None or not can_reopen(log):
                # Deleted, or out of service for good.
                self._failed_logs.discard(log)
                continue
            if directory not in rooms:
                rooms[directory] = free_bytes(directory)
            if rooms[directory] < _needed_bytes(log) or log in broker.compaction.busy:
                self._wait(log)
                continue
            job = ReopenJob(log, broker.runtime.now_ms, directory.offsets)
            self._is_busy = True
            broker.runtime.offload.submit(job.run, partial(self._recovered, job))
        self._plan()

    def _recovered(self, job: ReopenJob, result: object) -> None:
        self._is_busy = False
        if self._is_closed:
            return
        log = job.log
        try:
            if not isinstance(result, Exception) and not job.has_moved and can_reopen(log):
                self._failed_logs.discard(log)
                job.finish()
                self._broker.log_recovered(log)
            else:
                job.give_up()
                self._failed(job, result)
        finally:
            self._plan()

    def _failed(self, job: ReopenJob, result: object) -> None:
        """The log waits again if another try may succeed."""
        log, broker = job.log, self._broker
        if job.has_moved:
            # What was found are not its files any more: it is due at once.
            self._waiting.pop(log, None)
            self._waiting = {log: broker.runtime.now, **self._waiting}
            return
        is_first = log not in self._failed_logs
        self._failed_logs.discard(log)
        if not can_reopen(log):
            return
        if not isinstance(result, StorageFailure):
            assert isinstance(result, Exception)
            broker.runtime.unexpected(result)
            result = StorageFailure("recover", log.directory, str(result))
        if result.operation != "sync" and (result.lacks_space or result.is_passing):
            if is_first:
                broker.logs.error("storage", "recovery-failed", topic=log.topic, partition=log.partition, reason=result)
            self._failed_logs.add(log)
            self._wait(log)
        else:
            # Nobody knows what the disk holds. After a failed sync the next try would have nothing to write, and take
            # for synced what the kernel has dropped.
            broker.logs.error("storage", "recovery-given-up", topic=log.topic, partition=log.partition, reason=result)
            log.offline = result.copy()
            broker.hand_over(log)

    def _wait(self, log: PartitionLog) -> None:
        self._waiting.pop(log, None)
        self._waiting[log] = self._broker.runtime.now + LOOK_SECONDS

    def _plan(self) -> None:
        """Set the timer for the first log; a job that ends plans anew."""
        first = next(iter(self._waiting.values()), None)
        if first is not None and not self._is_busy and not self._is_closed:
            self._broker.runtime.timers.set((self, _LOOK), first)


def _needed_bytes(log: PartitionLog) -> int:
    """The space that the log needs before it is opened again. Recovery writes the indexes of what is not synced."""
    if not log.is_loaded:
        return ROOM_BYTES
    unsynced = sum(segment.size for segment in log.segments_from(log.recovery_point))
    return ROOM_BYTES + unsynced // max(log.settings.index_interval_bytes, HEADER_SIZE_BYTES) * _INDEX_BYTES


def free_bytes(directory: LogDirectory) -> int:
    """The free space of the file system of a directory; 0 if nobody can tell."""
    try:
        return directory.disk.usage(directory.path)[1]
    except StorageFailure:
        return 0
