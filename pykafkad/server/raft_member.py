"""A member of a quorum of several voters in the shell: its log and snapshots, its replica, and the image of what is
committed.

A controller (`raft_controller.py`) and an observer (`metadata_observer.py`) hold one each. Committed records are
applied in the turn in which the machine says so, in pieces of about a megabyte; whoever follows the image is told after
each piece."""

from __future__ import annotations

from pykafkad import config, uuids
from pykafkad.errors import ConfigError, KafkaError, ProtocolError, StorageFailure
from pykafkad.metadata import image_replacement, quorum, record_codec, snapshots
from pykafkad.metadata.image import Image
from pykafkad.raft import events
from pykafkad.raft.replica import RaftReplica, Timeouts
from pykafkad.server import quorum_settings, raft_addresses
from pykafkad.server.metadata_snapshots import MetadataSnapshots
from pykafkad.server.metadata_source import ActiveController
from pykafkad.server.raft_log import RaftLog
from pykafkad.server.raft_peers import RaftPeers
from pykafkad.server.raft_shell import RaftShell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.config import Settings
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.metadata.image import MetadataDelta
    from pykafkad.server.logs import Logs
    from pykafkad.server.offload import Offload
    from pykafkad.server.runtime import Runtime

    class Node(Protocol):
        """Whose member it is."""

        runtime: Runtime
        settings: Settings
        sync_offload: Offload
        syncs_beside_loop: bool
        serving: bool
        logs: Logs

        @property
        def directory(self) -> LogDirectory: ...

        def plan_deletions(self) -> None: ...

        def metadata_changed(self, delta: MetadataDelta) -> bool: ...


_APPLIED_AT_ONCE_BYTES = 256 * 1024
_FIRST_BOOTSTRAP_ID = -2


def open_log(directory: LogDirectory, settings: Settings) -> PartitionLog:
    """The metadata log of a directory, which is thinned by its snapshots alone. Raises StorageFailure."""
    own = {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "max.message.bytes": str(record_codec.MAX_CHANGE_BYTES),
        "segment.bytes": str(settings.metadata_log_segment_bytes),
        "segment.ms": str(settings.metadata_log_segment_ms),
    }
    if settings.internal_metadata_log_segment_bytes:
        own["internal.segment.bytes"] = str(settings.internal_metadata_log_segment_bytes)
    return directory.open_partition(*record_codec.LOG, record_codec.TOPIC_ID, config.topic_settings(settings, own))


class RaftMember:
    """`load`, then `start`, then `tick` in each turn until `close`. `applied` is the offset behind the last record in
    the image."""

    def __init__(
        self,
        node: Node,
        log: PartitionLog,
        *,
        applied_to: Callable[[int, bool], None],
        stepped: Callable[[], None],
    ) -> None:
        """`applied_to(offset, whether new partitions wait for their logs)` is called after records were applied,
        `stepped()` when everything that can be done is done."""
        self._node = node
        self.image = Image()
        self.raft_log = RaftLog(log, node.runtime.clock)
        self.snapshots = MetadataSnapshots(node, log, self.image)
        self.applied = 0
        self.shell: RaftShell | None = None
        self._peers = RaftPeers(node.runtime, node.settings)
        self._asked = RaftPeers(node.runtime, node.settings)
        """The same members by connections of their own."""
        self._applied_to = applied_to
        self._stepped = stepped
        self._committed = 0
        self._is_applying = False
        self._listener = quorum_settings.listener_of(node.settings)
        self._told_controller: Callable[[], object] | None = None
        self._active: ActiveController | None = None

    @property
    def machine(self) -> RaftReplica:
        """The replica."""
        assert self.shell is not None, "the member has not started"
        return self.shell.machine

    # ---- at the start

    @property
    def is_new(self) -> bool:
        """Whether the directory has neither a log nor a snapshot, not even that of the formatting."""
        return not self.snapshots.kept and not self.raft_log.log.end_offset

    def load(self) -> None:
        """Bring the image to the newest snapshot. Records behind it count when a leader says that they are committed.
        Raises StorageFailure."""
        log = self.raft_log.log
        self.raft_log.fit(snapshots.listed(log.disk.listdir(log.directory)))
        self.applied = self._committed = self.snapshots.load()
        self.image.take_delta()

    def start(self, endpoints: list[Endpoint], *, joins: bool) -> None:
        """Take part in the quorum; `endpoints` are where others reach this node. With `joins` it becomes a voter by
        itself. Raises ConfigError and StorageFailure."""
        node = self._node
        settings = node.settings
        directory = node.directory
        path = f"{directory.path}/{quorum.STATE_FILE}"
        voters = quorum_settings.static_voters(settings)
        bootstrap = []
        for index, (host, port) in enumerate(quorum_settings.bootstrap_servers(settings)):
            # Nobody knows the ids of these servers. Kafka counts them down from -2.
            bootstrap.append(_FIRST_BOOTSTRAP_ID - index)
            self._peers.locate(bootstrap[-1], host, port)
        try:
            machine = RaftReplica(
                settings.node_id,
                uuids.from_text(directory.meta["directory.id"]),
                voters,
                node.runtime.random,
                cluster_id=directory.meta["cluster.id"],
                timeouts=_timeouts(settings),
                state_file=node.runtime.disk.read(path),
                bootstrap=bootstrap,
                endpoints=endpoints,
                joins=joins,
            )
        except ValueError as error:
            raise ConfigError(f"{path} is damaged: {error}") from None
        self.shell = RaftShell(
            node, machine, self.raft_log, self._peers, self, directory=directory.path, listener=self._listener
        )
        self.snapshots.made = self._snapshot_made
        self.shell.step(self.raft_log.start_event(self.snapshots.kept))
        if self.shell.failure is not None:
            raise self.shell.failure

    # ---- what the shell tells

    def committed(self, end_offset: int) -> None:
        """The records before `end_offset` can be applied."""
        self._committed = end_offset
        self._apply()

    def _apply(self) -> None:
        if self._is_applying:
            return
        self._is_applying = True
        try:
            opens = self._apply_some()
        except (KafkaError, ProtocolError, KeyError, IndexError, AttributeError) as error:
            log = self.raft_log.log
            reason = f"the record at {self.image.offset} of the metadata log does not fit: {error!r}"
            raise StorageFailure("read", log.directory, reason) from error
        finally:
            self._is_applying = False
        self._applied_to(self.applied, opens)
        self.snapshots.applied()
        if self.applied < self._committed:
            self._node.runtime.call_later(0.0, self._go_on)

    def _go_on(self) -> None:
        shell = self.shell
        if shell is None or shell.failure is not None or self.applied >= self._committed:
            return
        try:
            self._apply()
        except StorageFailure as failure:
            self.storage_failed(failure)
        else:
            self.stepped()

    def _apply_some(self) -> bool:
        """Apply a bounded part. Whether new partitions wait for their logs by that."""
        image, committed = self.image, self._committed
        if self.applied < committed:
            for header, records in self.raft_log.records(self.applied, _APPLIED_AT_ONCE_BYTES):
                if header.base_offset >= committed:
                    break
                self.snapshots.wrote(header.size_bytes, header.max_timestamp_ms)
                for offset, record in records:
                    if self.applied <= offset < committed:
                        image.apply(record, offset, header.leader_epoch)
                self.applied = min(header.end_offset, committed)
        self.raft_log.log.advance_high_watermark(self.applied)
        return self._tell_change()

    def _tell_change(self) -> bool:
        delta = self.image.take_delta()
        return bool(delta) and self._node.metadata_changed(delta)

    def snapshot_fetched(self, end_offset: int, epoch: int) -> None:
        """A snapshot of the leader has taken the place of the log."""
        self.snapshots.fetched(end_offset, epoch)
        content = self._node.runtime.disk.read(self.raft_log.snapshot_path(end_offset, epoch)) or b""
        try:
            image_replacement.replace(self.image, snapshots.read(content), end_offset, epoch)
        except (KafkaError, ProtocolError) as error:
            raise StorageFailure("read", self.raft_log.snapshot_path(end_offset, epoch), error) from error
        self.applied = self._committed = end_offset
        self._applied_to(self.applied, self._tell_change())

    def stepped(self) -> None:
        """Everything that can be performed is performed."""
        if self.shell is None:
            return
        active = self._find_controller()
        if active != self._active:
            self._active = active
            if self._told_controller is not None:
                # Not inside of what may be a call of whoever is told.
                self._node.runtime.call_later(0.0, self._told_controller)
        self._stepped()

    def storage_failed(self, failure: StorageFailure) -> None:
        """The disk of the metadata log has failed: the process cannot go on as a member of the quorum, as in Kafka."""
        assert self.shell is not None
        self.shell.failure = failure
        self._node.logs.error("metadata", "metadata-offline", reason=failure)
        self._node.runtime.fail(f"the metadata log failed: {failure}")
        self.stepped()

    def _snapshot_made(self, end_offset: int, epoch: int, begins_log: bool) -> None:
        if self.shell is not None:
            size = self.raft_log.snapshot_size(end_offset, epoch)
            self.shell.step(events.Snapshot(end_offset, epoch, size, begins_log=begins_log))

    # ---- the leader

    def _find_controller(self) -> ActiveController | None:
        assert self.shell is not None
        machine = self.shell.machine
        found = raft_addresses.leader_address(self._peers, machine, self._listener)
        if machine.leader_id < 0 or found is None or (machine.leader_id == machine.node_id and not machine.is_leader):
            return None
        return ActiveController(machine.leader_id, machine.epoch, *found)

    @property
    def active_controller(self) -> ActiveController | None:
        """The leader and its address; None while nobody leads, or nobody knows where."""
        return self._active

    def on_new_controller(self, told: Callable[[], object]) -> None:
        """Call `told` when `active_controller` has become another."""
        before = self._told_controller

        def tell() -> None:
            if before is not None:
                before()
            told()

        self._told_controller = tell

    def ask(self, node_id: int, request: object, then: Callable[[object], object]) -> None:
        """Send a request to another member, beside those of the quorum: over another connection, as requests of one are
        answered in their order. What the leader commits before it answers this one may wait for this node's fetch."""
        place = self._peers.located(node_id)
        if place is not None:
            self._asked.locate(node_id, *place)
        self._asked.send(node_id, request, then)

    # ---- turns, and the end

    def next_deadline(self) -> float | None:
        """When the machine's next timeout is due."""
        if self.shell is None or self.shell.failure is not None:
            return None
        return self.machine.next_deadline()

    def abandon(self) -> None:
        """Do nothing any more, as a process that is killed: neither write nor send."""
        shell, self.shell = self.shell, None
        self._asked.close()
        self.snapshots.close()
        if shell is not None:
            shell.close()

    def close(self) -> None:
        """The process stops: nobody is connected any more."""
        shell, self.shell = self.shell, None
        self._asked.close()
        self.snapshots.close()
        if shell is not None:
            if shell.failure is None:
                self.snapshots.make_at_stop()
            shell.close()


def _timeouts(settings: Settings) -> Timeouts:
    """The settings in seconds."""
    return Timeouts(
        election=settings.controller_quorum_election_timeout_ms / 1000,
        fetch=settings.controller_quorum_fetch_timeout_ms / 1000,
        request=settings.controller_quorum_request_timeout_ms / 1000,
        retry_backoff=settings.controller_quorum_retry_backoff_ms / 1000,
        election_backoff=settings.controller_quorum_election_backoff_max_ms / 1000,
    )
