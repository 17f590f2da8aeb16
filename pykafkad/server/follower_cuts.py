"""Cutting the logs of followers, without a wait of the loop for the device.

A cut has three steps. First it comes to the device that the checkpoints, which may say that more is synced, do not
count; that is done beside the loop. Then the log is cut, on the loop. At last the cut is brought to the device, beside
the loop again. Nothing is appended until all of that is done: the partition is not fetched, and a role that the
metadata gives to it meanwhile waits. To clients this broker is a follower until then. The cleaner leaves the log alone,
and no move of it ends."""

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

    __slots__ = ("end_offset", "ended", "log", "made", "make", "name")

    def __init__(
        self,
        log: PartitionLog,
        end_offset: int,
        make: Callable[[], Cut],
        made: Callable[[int], None],
        ended: Callable[[], None],
    ) -> None:
        self.log = log
        self.end_offset = end_offset
        self.make = make
        self.made = made
        self.ended = ended
        self.name: str | None = None
        """What says that the checkpoints do not count (`OffsetCheckpoints.prepare_cut`), if that is said."""


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
        cut = _UnderWay(log, end_offset, make, made, ended)
        before = follower_log.prepare(log, end_offset)
        directory = self._prepare(cut)
        self._under_way[log] = cut
        self._broker.partitions.hold(log)
        if directory is None and before is None:
            self._make(cut, None)
        else:
            self._prepare_beside(cut, directory, before)

    def _prepare(self, cut: _UnderWay) -> LogDirectory | None:
        """What comes before a cut; the directory whose names must be synced before it, if there is one.

        It is asked again when the log is cut: meanwhile a move may have begun, and a checkpoint that says more. Raises
        StorageFailure."""
        log, broker = cut.log, self._broker
        if any((log.topic, log.partition) in each.futures for each in broker.directories.online):
            # The copy in another directory may have what is cut.
            broker.moves.cancel(log.topic, log.partition)
        directory = broker.directories.of(log)
        if directory is None or cut.name is not None or cut.end_offset >= log.end_offset:
            return None
        cut.name = directory.offsets.prepare_cut(log, cut.end_offset)
        return None if cut.name is None else directory

    def _prepare_beside(self, cut: _UnderWay, directory: LogDirectory | None, copy: Callable[[], None] | None) -> None:
        self._broker.runtime.offload.submit(partial(_prepare, directory, copy), partial(self._make, cut))

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
            if isinstance(result, StorageFailure) and not log.closed:
                log.fail(result)
            self._failed(log, result)
            self._end(cut)
            return False
        return True

    def _failed(self, log: PartitionLog, error: Exception) -> None:
        """After a bug of ours, too, the log goes out of service: its files may not be what is known of them."""
        if not isinstance(error, StorageFailure):
            self._broker.runtime.unexpected(error)
            error = StorageFailure("cut", log.directory, str(error))
            if not log.closed:
                log.fail(error)
        if not log.closed:
            self._broker.log_failed(log, error)

    def _make(self, cut: _UnderWay, result: object) -> None:
        if not self._goes_on(cut, result):
            return
        log, broker = cut.log, self._broker
        try:
            directory = self._prepare(cut)
            if directory is not None:
                self._prepare_beside(cut, directory, None)
                return
            end_offset, sync = cut.make()
            directory = broker.directories.of(log)
            if directory is not None:
                directory.offsets.cut_made(log, cut.name)
            cut.made(end_offset)
        except Exception as error:
            self._failed(log, error)
            self._end(cut)
        else:
            if sync is None:
                self._end(cut)
            else:
                broker.runtime.offload.submit(sync, partial(self._synced, cut))

    def _synced(self, cut: _UnderWay, result: object) -> None:
        if self._goes_on(cut, result):
            self._end(cut)

    def _end(self, cut: _UnderWay) -> None:
        log = cut.log
        del self._under_way[log]
        for step in (self._take_role, lambda _: cut.ended()):
            try:
                step(log)
            except Exception as error:
                self._failed(log, error)

    def _take_role(self, log: PartitionLog) -> None:
        if self._broker.partitions.release(log):
            self._broker.role_taken(log)


def _prepare(directory: LogDirectory | None, copy: Callable[[], None] | None) -> None:
    """What is done before a cut, on any thread. Raises StorageFailure."""
    if directory is not None:
        directory.disk.sync_directory(directory.path)
    if copy is not None:
        copy()
