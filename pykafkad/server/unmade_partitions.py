"""Partitions that could not be made for lack of space or of descriptors are made later, without a restart.

Nothing of them is on the disk, so there is nothing to recover: `LOOK_SECONDS` after the failure, and again and again,
the partition is made as if the metadata had just named it."""

from __future__ import annotations

from itertools import islice

from pykafkad.errors import StorageFailure
from pykafkad.server.full_disk import LOOK_SECONDS, ROOM_BYTES, free_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker

PER_TURN = 10
"""So many partitions are made in one turn of the loop."""

_LOOK = "make partitions"


class UnmadePartitions:
    """The logs that stand for such partitions, in the order in which they failed; each is out of service and closed."""

    __slots__ = ("_broker", "_is_closed", "_logs")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._logs: dict[PartitionLog, None] = {}
        self._is_closed = False

    def add(self, log: PartitionLog) -> None:
        """The partition could not be made."""
        if not self._logs:
            self._look_in(LOOK_SECONDS)
        self._logs[log] = None

    def close(self) -> None:
        """The broker stops: nothing is made any more."""
        self._is_closed = True
        self._logs.clear()
        self._broker.runtime.timers.cancel((self, _LOOK))

    def fired(self, _key: str) -> None:
        """Make some, if there is space."""
        seconds = LOOK_SECONDS
        try:
            if free_bytes(self._broker.directories.metadata) < ROOM_BYTES:
                self._forget_deleted()
            elif self._make_some():
                seconds = 0.0
        finally:
            if self._logs:
                self._look_in(seconds)

    def _forget_deleted(self) -> None:
        """On a disk that stays full they would become more and more."""
        current = self._broker.partitions.get
        self._logs = {log: None for log in self._logs if current(log.topic, log.partition) is log}

    def _make_some(self) -> bool:
        """Whether none of them has failed again. The first that does is looked at last the next time."""
        broker = self._broker
        for log in list(islice(self._logs, PER_TURN)):
            del self._logs[log]
            try:
                made = broker.partitions.make_again(log)
            except StorageFailure as failure:
                if failure.is_passing or failure.lacks_space:
                    self._logs[log] = None
                    return False
                log.offline = failure.copy()
                broker.logs.error(
                    "storage", "partition-offline", topic=log.topic, partition=log.partition, reason=failure
                )
            else:
                if made is not None:
                    broker.log_recovered(made)
        return True

    def _look_in(self, seconds: float) -> None:
        runtime = self._broker.runtime
        if not self._is_closed:
            runtime.timers.set((self, _LOOK), runtime.now + seconds)
