"""A controller in a quorum of several voters: it decides while it leads, and follows the others else.

The controller begins to decide when it leads and has applied everything before its epoch. It takes one event after the
other; each waits until a majority has its records. When this node leads no more, the events that wait and those behind
them are refused with NOT_CONTROLLER: what of their records is in the log is the next leader's to keep or to cut."""

from __future__ import annotations

from collections import deque

from pykafkad import errors, uuids
from pykafkad.errors import ConfigError, KafkaError, StorageFailure
from pykafkad.handlers import table, unexpected
from pykafkad.handlers.context import DEFERRED
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.metadata import events, features, quorum, record_codec, snapshots, voters
from pykafkad.metadata.controller import Controller
from pykafkad.raft import voter_changes
from pykafkad.raft.events import Resign, UpgradeVersion
from pykafkad.raft.replica import Timeouts
from pykafkad.server import listeners, quorum_settings
from pykafkad.server.controller_node import ControllerNode
from pykafkad.server.controller_registration import ControllerRegistration
from pykafkad.server.metadata_log import ControllerRunner, MetadataLog, level_of
from pykafkad.server.raft_member import RaftMember, open_log
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pykafkad.effects import StoredRecord
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Broker
    from pykafkad.raft.replica import RaftReplica
    from pykafkad.server.metadata_source import ActiveController
    from pykafkad.server.raft_shell import RaftShell

    Then = Callable[[StorageFailure | None, bool], None]

# What every member of a quorum answers, whoever leads: the quorum's own requests, which the replica answers, and those
# that change nothing and read what is committed here.
_OF_EVERYBODY = frozenset((1, 17, 18, 29, 32, 36, 52, 53, 54, 55, 59, 60, 80, 81, 82))


class _NotLeading(StorageFailure):
    """This node leads no more: what it has appended may be lost."""

    def __init__(self) -> None:
        super().__init__("append", "__cluster_metadata-0", "this node is not the active controller")


class _Runner(ControllerRunner):
    """Effects of a controller that may lose its leadership between two of them."""

    __slots__ = ()

    def _stop(self, left: Iterator[object], done: Callable[[], None] | None, failure: StorageFailure) -> None:
        if type(failure) is not _NotLeading:
            super()._stop(left, done, failure)
            return
        for effect in left:
            token = getattr(effect, "token", None)
            if token is not None:
                self.runtime.replies.refuse(token, errors.NOT_CONTROLLER)
        if done is not None:
            done()


class RaftMetadata(MetadataLog):
    """The metadata log of a controller in a quorum of several voters. `is_active` says whether it decides."""

    __slots__ = ("_begun_in", "_incarnation_id", "_led_epoch", "_registration", "_waiting", "member")

    _node: RaftController

    def __init__(self, node: RaftController, log: PartitionLog) -> None:
        super().__init__(node, log)
        self.member = RaftMember(node, log, applied_to=self._applied_to, stepped=self._look)
        self.image = self.member.image
        self.snapshots = self.member.snapshots
        self._led_epoch = -1
        self._begun_in = -1
        self._incarnation_id: bytes | None = None
        self._registration: ControllerRegistration | None = None
        self._waiting: deque[tuple[int, Then]] = deque()

    @property
    def is_active(self) -> bool:
        """Whether the controller decides."""
        return self._led_epoch >= 0

    def load(self) -> None:
        """Bring the image to the newest snapshot. Raises StorageFailure."""
        self.member.load()

    def activate(self, incarnation_id: bytes) -> None:
        """From now on the controller decides whenever this node leads."""
        self._incarnation_id = incarnation_id
        self._registration = ControllerRegistration(self._node, self.member, incarnation_id)
        self._look()

    # ---- who leads

    def _look(self) -> None:
        shell = self.member.shell
        if shell is None:
            return
        machine = shell.machine
        leads = machine.is_leader and shell.failure is None
        if self.is_active and not (leads and machine.epoch == self._led_epoch):
            self._end_leading()
        if leads and not self.is_active and self._incarnation_id is not None:
            if machine.role.has_committed and self.member.applied >= machine.high_watermark:
                self._begin_leading(machine.epoch, self._incarnation_id)
        if self._registration is not None:
            self._registration.look()

    def _begin_leading(self, epoch: int, incarnation_id: bytes) -> None:
        node = self._node
        self._led_epoch = epoch
        cluster_id = node.directory.meta["cluster.id"]
        self.controller = Controller(node.node_id, cluster_id, node.settings, self.image, node.runtime.random)
        self._controller_runner = _Runner(node, self.controller, self)
        node.logs.info("metadata", "active-controller", epoch=epoch)
        self._take(
            events.Activate(epoch, incarnation_id, listeners.endpoints(node.listeners), self.bootstrap_records())
        )
        # The brokers have a session's time to find this leader.
        self._take(events.BeginSessions(node.runtime.now))
        for broker in list(self.image.brokers.values()):
            if node.has_ended is not None and node.has_ended(broker):
                # Its next life, in this process, need not wait for the end of a session.
                self._take(events.BrokerGone(broker.id, broker.epoch))

    def _end_leading(self) -> None:
        self._node.logs.info("metadata", "not-active-controller", epoch=self._led_epoch)
        self._led_epoch = -1
        waiting, self._waiting = self._waiting, deque()
        for _, then in waiting:
            then(_NotLeading(), False)
        # While an event is being computed, the end of that refuses those behind it.
        self._begin()

    def _begin(self, direct: object = None) -> None:
        if self.is_active:
            super()._begin(direct)
            return
        while self._events and not self._is_busy:
            token = getattr(self._events.popleft(), "token", None)
            if token is not None:
                self._node.runtime.replies.refuse(token, errors.NOT_CONTROLLER)

    def _hand_over(self, event: object) -> None:
        self._begun_in = self._led_epoch
        if type(event) is events.UpdateFeatures:
            self._look_at_voters(event)
        super()._hand_over(event)

    def _look_at_voters(self, event: events.UpdateFeatures) -> None:
        """Who votes now, and whether they can move into the log if kraft.version is to be raised."""
        machine = self.member.machine
        if machine.is_leader:
            level, _ = event.updates.get(features.KRAFT_VERSION, (0, 0))
            event.voters = machine.voters if machine.voter_sets.level else machine.role.known_voters
            _, event.refusal = voter_changes.upgrade_refusal(machine, level)

    # ---- what the controller decides

    def append(self, records: list[StoredRecord], then: Then) -> bool | None:
        """Append to the log; `then` is called when a majority has the records and they are applied here."""
        shell = self.member.shell
        if not self.is_active or self._begun_in != self._led_epoch or shell is None:
            raise _NotLeading()
        if record_codec.is_control(records[0]):
            self._upgrade(shell, records, then)
            return None
        level = level_of(self.image, records)
        records = record_codec.at_level(records, level)
        if not records:
            return False
        encoded: list[Any] = [record_codec.encode(record, level) for record in records]
        # It may be committed before `append` returns, where nobody else votes and syncs are not beside the loop.
        self._waiting.append((shell.machine.log.end_offset + len(encoded), then))
        shell.append(encoded)
        return None

    def _upgrade(self, shell: RaftShell, records: list[StoredRecord], then: Then) -> None:
        """Have the replica write the level of kraft.version and the voters, in one batch. Raises KafkaError if it does
        not."""
        version: Any = records[0].value
        before = shell.machine.log.end_offset
        # As in `append`, it may be committed, or refused because this node leads no more, before `step` returns.
        waits = before + 1, then
        self._waiting.append(waits)
        shell.step(UpgradeVersion(None, version.k_raft_version))
        if shell.machine.log.end_offset == before and waits in self._waiting:
            self._waiting.remove(waits)
            raise KafkaError(errors.INVALID_UPDATE_VERSION)

    def _applied_to(self, offset: int, opens: bool) -> None:
        while self._waiting and self._waiting[0][0] <= offset:
            self._waiting.popleft()[1](None, opens)

    def offline(self, failure: StorageFailure) -> None:
        """The member has ended the process by then."""

    # ---- turns, and the end

    def next_deadline(self) -> float | None:
        """When the quorum's next timeout is due."""
        return self.member.next_deadline()

    def tick(self) -> None:
        """Let the quorum look at its timeouts."""
        shell = self.member.shell
        if shell is not None:
            shell.tick(self._node.runtime.now)

    def resign(self) -> None:
        """The node stops, and nobody is connected any more."""
        self._end()
        self.member.close()

    def abandon(self) -> None:
        """The node ends as a process does that is killed: nothing is decided, written or sent any more."""
        self._end()
        self.member.abandon()

    def _end(self) -> None:
        self._incarnation_id = None
        if self.is_active:
            self._end_leading()


class RaftController(ControllerNode):
    """See the module. `start`, `bind`, then `activate`, then turns until `close`."""

    metadata_log: RaftMetadata

    has_ended: Callable[[Broker], bool] | None = None
    """Says of a registered broker whether that life of it is known to be over."""

    def start(self) -> None:
        """Load the newest snapshot. The voters are asked when the listener is bound. Raises ConfigError or
        StorageFailure."""
        settings = self.settings
        if not self.listeners:
            raise ConfigError(
                "process.roles: a broker with a controller that is one of several voters is a process of its own: "
                "pykafkad serve FILE"
            )
        named = [voter.id for voter in quorum_settings.static_voters(settings)]
        if named and self.node_id not in named:
            raise ConfigError(f"controller.quorum.voters: node.id {self.node_id} is a controller, and none of {named}")
        fetch_ms, wait_ms = settings.controller_quorum_fetch_timeout_ms, int(Timeouts().fetch_wait * 1000)
        if fetch_ms <= wait_ms and named != [self.node_id]:
            # Kafka waits as long, and starts as well: its log shows the elections. An only voter elects itself once.
            self.logs.warning(
                "quorum",
                "fetch-timeout-too-short",
                setting=f"controller.quorum.fetch.timeout.ms={fetch_ms}",
                consequence=f"a fetch waits up to {wait_ms} ms for records: without any, voters elect without end",
                remedy=f"set it above {wait_ms}; Kafka's default is 2000",
            )
        metadata = self.metadata_log = RaftMetadata(self, open_log(self.directory, settings))
        metadata.load()
        if metadata.member.is_new and quorum_settings.begins_alone(settings):
            self._check_may_begin()
        self.services.image = metadata.image
        self.services.cluster_id = self.directory.meta["cluster.id"]

    def _check_may_begin(self) -> None:
        """Raises ConfigError for a directory that was formatted to join a cluster: a quorum that began here would be a
        second one with that cluster's id. A start that came to its end before it listened has left neither file."""
        path, exists = self.directory.path, self.runtime.disk.exists
        if any(exists(f"{path}/{name}") for name in (snapshots.BOOTSTRAP_FILE, quorum.STATE_FILE)):
            raise ConfigError(
                f"controller.quorum.bootstrap.servers: {path} was formatted without voters, to join a cluster, and no "
                "other controller is named; name those of the cluster, or begin one by formatting with --standalone"
            )

    def bind(self) -> None:
        """Listen, and take part in the quorum from now on. Raises OSError, ConfigError or StorageFailure."""
        super().bind()
        settings, own = self.settings, listeners.endpoints(self.listeners)
        member = self.metadata_log.member
        if member.is_new and quorum_settings.begins_alone(settings):
            # Nobody else is named: this node begins a quorum of its own.
            directory_id = uuids.from_text(self.directory.meta["directory.id"])
            if settings.pykafkad_cluster_id:
                # Kafka starts on no directory that was not formatted. Without the setting the id is a new one.
                self.logs.warning(
                    "quorum",
                    "quorum-begun",
                    directory=self.directory.path,
                    cluster=settings.pykafkad_cluster_id,
                    reason="the directory was not formatted, and the settings name no other controller",
                    consequence="where the cluster has other controllers, this is a second one with its id",
                    remedy="there, stop this node and name the others in controller.quorum.bootstrap.servers",
                )
            self.metadata_log.format([voters.Voter(self.node_id, directory_id, own)], sync=True)
        member.start(own, joins=settings.controller_quorum_auto_join_enable)

    def activate(self, incarnation_id: bytes) -> None:
        """Decide whenever this node leads."""
        self.metadata_log.activate(incarnation_id)

    @property
    def quorum(self) -> RaftReplica:  # type: ignore[override]
        """This node's replica."""
        return self.metadata_log.member.machine

    def submit(self, request: object) -> object:
        """As in a quorum of one; a client's request that only the active controller decides is NOT_CONTROLLER
        elsewhere."""
        if type(request) is ControllerRequest and not self.metadata_log.is_active and request.key not in _OF_EVERYBODY:
            row = table.by_key(request.key)
            assert row is not None
            return unexpected.answer(row, request.version, request.message, errors.NOT_CONTROLLER)
        return super().submit(request)

    def ask_quorum(self, token: object, request: messages.Struct) -> object:
        """Have this node's replica answer a request of the quorum; the answer goes to `token`."""
        shell = self.metadata_log.member.shell
        assert shell is not None, "the listener is bound before the member starts"
        shell.receive(token, request)
        return DEFERRED

    def describe_quorum(self, version: int) -> messages.DescribeQuorumResponse:
        """The quorum as this node knows it, if it leads."""
        runtime = self.runtime
        return self.quorum.describe(version=version, now=runtime.now, now_ms=runtime.now_ms)

    def active_controller(self) -> ActiveController | None:
        """The leader as this node knows it now."""
        return self.metadata_log.member.active_controller

    def on_new_controller(self, told: Callable[[], object]) -> None:
        """Call `told` in each turn in which `active_controller` has become another."""
        self.metadata_log.member.on_new_controller(told)

    def resign(self) -> None:
        """The process stops: tell the others that this node leads no more, while they are connected."""
        shell = self.metadata_log.member.shell
        if shell is not None:
            shell.step(Resign())
