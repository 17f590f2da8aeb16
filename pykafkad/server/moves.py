"""Performs moves of replicas from one directory to another (AlterReplicaLogDirs): one step at a time, off the loop.

`pykafkad/log/moves.py` says in which order, how fast and in which steps.

A move ends in one turn: the rest is copied, the metadata names the new directory, the folders change their names, and
the open log goes on in the new place. Before the record is committed an interrupted move begins anew at the next start;
after it the start finishes it (`Directories.place`)."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log.moves import SHORTEST_PAUSE_SECONDS, FutureReplica, MoveQueue
from pykafkad.server.directories import directory_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker


_GO_ON = "move replicas"


class Moves:
    """All of a broker."""

    __slots__ = ("_broker", "_busy", "queue")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._busy = False
        self.queue = MoveQueue()

    def __len__(self) -> int:
        return len(self.queue)

    def into(self, directory: LogDirectory) -> list[FutureReplica]:
        """The future replicas that grow in a directory."""
        return self.queue.into(directory)

    def target(self, log: PartitionLog) -> LogDirectory | None:
        """Where a log is on its way to; None when it stays."""
        move = self.queue.find(log.topic, log.partition)
        return None if move is None else move.target

    def start(self, log: PartitionLog, source: LogDirectory, target: LogDirectory) -> None:
        """Begin to move a log. Raises `StorageFailure` when its future folder cannot be made."""
        self.queue.add(FutureReplica(log, source, target))
        self._broker.logs.info("storage", "move-started", topic=log.topic, partition=log.partition, to=target.path)
        self._go_on()

    def cancel(self, topic: str, partition: int) -> None:
        """The replica stays where it is; one that does not move is fine."""
        move = self.queue.remove(topic, partition)
        if move is None:
            return
        try:
            move.discard()
        except StorageFailure as failure:
            self._broker.logs.warning("storage", "delete-failed", directory=move.path, reason=failure)
        self._broker.housekeeping.plan_deletions()

    def resume(self) -> None:
        """Begin anew what a stop or a death interrupted."""
        directories = self._broker.directories
        for directory in directories.online:
            for (topic, partition), name in list(directory.futures.items()):
                del directory.futures[topic, partition]
                try:
                    directory.discard_future(name)
                    log = self._broker.partitions.get(topic, partition)
                    source = None if log is None else directories.of(log)
                    if log is not None and source is not None and source is not directory:
                        self.start(log, source, directory)
                except StorageFailure as failure:
                    self._broker.logs.error("storage", "move-failed", topic=topic, partition=partition, reason=failure)

    def directory_failed(self, directory: LogDirectory) -> None:
        """What was on its way to or from it stays, or went with it."""
        for move in self.queue.into(directory):
            self.queue.remove(move.log.topic, move.log.partition)
        for move in self.queue.out_of(directory):
            self.cancel(move.log.topic, move.log.partition)

    def fired(self, _key: str) -> None:
        """The next step of the first move."""
        move = self.queue.first()
        if self._busy or move is None:
            return
        try:
            step = move.next_step()
            if step is not None:
                self._busy = True
                self._broker.runtime.offload.submit(step, lambda result: self._stepped(move, result))
                return
            # Now, because a log that is always busy always has a large write under way.
            self._broker.commits.write_all()
            if self._broker.commits.is_waiting(move.log) or self._broker.controller.is_busy:
                # A sync of the old files is on its way, and answers wait for what it says. Or the controller could not
                # take the move's end at once.
                self._broker.runtime.timers.set((self, _GO_ON), self._broker.runtime.now + SHORTEST_PAUSE_SECONDS)
            else:
                self._finish(move)
        except StorageFailure as failure:
            self._failed(move, failure)

    def _stepped(self, move: FutureReplica, result: object) -> None:
        self._busy = False
        if move not in self.queue:
            # It was given up meanwhile, and its folder renamed under the step: whatever that met means nothing.
            pass
        elif isinstance(result, StorageFailure):
            self._failed(move, result)
        elif isinstance(result, Exception):
            self._broker.runtime.unexpected(result)
            self._failed(move, StorageFailure("copy", move.path, result))
        elif isinstance(result, int):
            rate = self._broker.settings.replica_alter_log_dirs_io_max_bytes_per_second
            self.queue.copied(result, rate, self._broker.runtime.now)
        self._go_on()

    def _go_on(self) -> None:
        if len(self.queue) and not self._busy:
            self._broker.runtime.timers.set((self, _GO_ON), max(self._broker.runtime.now, self.queue.rest_until))

    def _finish(self, move: FutureReplica) -> None:
        """The last step; see the module."""
        broker = self._broker
        log = move.log
        move.complete()
        broker.commits.mark(log)
        broker.commits.write_all()
        before = broker.image.offset
        broker.directories.assign_at_once({(log.topic_id, log.partition): directory_id(move.target)})
        self.queue.remove(log.topic, log.partition)
        if broker.image.offset == before:
            # The metadata log takes no records: where the replica is must stay as it is known.
            move.discard()
            return
        move.take_place()
        self._broker.logs.info(
            "storage", "move-finished", topic=log.topic, partition=log.partition, directory=move.target.path
        )
        broker.housekeeping.plan_deletions()
        self._go_on()

    def _failed(self, move: FutureReplica, failure: StorageFailure) -> None:
        log = move.log
        self._broker.logs.error("storage", "move-failed", topic=log.topic, partition=log.partition, reason=failure)
        self.cancel(log.topic, log.partition)
        if failure.path.startswith(f"{move.target.path}/"):
            self._broker.directories.report(move.target, failure)
        self._go_on()
