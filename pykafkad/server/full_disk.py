"""Logs that a full disk took out of service come back when there is space again, without a restart.

One log after the other is recovered off the loop. While one of them waits, the file system is looked at every
`LOOK_SECONDS`."""

from __future__ import annotations

from functools import partial

from pykafkad.errors import StorageFailure
from pykafkad.log.reopening import ReopenJob, can_reopen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker

LOOK_SECONDS = 5.0
ROOM_BYTES = 1024 * 1024
"""The space that a file system must have before a log is opened again. With less it would soon fail once more."""

_LOOK = "look for space"


class FullDisk:
    """The logs of a broker that wait for space, in the order in which they failed."""

    __slots__ = ("_broker", "_is_busy", "_waiting")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[PartitionLog, None] = {}
        self._is_busy = False

    def add(self, log: PartitionLog) -> None:
        """The log has failed. It waits here if space can help it."""
        if can_reopen(log):
            self._waiting[log] = None
            self._look_in(LOOK_SECONDS)

    def fired(self, _key: str) -> None:
        """Recover the first log that there is space for."""
        if self._is_busy:
            return
        broker = self._broker
        for log in [each for each in self._waiting if not can_reopen(each)]:
            del self._waiting[log]
        for log in self._waiting:
            directory = broker.directories.of(log)
            if directory is not None and log not in broker.compaction.busy and self._has_room(log):
                job = ReopenJob(log, broker.runtime.now_ms, directory.offsets)
                self._is_busy = True
                broker.runtime.offload.submit(job.run, partial(self._recovered, job))
                return
        if self._waiting:
            self._look_in(LOOK_SECONDS)

    def _has_room(self, log: PartitionLog) -> bool:
        try:
            return log.disk.usage(log.directory)[1] >= ROOM_BYTES
        except StorageFailure:
            return False

    def _recovered(self, job: ReopenJob, result: object) -> None:
        self._is_busy = False
        log = job.log
        seconds = LOOK_SECONDS
        if not isinstance(result, Exception) and not job.has_moved and can_reopen(log):
            del self._waiting[log]
            job.finish()
            self._broker.log_recovered(log)
            seconds = 0.0
        else:
            job.give_up()
        if isinstance(result, StorageFailure):
            self._broker.logs.error(
                "storage", "recovery-failed", topic=log.topic, partition=log.partition, reason=result
            )
            if log.offline is not None and result.operation == "sync":
                # The next try would have nothing to write, and take for synced what the kernel has dropped.
                log.offline = result.copy()
        elif isinstance(result, Exception):
            del self._waiting[log]
            self._broker.runtime.unexpected(result)
        elif job.has_moved:
            seconds = 0.0
        if self._waiting:
            self._look_in(seconds)

    def _look_in(self, seconds: float) -> None:
        timers = self._broker.runtime.timers
        timers.set((self, _LOOK), self._broker.runtime.now + seconds)
