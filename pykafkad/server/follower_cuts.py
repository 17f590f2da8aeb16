"""Cutting the logs of followers, without a wait of the loop for the device.

A cut has three steps. First it comes to the device that the checkpoints, which may say that more is synced, do not
count; that is done beside the loop. Then the log is cut, on the loop. At last the cut is brought to the device, beside
the loop again. Nothing is appended until all of that is done: the partition is not fetched, and a role that the
metadata gives to it meanwhile waits. To clients this broker is a follower until then."""

from __future__ import annotations

from functools import partial

from pykafkad.errors import StorageFailure
from pykafkad.log import follower_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.follower_log import Cut
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker


class _UnderWay:
    """One cut. `make()` cuts the log; `made(end_offset)` is told, and `ended()` when the log may be written again."""

    __slots__ = ("ended", "log", "made", "make", "name")

    def __init__(
        self,
        log: PartitionLog,
        make: Callable[[], Cut],
        made: Callable[[int], None],
        ended: Callable[[], None],
        name: str | None,
    ) -> None:
        self.log = log
        self.make = make
        self.made = made
        self.ended = ended
        self.name = name


class FollowerCuts:
    """The cuts of a broker: at most one of each partition, since a partition that is cut is not fetched."""

    __slots__ = ("_broker", "_under_way")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._under_way: dict[PartitionLog, _UnderWay] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(
        self,
        log: PartitionLog,
        end_offset: int,
        make: Callable[[], Cut],
        made: Callable[[int], None],
        ended: Callable[[], None],
    ) -> None:
        """Cut a log to `end_offset` by `make`. Raises StorageFailure, and then nothing is under way."""
        broker = self._broker
        if any((log.topic, log.partition) in each.futures for each in broker.directories.online):
            # The copy in another directory may have what is cut.
            broker.moves.cancel(log.topic, log.partition)
        directory = broker.directories.of(log)
        before = follower_log.prepare(log, end_offset)
        name = None
        if directory is not None and end_offset < log.end_offset:
            name = directory.offsets.prepare_cut(log, end_offset)
        cut = self._under_way[log] = _UnderWay(log, make, made, ended, name)
        broker.partitions.hold(log)
        if name is None and before is None:
            self._make(cut, None)
        else:
            job = partial(_prepare, directory if name is not None else None, before)
            broker.runtime.offload.submit(job, partial(self._make, cut))

    def forget(self, log: PartitionLog) -> None:
        """The partition is gone from this broker."""
        if self._under_way.pop(log, None) is not None:
            self._broker.partitions.release(log)

    def close(self) -> None:
        """The broker stops: no log is cut any more. What is done already comes to the device with the rest."""
        self._under_way.clear()

    def _goes_on(self, cut: _UnderWay, result: object) -> bool:
        """Whether the cut is still wanted, and nothing has failed."""
        log = cut.log
        if self._under_way.get(log) is not cut:
            return False
        if isinstance(result, Exception):
            if not isinstance(result, StorageFailure):
                self._broker.runtime.unexpected(result)
                result = StorageFailure("cut", log.directory, str(result))
            if not log.closed:
                self._fail(cut, log.fail(result))
            return False
        return True

    def _fail(self, cut: _UnderWay, failure: StorageFailure) -> None:
        self._broker.log_failed(cut.log, failure)
        self._end(cut)

    def _make(self, cut: _UnderWay, result: object) -> None:
        if not self._goes_on(cut, result):
            return
        log, broker = cut.log, self._broker
        try:
            end_offset, sync = cut.make()
        except StorageFailure as failure:
            self._fail(cut, failure)
            return
        directory = broker.directories.of(log)
        if directory is not None:
            directory.offsets.cut_made(cut.name)
        cut.made(end_offset)
        if sync is None:
            self._end(cut)
        else:
            broker.runtime.offload.submit(sync, partial(self._synced, cut))

    def _synced(self, cut: _UnderWay, result: object) -> None:
        if self._goes_on(cut, result):
            self._end(cut)

    def _end(self, cut: _UnderWay) -> None:
        del self._under_way[cut.log]
        if self._broker.partitions.release(cut.log):
            self._broker.role_taken(cut.log)
        cut.ended()


def _prepare(directory: LogDirectory | None, copy: Callable[[], None] | None) -> None:
    """What is done before a cut, on any thread. Raises StorageFailure."""
    if directory is not None:
        directory.disk.sync_directory(directory.path)
    if copy is not None:
        copy()
