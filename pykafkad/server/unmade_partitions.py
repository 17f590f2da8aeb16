"""Partitions that could not be made for lack of space or of descriptors are made later, without a restart.

Nothing of them is on the disk, so there is nothing to recover: `LOOK_SECONDS` after the failure, and again and again,
the partition is made as if the metadata had just named it."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.server.full_disk import LOOK_SECONDS, ROOM_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker

PER_TURN = 10
"""So many partitions are made in one turn of the loop."""

_LOOK = "make partitions"


class UnmadePartitions:
    """The logs that stand for such partitions, in the order in which they failed; each is out of service and closed."""

    __slots__ = ("_broker", "_logs")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._logs: dict[PartitionLog, None] = {}

    def add(self, log: PartitionLog) -> None:
        """The partition could not be made."""
        self._logs[log] = None
        self._look_in(LOOK_SECONDS)

    def fired(self, _key: str) -> None:
        """Make some, if there is space. What fails again is added again."""
        seconds = LOOK_SECONDS
        if self._has_room():
            for log in list(self._logs)[:PER_TURN]:
                del self._logs[log]
                made = self._broker.partitions.make_again(log)
                if made is not None:
                    self._broker.log_recovered(made)
                    seconds = 0.0
        if self._logs:
            self._look_in(seconds)

    def _has_room(self) -> bool:
        directory = self._broker.directories.metadata
        try:
            return directory.disk.usage(directory.path)[1] >= ROOM_BYTES
        except StorageFailure:
            return False

    def _look_in(self, seconds: float) -> None:
        runtime = self._broker.runtime
        runtime.timers.set((self, _LOOK), runtime.now + seconds)
