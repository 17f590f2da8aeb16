"""Snapshots of a broker's data while it serves: made, listed, removed, and returned to, for one topic or for
everything.

Everything goes back by a short stop: the loop ends cleanly, `run.py` puts the snapshot in the place of the data, and a
new broker serves on the same ports, and on the connections that the other had. One topic goes back between two turns,
after a sync beside the loop; who reads it beyond its new end is told OFFSET_OUT_OF_RANGE."""

from __future__ import annotations

from collections import namedtuple
from functools import partial

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.handlers import snapshot_actions
from pykafkad.log import snapshot_store
from pykafkad.log.snapshot_writer import SnapshotWriter
from pykafkad.metadata import record_codec
from pykafkad.server import partitions
from pykafkad.server.connection import OPEN
from pykafkad.server.dispatch import ServedContext
from pykafkad.server.transport import PlainTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.disk import Disk
    from pykafkad.handlers.context import Context
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.snapshot_store import PreparedRewind
    from pykafkad.metadata.topics import Topic
    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection


MAX_SNAPSHOTS = 1000
BUDGET_SECONDS = 0.003
"""Saving logs goes on for so long in one turn of the loop; the log that is under way is a fraction of a millisecond
longer."""

# What a way back writes beside links: small files and copies of last segments.
_ROOM_BYTES = 256 * 1024
_ROOM_BYTES_PER_PARTITION = 8 * 1024

_STEP = "snapshot of the data"

Carried = namedtuple("Carried", ("socket", "listener", "outbox", "pending", "node_id", "context"))
Carried.__doc__ = """A connection of a broker, for the one that takes its place: `outbox` has not left yet, `pending` is
not served; `node_id` is that of the broker; `context` that of the request which asked for all this, or None."""


class HandedOver:
    """The connections that go on at the brokers that take the place of others."""

    __slots__ = ("connections",)

    def __init__(self) -> None:
        self.connections: list[Carried] = []

    def close(self) -> None:
        """Nobody takes the place."""
        for each in self.connections:
            each.socket.close()


class DataSnapshots:
    """The snapshots of all directories of a broker, which have the same names in each."""

    __slots__ = ("_asking", "_began", "_broker", "_name", "_token", "_unsynced", "_writers", "restore_to")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._asking: Context | None = None
        self._unsynced: dict[str, object] = {}
        self._writers: list[SnapshotWriter] = []
        self._name = ""
        self._token: object = None
        self._began = 0.0
        self.restore_to: str | None = None
        """The snapshot that the stop which has begun goes back to."""

    def names(self) -> list[str]:
        """All that are whole."""
        return snapshot_store.names(self._broker.runtime.disk, self._metadata.path)

    @property
    def _metadata(self) -> LogDirectory:
        """The directory of the metadata log."""
        return self._broker.directory

    def _every(self) -> list[LogDirectory]:
        """All directories that are saved."""
        return list(self._broker.directories.every())

    def _write_all(self) -> None:
        """Write what was gathered."""
        self._broker.commits.write_all()

    def _epochs(self) -> list[tuple[str, int]]:
        """Each directory's path, with the epoch of its broker."""
        epoch = self._broker.image.brokers[self._broker.node_id].epoch
        return [(directory.path, epoch) for directory in self._every()]

    @property
    def making(self) -> str | None:
        """The snapshot that is being made."""
        return self._name if self._writers else None

    def create(self, name: str, token: object = None) -> bool:
        """Begin a snapshot of everything as it is now; whether it is whole already. If not, `token` is answered when it
        is.

        Raises KafkaError for a name that cannot be or is taken, and when a partition can't be saved.
        """
        problem = snapshot_store.name_problem(name)
        if problem is not None:
            raise KafkaError(errors.INVALID_CONFIG, problem)
        check_new(name, self.names())
        broker = self._broker
        self._write_all()
        self._name, self._token, self._began = name, None, broker.runtime.clock.now()
        try:
            for directory in self._every():
                self._writers.append(self._writer(directory, name))
            is_whole = self._go_on(self._began)
        except StorageFailure as failure:
            self._abandon()
            raise KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure)) from None
        except Exception:
            # What is left as it is would be the last snapshot for good.
            self._abandon()
            raise
        self._token = token
        return is_whole

    def _writer(self, directory: LogDirectory, name: str) -> SnapshotWriter:
        return SnapshotWriter(directory, name, self._directories())

    def _directories(self) -> dict[str, str] | None:
        broker = self._broker
        every = list(broker.directories.every())
        if len(every) == 1:
            return None
        paths = [directory.absolute_path for directory in broker.directories.online]
        found = {"log.dirs": ",".join(paths)}
        if broker.directory.absolute_path not in paths:
            found["metadata.log.dir"] = broker.directory.absolute_path
        return found

    def fired(self, job: str) -> None:
        """A snapshot that is being made goes on."""
        if not self._writers:
            return
        code, words = errors.NONE, None
        try:
            if not self._go_on(self._broker.runtime.clock.now()):
                return
        except StorageFailure as failure:
            self._abandon()
            code, words = errors.KAFKA_STORAGE_ERROR, str(failure)
            self._broker.logs.warning("storage", "snapshot-failed", name=self._name, reason=failure)
        except Exception as error:
            self._abandon()
            code, words = errors.UNKNOWN_SERVER_ERROR, None
            self._broker.runtime.unexpected(error, job=job)
        answer = snapshot_actions.answer(self._asked_node(self._token), code, words)
        self._broker.runtime.replies.reply(self._token, answer)

    def _asked_node(self, token: Any) -> int:
        """The id of the broker that was asked."""
        return self._broker.node_id

    def _go_on(self, began: float) -> bool:
        """Save some logs, in a turn's share that began then; whether the snapshot is whole."""
        clock = self._broker.runtime.clock
        has_saved = False
        for writer in self._writers:
            while writer.step():
                has_saved = True
                if clock.now() >= began + BUDGET_SECONDS:
                    return self._wait()
        if has_saved and clock.now() >= began + BUDGET_SECONDS:
            # The checkpoints of many partitions take a share of their own.
            return self._wait()
        self._finish()
        return True

    def _wait(self) -> bool:
        self._broker.runtime.timers.set((self, _STEP), self._broker.runtime.now)
        return False

    def _finish(self) -> None:
        broker, name = self._broker, self._name
        for writer in self._writers:
            writer.finish()
        # The directory of the metadata log last: what it has is listed.
        for writer in sorted(self._writers, key=lambda writer: writer.directory is self._metadata):
            writer.publish()
        self._writers = []
        # Its own mark, as another snapshot may have the name by then.
        mark = self._unsynced[name] = object()
        job = partial(_sync_and_prepare_mark, broker.runtime.disk, self._epochs(), name)
        broker.runtime.cpu_offload.submit(job, lambda result: self._synced(name, mark, result))
        self._broker.logs.info(
            "storage",
            "snapshot-created",
            name=name,
            partitions=self._partition_count(),
            ms=round((broker.runtime.clock.now() - self._began) * 1000, 1),
        )

    def _partition_count(self) -> int:
        return len(self._broker.partitions)

    def _abandon(self) -> None:
        for writer in self._writers:
            writer.abandon()
        self._writers = []

    def _synced(self, name: str, mark: object, result: object) -> None:
        if isinstance(result, Exception):
            self._broker.logs.warning("storage", "snapshot-not-synced", name=name, reason=result)
        elif self._unsynced.get(name) is mark:
            self._mark_clean(name)

    def _mark_clean(self, name: str) -> None:
        broker = self._broker
        self._unsynced.pop(name, None)
        try:
            for directory in self._every():
                snapshot_store.mark_clean(broker.runtime.disk, directory.path, name)
        except StorageFailure as failure:
            # What starts on it recovers first, which costs time and nothing else.
            self._broker.logs.warning("storage", "snapshot-not-synced", name=name, reason=failure)

    def delete(self, name: str) -> None:
        """Raises KafkaError when there is none of that name."""
        self._find(name)
        self._unsynced.pop(name, None)
        broker = self._broker
        gone = []
        try:
            # That of the metadata log first: what it has is listed.
            for directory in sorted(self._every(), key=lambda directory: directory is not self._metadata):
                gone.append(snapshot_store.put_away(broker.runtime.disk, directory.path, name))
        except StorageFailure as failure:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure)) from None
        finally:
            self.remove([each for each in gone if each is not None])
        self._broker.logs.info("storage", "snapshot-deleted", name=name)

    def remove(self, paths: list[str]) -> None:
        """Remove folders that nobody needs, beside the loop: each file of theirs takes a call. What fails is tried at
        the next start."""
        disk = self._broker.runtime.disk

        def job() -> None:
            for path in paths:
                snapshot_store.remove(disk, path)

        def then(result: object) -> None:
            if isinstance(result, Exception):
                self._broker.logs.warning("storage", "leftovers-not-removed", reason=result)

        self._broker.runtime.cpu_offload.submit(job, then)

    def restore(self, name: str, asking: Context) -> None:
        """Begin the stop after which everything is as it was. Raises KafkaError when there is no such snapshot.

        The request of `asking` is answered by the broker that serves after that, on the same connection. Others' plain
        connections go on there, too.
        """
        self._find(name)
        self._check_directories(name)
        # If the snapshot is not synced yet, the stop waits for the thread that syncs it.
        self.restore_to = name
        self._asking = asking
        self._broker.runtime.stop(f"going back to the snapshot {name}")

    def _paths(self) -> tuple[list[str], set[str]]:
        """Those of all directories, and which of them are out of service."""
        directories = self._broker.directories
        return [self._metadata.path, *directories.paths], set(directories.failed)

    def _check_directories(self, name: str) -> None:
        # A way back that cannot end for one directory must not begin for the others.
        broker = self._broker
        paths, failed = self._paths()
        for path in paths:
            if path in failed:
                raise KafkaError(
                    errors.KAFKA_STORAGE_ERROR,
                    f"{path} is out of service; going back with everything needs every directory of log.dirs",
                )
            check_directory(broker.runtime.disk, path, name)
        metadata = self._metadata
        if not snapshot_store.has_partition(broker.runtime.disk, metadata.path, name, *record_codec.LOG):
            raise KafkaError(
                errors.INVALID_CONFIG,
                f"{snapshot_store.path_of(metadata.path, name)} has no metadata log; nothing could be served from it",
            )
        log = metadata.logs[record_codec.LOG]
        if log.offline is not None:
            raise KafkaError(
                errors.KAFKA_STORAGE_ERROR,
                f"the metadata log is out of service ({log.offline}); restart the broker first",
            )

    def hand_over(self) -> HandedOver | None:
        """The broker stops: the connections that go on at the next one, taken from the reactor before it closes; None
        if no broker takes its place. A snapshot that is not whole yet is dropped."""
        self._abandon()
        return self._hand_over([self._broker])

    def _hand_over(self, brokers: list[Broker]) -> HandedOver | None:
        if not self.restore_to:
            return None
        made = HandedOver()
        # What nodes of this process have asked each other is of the state that ends.
        own = self._broker.runtime.reactor.local_addresses()
        for broker in brokers:
            for connection in broker.socket_server.connections():
                context = self._asking
                if context is None or context.connection is not connection:
                    context = None
                    if connection.peer in own or not _may_go_on(broker, connection):
                        continue
                outbox, pending = list(connection.outbox), bytes(connection.pending)
                socket = broker.socket_server.hand_over(connection)
                made.connections.append(Carried(socket, connection.listener, outbox, pending, broker.node_id, context))
        return made

    def _asked_of(self, carried: Carried) -> Broker:
        """The broker in the place of that which had the connection."""
        return self._broker

    def take_over(self, handed_over: HandedOver) -> None:
        """Go on with the connections of the broker before this one, and answer the request that asked for it."""
        for carried in handed_over.connections:
            broker = self._asked_of(carried)
            connection = broker.socket_server.adopt(carried.socket, carried.listener)
            if connection is None:
                continue
            connection.carry_on(carried.outbox, carried.pending)
            if carried.context is not None:
                old = carried.context
                context = ServedContext(
                    broker.services, connection, old.route, old.version, old.correlation_id, old.client_id
                )
                answer = snapshot_actions.answer(broker.node_id, errors.NONE, None)
                broker.dispatcher.answer(connection, context, answer)

    def rewind(self, name: str, topic_name: str, token: object) -> None:
        """Begin to make one topic as it was, under its present id and settings; partitions that the snapshot lacks are
        empty. `token` is answered when it is done. What is appended until then goes, too.

        Raises KafkaError for an unknown snapshot or topic, for one that the snapshot has nothing of, and for one of the
        broker's own."""
        self._find(name)
        broker = self._broker
        topic = broker.image.topics.get(topic_name)
        if topic is None:
            raise KafkaError(
                errors.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no topic {topic_name}; going back with everything brings a deleted one back",
            )
        if topic.is_internal:
            raise KafkaError(
                errors.INVALID_CONFIG,
                f"{topic_name} is the broker's own, and goes back with everything else or not at all",
            )
        paths = [directory.path for directory in broker.directories.every()]
        if not any(
            snapshot_store.has_partition(broker.runtime.disk, path, name, topic_name, index)
            for path in paths
            for index in range(len(topic.partitions))
        ):
            raise KafkaError(
                errors.INVALID_CONFIG,
                f"the snapshot {name} has nothing of {topic_name}, which was created later; delete the topic, if that "
                "is meant",
            )
        try:
            prepared = broker.partitions.prepare_rewind(topic, name)
        except StorageFailure as failure:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure)) from None
        job = partial(_sync_names, [each.directory for each in prepared])
        broker.runtime.offload.submit(job, lambda result: self._rewind(name, topic, prepared, token, result))

    def _rewind(self, name: str, topic: Topic, prepared: list[PreparedRewind], token: Any, result: object) -> None:
        broker = self._broker
        code, words = errors.NONE, None
        try:
            if isinstance(result, Exception):
                raise result
            broker.commits.write_all()
            gone = broker.partitions.finish_rewind(topic, prepared)
        except StorageFailure as failure:
            partitions.discard_rewind(prepared)
            code, words = errors.KAFKA_STORAGE_ERROR, str(failure)
        else:
            broker.forget_topics()
            for log in gone:
                broker.purgatory.touch(log)
            broker.compaction.forget(gone)
            broker.logs.info("storage", "topic-rewound", topic=topic.name, name=name)
        broker.housekeeping.plan_deletions()
        broker.runtime.replies.reply(token, snapshot_actions.answer(broker.node_id, code, words))

    def _find(self, name: str) -> None:
        known = self.names()
        if name not in known:
            raise KafkaError(errors.INVALID_CONFIG, snapshot_store.unknown(name, known))


def check_new(name: str, taken: Sequence[str]) -> None:
    """Raises KafkaError if there is no room for one more snapshot beside those of the names `taken`, or it is one."""
    if name in taken:
        raise KafkaError(errors.INVALID_CONFIG, f"there is a snapshot {name} already; delete it, or take another name")
    if len(taken) >= MAX_SNAPSHOTS:
        raise KafkaError(
            errors.INVALID_CONFIG, f"there are {len(taken)} snapshots, and {MAX_SNAPSHOTS} are allowed; delete some"
        )


def check_directory(disk: Disk, path: str, name: str) -> None:
    """Raises KafkaError for a directory that cannot go back to the snapshot."""
    if not disk.is_directory(snapshot_store.path_of(path, name)):
        raise KafkaError(
            errors.INVALID_CONFIG,
            f"the snapshot {name} has nothing of {path}, which was out of service or not in log.dirs when it was made",
        )
    if not snapshot_store.belongs_to(disk, path, name):
        raise KafkaError(
            errors.INVALID_CONFIG,
            f"{snapshot_store.path_of(path, name)} has no meta.properties of this directory; nothing could be served "
            "from it",
        )
    # A broker that stopped for it would not start again: neither the way back nor anything else could be written.
    needed = _ROOM_BYTES + _ROOM_BYTES_PER_PARTITION * len(disk.listdir(snapshot_store.path_of(path, name)))
    _, usable = disk.usage(path)
    if usable < needed:
        raise KafkaError(
            errors.KAFKA_STORAGE_ERROR,
            f"{usable} bytes are free for {path}, and going back may take {needed}; make room first",
        )


def _sync_and_prepare_mark(disk: Disk, epochs: list[tuple[str, int]], name: str) -> None:
    """Bring the whole snapshot to the device; on any thread. Raises StorageFailure."""
    disk.sync_all()
    for path, broker_epoch in epochs:
        snapshot_store.prepare_mark(disk, path, name, broker_epoch)


def _sync_names(directories: list[LogDirectory]) -> None:
    for directory in dict.fromkeys(directories):
        directory.disk.sync_directory(directory.path)


def _may_go_on(broker: Broker, connection: Connection) -> bool:
    """Whether another broker may go on with a connection: one without TLS and login, which know more than their socket,
    with nothing half served. A Fetch that waits is answered with what there is, and who waits for a group is to ask for
    its coordinator again."""
    if connection.session.login is not None or type(connection.transport) is not PlainTransport:
        return False
    delayed = connection.delayed
    if delayed is not None and delayed.operation.ends_early:
        broker.purgatory.end_early(delayed, broker.runtime.now)
    context = connection.in_service
    if context is not None and context.route.row.waits_for_others:
        broker.dispatcher.finish_with_error(context, errors.NOT_COORDINATOR)
    return (
        connection.state == OPEN
        and not connection.held
        and connection.large is None
        and connection.in_service is None
        and not connection.peer.startswith("local:")
        and not any(hasattr(chunk, "chunk_size") for chunk in connection.outbox)
    )
