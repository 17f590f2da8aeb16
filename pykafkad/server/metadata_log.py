"""The metadata quorum's place in the shell: `__cluster_metadata-0`, its quorum machine, the controller and the image.

Records are appended, written and synced. The sync runs beside the loop. What the quorum counts as committed after it is
applied to the image, and the broker acts on the change. Only then the replies leave that stand behind the append, and
the controller takes the next event. Before the first turn of the loop and after its last, when nobody else waits, syncs
run at once."""

from __future__ import annotations

from collections import deque

from pykafkad import effects
from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.handlers.context import DEFERRED
from pykafkad.log.partition_log import COORDINATOR
from pykafkad.log.replay import batches
from pykafkad.metadata import events, features, quorum as quorum_machine, record_codec, snapshots
from pykafkad.metadata.controller import Controller
from pykafkad.metadata.image import Image
from pykafkad.server.auto_creation import AutoCreation
from pykafkad.server.incremental_tasks import IncrementalTask
from pykafkad.server.machine_runner import PERFORM, MachineRunner
from pykafkad.server.metadata_snapshots import MetadataSnapshots
from pykafkad.wire.batch import build_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pykafkad.effects import StoredRecord
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.syncing import SyncJob
    from pykafkad.metadata.voters import Voter
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.machine_runner import Machine


_BROKER_LIVES = (
    events.BrokerRegistration,
    events.BrokerHeartbeat,
    events.UnfenceBroker,
    events.StopBroker,
    events.FenceBroker,
)


class _LogRunner(MachineRunner):
    """What quorum and controller share: appending to the one metadata log. What stands behind a write in a list of
    effects is performed when that write is committed."""

    __slots__ = ("_metadata", "_node", "_opens")

    def __init__(self, node: ControllerNode, machine: Machine, metadata: MetadataLog) -> None:
        super().__init__(node.runtime, machine)
        self._node = node
        self._opens = False
        self._metadata = metadata

    def perform(self, wanted: list[object], done: Callable[[], None] | None = None) -> None:
        """Perform effects in order; `done` is called when all are performed, or dropped because a write failed."""
        self._opens = False
        self._go_on(iter(wanted), done)

    def _go_on(self, left: Iterator[object], done: Callable[[], None] | None) -> None:
        def then(failure: StorageFailure | None, opens: bool) -> None:
            try:
                if failure is not None:
                    self._stop(left, done, failure)
                else:
                    self._opens = opens
                    self._go_on(left, done)
            except Exception as error:
                self._metadata.event_failed(error)

        for effect in left:
            try:
                if type(effect) is effects.Append:
                    opens = self._metadata.append(effect.records, then)
                elif type(effect) is effects.Persist:
                    opens = self._metadata.persist(effect.name, effect.value, then)
                else:
                    PERFORM[type(effect)](self, effect)
                    continue
            except StorageFailure as failure:
                self._stop(left, done, failure)
                return
            if opens is None:
                return
            self._opens = opens
        if done is not None:
            done()

    def _stop(self, left: Iterator[object], done: Callable[[], None] | None, failure: StorageFailure) -> None:
        self.drop(left, failure)
        # Nothing of the metadata can change any more until a restart; what there is goes on being served.
        self._metadata.offline(failure)
        if done is not None:
            done()

    def reply(self, effect: effects.Reply) -> None:
        # New partitions are answered when they have their logs.
        if self._opens:
            reply = self.runtime.replies.reply
            self._node.after_opening(lambda: reply(effect.token, effect.message))
        else:
            self.runtime.replies.reply(effect.token, effect.message)


class ControllerRunner(_LogRunner):
    """The controller's: it also has timers, and tells of brokers that come and go."""

    __slots__ = ()

    def fired(self, _key: object) -> None:
        """The sessions of brokers are to be looked at, when the controller has done what it has."""
        self._metadata.submit(events.CheckSessions(self.runtime.now))

    def log_line(self, effect: effects.Tell) -> None:
        """Write a line about a broker."""
        self._node.logs.info("metadata", effect.event, **effect.fields)


class MetadataLog:
    """Owns the image. `submit` feeds the controller."""

    __slots__ = (
        "_auto_creation",
        "_begins_with",
        "_controller_runner",
        "_events",
        "_is_beginning",
        "_is_busy",
        "_log",
        "_node",
        "_pending",
        "_quorum_runner",
        "controller",
        "image",
        "quorum",
        "snapshots",
    )

    def __init__(self, node: ControllerNode, log: PartitionLog) -> None:
        self._node = node
        self._log = log
        self._pending: list[tuple[int, StoredRecord]] = []
        self._begins_with: list[StoredRecord] = []
        self.image = Image()
        self.snapshots = MetadataSnapshots(node, log, self.image)
        self.quorum: quorum_machine.Quorum | None = None
        self.controller: Controller | None = None
        self._quorum_runner: _LogRunner | None = None
        self._controller_runner: _LogRunner | None = None
        # The first of them is with the controller while that is busy.
        self._events: deque[object] = deque()
        self._is_busy = False
        self._is_beginning = False
        self._auto_creation = AutoCreation(node, self._take)

    def load(self) -> None:
        """Read the newest snapshot and what follows it in the log into the image. With one voter everything that is
        whole in the log is committed. Raises StorageFailure when the snapshot cannot be read or the log does not reach
        it."""
        image = self.image
        start_offset = self.snapshots.load()
        for header, records in batches(self._log, start_offset):
            self.snapshots.wrote(header.size_bytes, header.max_timestamp_ms)
            for record in records:
                assert record.value is not None
                typed = record_codec.decode(record.key if header.is_control else None, record.value)
                try:
                    image.apply(typed, record.offset, header.leader_epoch)
                except (KeyError, IndexError, AttributeError) as error:
                    reason = (
                        f"the log beside it goes on with a record (offset {record.offset}) that does not fit: {error!r}"
                    )
                    raise StorageFailure("read", self.snapshots.newest_path, reason) from error

    def format(self, voter_set: list[Voter], *, sync: bool = False) -> None:
        """What formatting a directory for a new cluster leaves, beside the log: the first voters and the features to
        begin with, unless Kafka's storage tool did it. Without `sync` the first start is quick: the log begins with the
        same voters, and is synced. With it the features are nowhere without the voters. Raises StorageFailure."""
        now_ms = self._node.runtime.now_ms
        if not self.image.voters:
            self.snapshots.format(snapshots.voters_only(voter_set, now_ms), sync=sync)
        path = self._bootstrap_path()
        if not self._node.runtime.disk.exists(path):
            self._node.runtime.disk.replace(path, self._bootstrap(now_ms), sync=False)
            levels = features.of_new_cluster(self._node.settings)
            self._begins_with = [record_codec.record(each) for each in snapshots.feature_levels(levels)]

    def _bootstrap(self, now_ms: int) -> bytes:
        return snapshots.bootstrap(now_ms, features.of_new_cluster(self._node.settings))

    def bootstrap_records(self) -> list[StoredRecord]:
        """The records that a new cluster begins with, as formatting left them; empty when the cluster has begun. Raises
        StorageFailure when the file can't be read."""
        if features.METADATA_VERSION in self.image.features:
            return []
        if self._begins_with:
            # This process has just formatted the directory.
            return self._begins_with
        path = self._bootstrap_path()
        now_ms = self._node.runtime.now_ms
        try:
            return _data_records(self._node.runtime.disk.read(path) or self._bootstrap(now_ms))
        except KafkaError as error:
            # It is written unsynced, and a loss of power in the very first start may leave half of it.
            self._node.logs.warning("metadata", "bootstrap-not-whole", path=path, reason=error)
            self._node.runtime.disk.replace(path, self._bootstrap(now_ms))
            return _data_records(self._bootstrap(now_ms))
        except ProtocolError as error:
            raise StorageFailure("read", path, error) from error

    def _bootstrap_path(self) -> str:
        return f"{self._node.directory.path}/{snapshots.BOOTSTRAP_FILE}"

    def start(self, quorum: quorum_machine.Quorum, controller: Controller) -> None:
        """Elect a leader and let the controller do what a new epoch begins with."""
        self.quorum = quorum
        self.controller = controller
        self._quorum_runner = _LogRunner(self._node, quorum, self)
        self._controller_runner = ControllerRunner(self._node, controller, self)
        self._quorum_runner.step(quorum_machine.Start(self._log.end_offset, self.image.epoch))

    def submit(self, event: object) -> object:
        """Hand an event to the controller; its reply comes when what it changed is committed and applied here."""
        if type(event) is events.AutoCreateTopics:
            self._auto_creation.ask(event)
            return None
        return self._take(event)

    def _take(self, event: object) -> object:
        """The controller takes one event after the other. One with many rows needs several turns, and each waits for
        its sync; those behind it wait."""
        self._events.append(event)
        if not self._is_busy:
            self._begin(event)
        return DEFERRED

    @property
    def is_busy(self) -> bool:
        """Whether the controller has an event that is not done."""
        return self._is_busy

    def _begin(self, direct: object = None) -> None:
        """Hand over the events that wait, up to one that takes longer. An error of the event `direct` is raised."""
        if self._is_beginning:
            return
        self._is_beginning = True
        try:
            while self._events and not self._is_busy:
                event = self._events[0]
                self._is_busy = True
                try:
                    self._hand_over(event)
                except Exception as error:
                    self._done()
                    if event is direct:
                        raise
                    self._give_up(event, error)
        finally:
            self._is_beginning = False

    def _hand_over(self, event: object) -> None:
        assert self.controller is not None and self._controller_runner is not None
        # While the node starts or stops there are no turns yet, or no more, and what follows counts on the result.
        is_at_once = isinstance(event, _BROKER_LIVES) and not self._node.syncs_beside_loop
        result = self.controller.step(event, 0.0, 0) if is_at_once else self.controller.begin(event)
        if isinstance(result, list):
            self._controller_runner.perform(result, self._done)
        else:
            self._node.runtime.tasks.begin(IncrementalTask(None, result, self._stepped, self.event_failed))

    def _stepped(self, wanted: list[object]) -> None:
        assert self._controller_runner is not None
        try:
            self._controller_runner.perform(wanted, self._done)
        except Exception as error:
            self.event_failed(error)

    def event_failed(self, error: Exception) -> None:
        """A bug in what the controller does with its event, or in what follows from that."""
        event = self._events[0] if self._is_busy else None
        try:
            self._give_up(event, error)
        finally:
            if event is not None:
                self._done()

    def _give_up(self, event: object, error: Exception) -> None:
        self._node.runtime.replies.fail(getattr(event, "token", None), error)

    def _done(self) -> None:
        """The event that the controller had is done."""
        self._events.popleft()
        self._is_busy = False
        self._begin()

    def append(self, records: list[StoredRecord], then: Callable[[StorageFailure | None, bool], None]) -> bool | None:
        """Write, sync, count, apply. Whether new partitions wait for their logs by that; or None, and `then(failure,
        whether they wait)` is called after the sync. Raises StorageFailure."""
        try:
            has_written = self._write(records)
            if has_written and not self._node.syncs_beside_loop:
                self._log.flush()
        except StorageFailure:
            self._pending.clear()
            raise
        if not has_written or not self._node.syncs_beside_loop:
            return self._synced(self._log.end_offset)
        job = self._log.whole_sync_job()
        self._node.sync_offload.submit(job.run, lambda result: self._sync_ended(job, result, then))
        return None

    def _sync_ended(self, job: SyncJob, result: object, then: Callable[[StorageFailure | None, bool], None]) -> None:
        if isinstance(result, Exception):
            # Whatever a sync raised, it did not happen.
            failure = (
                result if isinstance(result, StorageFailure) else StorageFailure("sync", self._log.directory, result)
            )
            self._log.fail(failure)
            self._pending.clear()
            then(failure, False)
            return
        job.finish()
        try:
            opens = self._synced(job.end_offset)
        except Exception as error:
            self.event_failed(error)
        else:
            then(None, opens)

    def _synced(self, end_offset: int) -> bool:
        """The log is synced up to `end_offset`: apply what is committed by that. Whether new partitions wait for their
        logs."""
        assert self.quorum is not None and self._quorum_runner is not None
        self._quorum_runner.step(quorum_machine.Durable(self.quorum.node_id, end_offset))
        return self._apply_committed()

    def _write(self, records: list[StoredRecord]) -> bool:
        """Append and write, unsynced; whether the cluster's metadata.version leaves anything to be written."""
        level = level_of(self.image, records)
        records = record_codec.at_level(records, level)
        if not records:
            return False
        log = self._log
        assert self.quorum is not None
        epoch = self.quorum.epoch
        now_ms = self._node.runtime.now_ms
        # Control records and data records never stand in one batch, nor in one effect of the machines.
        is_control = record_codec.is_control(records[0])
        batch = build_batch(
            [record_codec.encode(record, level) for record in records], timestamp_ms=now_ms, is_control=is_control
        )
        if log.leader_epoch != epoch:
            log.assign_epoch(epoch)
        size_bytes = len(batch)
        result = log.append(memoryview(batch), now_ms, origin=COORDINATOR)
        self.snapshots.wrote(size_bytes, now_ms)
        self._pending += [(result.base_offset + index, record) for index, record in enumerate(records)]
        log.write_pending()
        return True

    def offline(self, failure: StorageFailure) -> None:
        """The log can't be written. During a start that is the end of it; later, changes are refused and the rest goes
        on."""
        if not self._node.serving:
            raise failure
        self._node.logs.error("metadata", "metadata-offline", reason=failure)

    def persist(self, name: str, value: bytes, then: Callable[[StorageFailure | None, bool], None]) -> bool | None:
        """Replace a small file, synced: False when that is done, or None, and `then(failure, False)` is called after
        the sync. Raises StorageFailure."""
        disk, path = self._node.runtime.disk, f"{self._node.directory.path}/{name}"
        if not self._node.syncs_beside_loop:
            disk.replace(path, value)
            return False

        def ended(result: object) -> None:
            if isinstance(result, Exception) and not isinstance(result, StorageFailure):
                result = StorageFailure("sync", path, result)
            then(result if isinstance(result, StorageFailure) else None, False)

        self._node.sync_offload.submit(lambda: disk.replace(path, value), ended)
        return None

    def resign(self) -> None:
        """The node stops."""
        self.snapshots.close()
        if self._node.serving:
            self.snapshots.make_at_stop()
        if self._quorum_runner is not None:
            self._quorum_runner.step(quorum_machine.Resign())

    def next_deadline(self) -> float | None:
        return None if self.quorum is None else self.quorum.next_deadline()

    def tick(self) -> None:
        """Let the quorum look at its timeouts."""
        assert self._quorum_runner is not None
        self._quorum_runner.step(quorum_machine.Tick())

    def _apply_committed(self) -> bool:
        """Whether new partitions wait for their logs by that."""
        assert self.quorum is not None
        opens = False
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
            delta = self.image.take_delta()
            if delta:
                opens = self._node.metadata_changed(delta)
            self.snapshots.applied()
        return opens


def level_of(image: Image, records: list[StoredRecord]) -> int:
    """The metadata.version that records are written at: the cluster's, or of a new one that which they begin with."""
    level = image.features.get(features.METADATA_VERSION)
    return features.levels(records).get(features.METADATA_VERSION, features.LATEST_LEVEL) if level is None else level


def _data_records(content: bytes) -> list[StoredRecord]:
    return [record for record in snapshots.read(content) if not record_codec.is_control(record)]
