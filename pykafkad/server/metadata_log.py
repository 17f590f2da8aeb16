"""The metadata quorum's place in the shell: `__cluster_metadata-0`, its quorum machine, the controller and the image.

Records are appended, written and synced; what the quorum then counts as committed is applied to the image; the node acts on
what changed; only then do the replies leave that stood behind the append.
"""

from __future__ import annotations

from pykafkad import effects
from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.log.partition_log import COORDINATOR
from pykafkad.log.replay import batches
from pykafkad.metadata import quorum as quorum_machine, snapshots, stored
from pykafkad.metadata.controller import Controller
from pykafkad.metadata.image import Image
from pykafkad.server.logs import logger
from pykafkad.server.machines import Host
from pykafkad.wire.batch import build_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog

log_lines = logger("metadata")


class _LogHost(Host):
    """What quorum and controller share: appending to the one metadata log."""

    __slots__ = ("_metadata",)

    def __init__(self, node: object, machine: object, metadata: MetadataLog) -> None:
        super().__init__(node, machine)
        self._metadata = metadata

    def append(self, effect: effects.Append) -> None:
        self._metadata.append(effect.records)

    def persist(self, effect: effects.Persist) -> None:
        self._metadata.persist(effect.name, effect.value)

    def failed(self, failure: StorageFailure) -> None:
        # Nothing of the metadata can change any more until a restart; what there is goes on being served.
        self._metadata.offline(failure)


class MetadataLog:
    """Owns the image. `submit` feeds the controller."""

    __slots__ = ("_controller_host", "_log", "_node", "_pending", "_quorum_host", "controller", "image", "quorum")

    def __init__(self, node: object, log: PartitionLog) -> None:
        self._node = node
        self._log = log
        self._pending: list[tuple[int, object]] = []
        self.image = Image()
        self.quorum: quorum_machine.Quorum | None = None
        self.controller: Controller | None = None
        self._quorum_host: _LogHost | None = None
        self._controller_host: _LogHost | None = None

    def load(self) -> None:
        """Read the newest snapshot and what follows it in the log into the image. With one voter everything that is whole in
        the log is committed. Raises StorageFailure when the snapshot cannot be read or the log does not reach it."""
        image = self.image
        start_offset = self._load_snapshot()
        for header, records in batches(self._log, start_offset):
            for record in records:
                typed = stored.decode(record.key if header.is_control else None, record.value)
                image.apply(typed, record.offset, header.leader_epoch)

    def _load_snapshot(self) -> int:
        """Apply the newest snapshot; the offset from which the log goes on."""
        log = self._log
        found = snapshots.listed(self._node.disk.listdir(log.directory))
        if not found:
            return log.log_start_offset
        end_offset, epoch = found[-1]
        path = f"{log.directory}/{snapshots.file_name(end_offset, epoch)}"
        if not log.log_start_offset <= end_offset <= log.end_offset:
            raise StorageFailure("read", path, f"the log beside it holds offsets {log.log_start_offset} to {log.end_offset}")
        image = self.image
        try:
            for record in snapshots.read(self._node.disk.read(path) or b""):
                image.apply(record, end_offset - 1, epoch)
        except (KafkaError, ProtocolError) as error:
            raise StorageFailure("read", path, error) from error
        return end_offset

    def start(self, quorum: quorum_machine.Quorum, controller: Controller) -> None:
        """Elect a leader and let the controller do what a new epoch begins with."""
        self.quorum = quorum
        self.controller = controller
        self._quorum_host = _LogHost(self._node, quorum, self)
        self._controller_host = _LogHost(self._node, controller, self)
        self._quorum_host.step(quorum_machine.Start(self._log.end_offset, self.image.epoch))

    def submit(self, event: object) -> object:
        """Hand an event to the controller; its reply comes when what it changed is committed and applied here."""
        return self._controller_host.step(event)

    def append(self, records: list[object]) -> None:
        """Write, sync, count, apply. Raises StorageFailure."""
        try:
            self._write(records)
        except StorageFailure:
            self._pending.clear()
            raise
        self._quorum_host.step(quorum_machine.Durable(self.quorum.node_id, self._log.end_offset))
        self._apply_committed()

    def _write(self, records: list[object]) -> None:
        log = self._log
        epoch = self.quorum.epoch
        now_ms = self._node.now_ms
        # Control records and data records never stand in one batch, nor in one effect of the machines.
        is_control = stored.is_control(records[0])
        batch = build_batch([stored.encode(record) for record in records], timestamp_ms=now_ms, is_control=is_control)
        if log.leader_epoch != epoch:
            log.assign_epoch(epoch)
        result = log.append(memoryview(batch), now_ms, origin=COORDINATOR)
        self._pending += [(result.base_offset + index, record) for index, record in enumerate(records)]
        log.flush()

    def offline(self, failure: StorageFailure) -> None:
        """The log can't be written. During a start that is the end of it; later, changes are refused and the rest goes on."""
        if not self._node.serving:
            raise failure
        log_lines.error("metadata-offline", reason=failure)

    def persist(self, name: str, value: bytes) -> None:
        """Replace a small file, synced. Raises StorageFailure."""
        self._node.disk.replace(f"{self._node.directory.path}/{name}", value)

    def resign(self) -> None:
        """The node stops."""
        if self._quorum_host is not None:
            self._quorum_host.step(quorum_machine.Resign())

    def next_deadline(self) -> float | None:
        return None if self.quorum is None else self.quorum.next_deadline()

    def tick(self) -> None:
        """Let the quorum look at its timeouts."""
        self._quorum_host.step(quorum_machine.Tick())

    def _apply_committed(self) -> None:
        committed = self.quorum.high_watermark
        pending = self._pending
        index = 0
        while index < len(pending) and pending[index][0] < committed:
            offset, record = pending[index]
            self.image.apply(record, offset, self.quorum.epoch)
            index += 1
        if index:
            del pending[:index]
            self._log.advance_high_watermark(committed)
            changes = self.image.take_changes()
            if changes:
                self._node.metadata_changed(changes)
