"""Performs moves of replicas from one directory to another (AlterReplicaLogDirs): one step at a time, off the loop.

`pykafkad/log/moves.py` says in which order, how fast and in which steps.

When the log is copied, the controller is asked to name the new directory in the metadata. When the metadata does, one
turn ends the move: the rest is copied, the copy's folder and then the old one change their names, and the open log goes
on in the new place. Until then records go to the old folder. So after a kill a partition's own folder counts, wherever
the metadata says it is, and the move begins anew. Between the two renames there are two such folders, and the one that
the metadata names counts. After a loss of power there may be none, and the start makes the copy the partition
(`Directories.place`).

Nothing here is synced on the loop. While the copy is synced for the last time, syncs of the log wait, because they
would promise records of the old files."""

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
        if target.holds(log.topic, log.partition):
            # An earlier move could not rename it. Between two such folders a start chooses by the metadata alone.
            raise StorageFailure("move", target.path, "an old folder of the partition is there")
        self.queue.add(FutureReplica(log, source, target))
        self._broker.logs.info("storage", "move-started", topic=log.topic, partition=log.partition, to=target.path)
        self._go_on()

    def cancel(self, topic: str, partition: int) -> None:
        """The replica stays where it is; one that does not move is fine."""
        move = self.queue.remove(topic, partition)
        if move is None:
            return
        self._give_up(move)
        try:
            move.discard()
        except StorageFailure as failure:
            self._broker.logs.warning("storage", "delete-failed", directory=move.path, reason=failure)
        self._broker.housekeeping.plan_deletions()

    def stop(self) -> None:
        """The broker stops: the next start begins the moves anew."""
        while (move := self.queue.first()) is not None:
            self.queue.remove(move.log.topic, move.log.partition)
            self._give_up(move)

    def _give_up(self, move: FutureReplica) -> None:
        """The replica stays in its old directory, which the metadata must name again."""
        self._broker.commits.resume_syncs(move.log)
        if move.is_assigned:
            self._broker.directories.assign({(move.log.topic_id, move.log.partition): directory_id(move.source)})

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
            self._give_up(move)
        for move in self.queue.out_of(directory):
            self.cancel(move.log.topic, move.log.partition)

    def fired(self, _key: str) -> None:
        """The next step of the first move."""
        move = self.queue.first()
        if self._busy or move is None:
            return
        try:
            if not move.is_copied:
                self._broker.commits.resume_syncs(move.log)
            elif not self._is_calm(move):
                self._broker.runtime.timers.set((self, _GO_ON), self._broker.runtime.now + SHORTEST_PAUSE_SECONDS)
                return
            step = move.next_step()
            if step is not None:
                self._busy = True
                self._broker.runtime.offload.submit(step, lambda result: self._stepped(move, result))
            elif self._is_assigned(move):
                self._finish(move)
        except StorageFailure as failure:
            self._failed(move, failure)

    def _is_calm(self, move: FutureReplica) -> bool:
        """Keep the log from being synced and wait for its large writes; whether no sync of it is under way, and no cut
        (`follower_cuts.py`), which ends the move."""
        commits = self._broker.commits
        commits.postpone_syncs(move.log)
        # A log that is always busy always has a large write under way.
        commits.write_all()
        return not commits.is_under_sync(move.log) and move.log not in self._broker.partitions.held

    def _is_assigned(self, move: FutureReplica) -> bool:
        """Whether the metadata names the new directory. If it does not, the controller is asked to change it; a move
        for which it takes no record is given up."""
        broker = self._broker
        log, target = move.log, directory_id(move.target)
        if self._named(log) == target:
            return True
        if not move.is_assigned:
            move.is_assigned = True
            broker.directories.assign({(log.topic_id, log.partition): target})
        elif not broker.controller.is_busy:
            # The metadata log takes no records: where the replica is must stay as it is known.
            self.cancel(log.topic, log.partition)
            self._go_on()
            return False
        broker.runtime.timers.set((self, _GO_ON), broker.runtime.now + SHORTEST_PAUSE_SECONDS)
        return False

    def _named(self, log: PartitionLog) -> bytes | None:
        """The id of the directory in which the metadata sees this broker's replica."""
        state = self._broker.image.partition(log.topic, log.partition)
        if state is None:
            return None
        return dict(zip(state.replicas, state.directories, strict=False)).get(self._broker.node_id)

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
        """The last turn; see the module."""
        broker = self._broker
        log = move.log
        move.take_place()
        self.queue.remove(log.topic, log.partition)
        broker.commits.resume_syncs(log)
        broker.logs.info(
            "storage", "move-finished", topic=log.topic, partition=log.partition, directory=move.target.path
        )
        try:
            path = move.source.release(log)
        except StorageFailure as failure:
            # The next start removes it.
            broker.logs.warning("storage", "delete-failed", directory=move.source.path, reason=failure)
            broker.directories.report(move.source, failure)
        else:
            self._remove_old(move, path)
        self._go_on()

    def _remove_old(self, move: FutureReplica, path: str) -> None:
        """Sync the new folder's name, and then schedule the removal of the old folder."""

        def synced(result: object) -> None:
            if isinstance(result, StorageFailure):
                broker.directories.report(move.target, result)
            elif isinstance(result, Exception):
                broker.runtime.unexpected(result)
            else:
                move.source.delete_directory_later(path, move.log.settings.file_delete_delay_ms)
                broker.housekeeping.plan_deletions()

        broker = self._broker
        target = move.target
        broker.runtime.offload.submit(lambda: target.disk.sync_directory(target.path), synced)

    def _failed(self, move: FutureReplica, failure: StorageFailure) -> None:
        log = move.log
        self._broker.logs.error("storage", "move-failed", topic=log.topic, partition=log.partition, reason=failure)
        self.cancel(log.topic, log.partition)
        if failure.path.startswith(f"{move.target.path}/"):
            self._broker.directories.report(move.target, failure)
        self._go_on()
