"""The controller's half of a process: the metadata quorum, the controller that decides, and the metadata log.

Who holds the same image (a `Broker`) subscribes with `on_committed`, and is told of each change below the metadata
log's high watermark. The node knows no more of its subscribers."""

from __future__ import annotations

from functools import partial

from pykafkad import config, uuids
from pykafkad.errors import ConfigError
from pykafkad.handlers import table
from pykafkad.handlers.controller_context import ControllerContext, ControllerRequest, ControllerServices
from pykafkad.handlers.table import CONTROLLER_LISTENER
from pykafkad.metadata import events, quorum, quorum_states, record_codec, voters
from pykafkad.metadata.controller import Controller
from pykafkad.server import listeners, periodic_elections
from pykafkad.server.dispatch import Dispatcher, controller_request
from pykafkad.server.metadata_log import MetadataLog
from pykafkad.server.offload import Offload
from pykafkad.server.runtime import RuntimeNode
from pykafkad.server.session import Sessions
from pykafkad.server.socket_server import SocketServer
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.config import Settings
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.table import Handler
    from pykafkad.log.directory import LogDirectory
    from pykafkad.metadata.image import Image, MetadataDelta
    from pykafkad.metadata.quorum import Quorum
    from pykafkad.server.broker_presence import BrokerPresence
    from pykafkad.server.connection import Connection
    from pykafkad.server.directories import Directories
    from pykafkad.server.housekeeping import Housekeeping
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.metadata_source import ActiveController
    from pykafkad.server.runtime import Runtime
    from pykafkad.server.session import Authorizer
    from pykafkad.wire.messages import DescribeQuorumResponse

    class MetadataFollower(Protocol):
        """Whoever holds the controller's image and acts on its changes: a broker of the same process."""

        def metadata_changed(self, delta: MetadataDelta) -> bool:
            """Committed records changed the image. Whether new partitions wait for their logs by that."""

        def after_opening(self, answer: Callable[[], object]) -> None:
            """Call `answer` when no partition waits for its log any more that waits now."""


# The metadata log is thinned by its snapshots alone.
_METADATA_LOG_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(8 * 1024 * 1024),
}


class ControllerNode(RuntimeNode):
    """A controller that is the only voter of its quorum. `start`, then `activate`, then turns until `close`."""

    metadata_log: MetadataLog
    api_ranges = None
    """For brokers of the same process, which have the versions that it has."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        directories: Directories,
        housekeeping: Housekeeping,
        listening: list[Listener],
        authorizer: Authorizer | None = None,
        logs: Logs | None = None,
    ) -> None:
        """`listening` are its own listeners: none where a broker of the same process is all that asks it."""
        self._housekeeping = housekeeping
        self.runtime = runtime
        self.settings = settings
        self.directories = directories
        self.node_id = settings.node_id
        self.serving = False
        self.listeners = listening
        self.metrics = runtime.metrics
        self.logs = logs or runtime.logs
        self.services = ControllerServices(
            authorizer=authorizer,
            clock=runtime,
            controller=self,
            logs=self.logs,
            node_id=self.node_id,
            reply=runtime.replies.reply,
            settings=settings,
        )
        self._handlers: dict[int, Handler] = {}
        self.dispatcher = Dispatcher(runtime, None, CONTROLLER_LISTENER, self._serve, release=settings.release)
        self.serve = self.dispatcher.serve
        self.sessions = Sessions({}, authorizer)
        self.sync_offload = Offload(runtime.reactor.wake, runtime.unexpected)
        """Syncs of the metadata log: they wait for no other work."""
        self.syncs_beside_loop = False
        self._is_stopping = False
        self._presence: BrokerPresence | None = None
        self.socket_server = SocketServer.of(self, runtime.reactor, settings)
        self._followers: list[MetadataFollower] = []

    @property
    def directory(self) -> LogDirectory:
        """The directory of the metadata log."""
        return self.directories.metadata

    @property
    def image(self) -> Image:
        """The current picture of the cluster."""
        return self.metadata_log.image

    @property
    def quorum(self) -> Quorum:
        """The quorum's machine."""
        machine = self.metadata_log.quorum
        assert machine is not None, "the metadata log is not loaded yet"
        return machine

    def submit(self, request: object) -> object:
        """Decide a request: a client's (`ControllerRequest`), or an event of `metadata/events.py`, as a broker sends
        them about itself.

        The result is that of a handler: an answer, DEFERRED when the answer comes by the request's token, or a
        generator that gives one of them."""
        if type(request) is not ControllerRequest:
            return self.metadata_log.submit(request)
        handler = self._handlers.get(request.key)
        if handler is None:
            row = table.by_key(request.key)
            assert row is not None
            handler = self._handlers[request.key] = table.handler(row)
        return handler(ControllerContext(self.services, request), request.message)

    def ask_quorum(self, token: object, request: Any) -> object:
        """Requests of other members of the quorum: an only voter has none. None."""
        return None

    def describe_quorum(self, version: int) -> DescribeQuorumResponse | None:
        """The handler describes an only voter."""
        return None

    def _serve(self, context: Context, message: Any) -> object:
        """A request on the controller's own listener."""
        request = controller_request(context, message)
        request.connection = context.connection
        if type(message) is messages.BrokerHeartbeatRequest:
            if self._presence is None:
                from pykafkad.server.broker_presence import BrokerPresence

                self._presence = BrokerPresence(self)
            request.token = self._presence.token(context.connection, message, request.token)
        return self.submit(request)

    def stop_listening(self) -> None:
        """Take no new connections."""
        self.socket_server.stop_listening()

    def end_early(self, connection: Connection) -> None:
        """Nothing here waits for a maximum of time."""

    def connection_lost(self, connection: Connection) -> None:
        """Nobody waits for its answers any more."""
        self.dispatcher.connection_lost(connection)
        if self._presence is not None and not self._is_stopping:
            self._presence.lost(connection)

    @property
    def is_busy(self) -> bool:
        """Whether the controller has an event that is not done."""
        return self.metadata_log.is_busy

    def on_committed(self, follower: MetadataFollower) -> None:
        """Tell `follower` of every change of the image from now on, in the order of the subscriptions."""
        self._followers.append(follower)

    def active_controller(self) -> ActiveController | None:
        """The leader of the quorum: this node, from its election on."""
        from pykafkad.server.metadata_source import ActiveController

        if self.quorum.leader_id < 0:
            return None
        for each in listeners.endpoints(self.listeners):
            return ActiveController(self.quorum.leader_id, self.quorum.epoch, each.host, each.port)
        return ActiveController(self.quorum.leader_id, self.quorum.epoch, "", 0)

    def on_new_controller(self, told: Callable[[], object]) -> None:
        """An only voter leads from its start to its end."""

    def forget(self, follower: MetadataFollower) -> None:
        """Tell `follower` of nothing any more."""
        self._followers.remove(follower)

    def metadata_changed(self, delta: MetadataDelta) -> bool:
        """Committed records changed the image. Whether new partitions wait for their logs by that."""
        opens = False
        for follower in self._followers:
            opens |= follower.metadata_changed(delta)
        return opens

    def after_opening(self, answer: Callable[[], object]) -> None:
        """Call `answer` when no partition waits for its log any more that waits now, with any follower."""
        for follower in self._followers:
            answer = partial(follower.after_opening, answer)
        answer()

    def plan_deletions(self) -> None:
        """A file of the metadata log's directory is to be removed after its delay."""
        self._housekeeping.plan_deletions()

    # --- start and stop -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the metadata log and elect a leader. Raises ConfigError or StorageFailure."""
        directory, settings = self.directory, self.settings
        log_settings = {**_METADATA_LOG_SETTINGS, "segment.bytes": str(settings.metadata_log_segment_bytes)}
        log_settings["segment.ms"] = str(settings.metadata_log_segment_ms)
        if settings.internal_metadata_log_segment_bytes:
            log_settings["internal.segment.bytes"] = str(settings.internal_metadata_log_segment_bytes)
        log = directory.open_partition(
            *record_codec.LOG, record_codec.TOPIC_ID, config.topic_settings(settings, log_settings)
        )
        metadata = self.metadata_log = MetadataLog(self, log)
        metadata.load()
        self.services.image = metadata.image
        self.services.cluster_id = directory.meta["cluster.id"]
        directory_id = uuids.from_text(directory.meta["directory.id"])
        voter_set = metadata.image.voters or [voters.Voter(self.node_id, directory_id, [])]
        is_new = metadata.image.offset < 0
        if is_new:
            metadata.format(voter_set)
        machine = quorum.Quorum(
            self.node_id,
            directory_id,
            voter_set,
            self.runtime.random,
            # A log without voters is one of a static quorum (kraft.version 0), and stays it.
            voters_in_log=not is_new,
            state_file=self._quorum_state(f"{directory.path}/{quorum.STATE_FILE}", len(voter_set)),
        )
        cluster_id = directory.meta["cluster.id"]
        metadata.start(machine, Controller(self.node_id, cluster_id, settings, metadata.image, self.runtime.random))
        if machine.state != quorum_states.LEADER:
            named = ", ".join(f"{voter.id} with directory {uuids.to_text(voter.directory_id)}" for voter in voter_set)
            raise ConfigError(
                f"{directory.path}: its metadata log names as voters {named}; this is node {self.node_id} with "
                f"directory "
                f"{uuids.to_text(directory_id)} ({directory.path}/meta.properties), which cannot lead alone"
            )

    def _quorum_state(self, path: str, voter_count: int) -> bytes | None:
        """The content of `quorum-state`. A lone voter does without a damaged one: nobody else counts its votes, and the
        log has its epoch."""
        content = self.runtime.disk.read(path)
        try:
            quorum.parse_state(content)
        except ValueError as error:
            if voter_count > 1:
                raise ConfigError(f"{path} is damaged: {error}") from None
            self.logs.warning("server", "quorum-state-damaged", path=path, reason=error)
            return None
        return content

    def bind(self) -> None:
        """Listen. Raises OSError, and ConfigError or StartFailure for what the settings of TLS or logins lack."""
        for each in self.listeners:
            if each.has_sasl:
                from pykafkad.server.logins import prepare

                prepare(self, each, self.socket_server.logins)
        listeners.bind(self.socket_server, self.listeners, self.settings, self.logs)

    def activate(self, incarnation_id: bytes) -> None:
        """Begin to decide. Every broker but this process's own is fenced where nobody can tell this controller that it
        lives; where it has listeners, they have a session's time for that."""
        self.submit(
            events.Activate(
                self.quorum.epoch,
                incarnation_id,
                listeners.endpoints(self.listeners),
                self.metadata_log.bootstrap_records(),
            )
        )
        if self.listeners:
            self.submit(events.BeginSessions(self.runtime.now))
            return
        for other in list(self.image.brokers.values()):
            if other.id != self.node_id:
                self.submit(events.FenceBroker(other.id, other.epoch))

    def begin_serving(self) -> None:
        """From now on snapshots of the metadata are made, and leaders elected from time to time."""
        self.metadata_log.snapshots.begin()
        if self.settings.delegation_token_secret_key:
            from pykafkad.server.token_expiry import TokenExpiry

            TokenExpiry(self).begin()
        periodic_elections.begin(self)
        self.serving = True

    def finish_work(self) -> None:
        """What is being synced is committed; from now on every sync runs at once."""
        self._is_stopping = True
        if self._presence is not None:
            self._presence.close()
        self.syncs_beside_loop = False
        self.sync_offload.close()

    def close(self) -> None:
        """Make the snapshot that spares the next start its reading, and leave the quorum."""
        self.metadata_log.resign()
        self.serving = False

    # --- one turn -----------------------------------------------------------------------------------------------------

    def end_turn(self, now: float) -> None:
        """Take the syncs that have ended; let the quorum look at its timeouts."""
        self.syncs_beside_loop = not self._is_stopping
        self.sync_offload.finished()
        deadline = self.metadata_log.next_deadline()
        if deadline is not None and deadline <= now:
            self.metadata_log.tick()

    def next_deadline(self) -> float | None:
        """When the quorum's next timeout is due."""
        return self.metadata_log.next_deadline()
