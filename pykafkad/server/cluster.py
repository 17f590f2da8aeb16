"""Several brokers of one process, with one controller.

The controller is a node of its own, which no client reaches. The brokers share with it the loop and the clock, and
learn of the metadata as a single broker does: from the committed records. Among themselves they speak Kafka's protocol
over connections (`other_brokers.py`), as brokers of several processes do: those of the listener between them, or where
everybody has to log in, such as nobody else can reach (`local_links.py`).

A broker may stop, or be killed, and start again while the others serve. One that stops asks the controller to move what
it leads, and closes its connections when that is committed (a controlled shutdown). One that is killed says nothing:
the controller fences it when `broker.session.timeout.ms` is over, as if its heartbeats had ended."""

from __future__ import annotations

from functools import partial

from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.metadata import events
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.server import cluster_settings
from pykafkad.server.broker import Broker
from pykafkad.server.controller_node import ControllerNode
from pykafkad.server.directories import Directories
from pykafkad.server.housekeeping import Housekeeping
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from pykafkad.server.wiring import Process

DOWN = "down"
STARTING = "starting"
SERVING = cluster_settings.SERVING
STOPPING = "stopping"
KILLED = "killed"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.metadata.image import MetadataDelta
    from pykafkad.server.cluster_snapshots import ClusterSnapshots
    from pykafkad.server.data_snapshots import DataSnapshots
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.session import Authorizer
    from pykafkad.server.socket_server import SocketServer


class Member:
    """The place of one broker. `broker`, `directories` and `housekeeping` are made anew by each of its starts."""

    __slots__ = ("_cluster", "broker", "directories", "housekeeping", "listeners", "settings", "state", "then")

    def __init__(self, cluster: Cluster, settings: Settings, listening: list[Listener]) -> None:
        self._cluster = cluster
        self.settings = settings
        self.listeners = listening
        self.state = DOWN
        self.then: Callable[[], object] | None = None
        """Called once, when the start or the stop that was asked for has come to its end."""
        self.make()

    def make(self) -> None:
        """A broker, its directories not open yet."""
        cluster, settings = self._cluster, self.settings
        # Live values of an earlier life may not be those of the metadata log now.
        settings.set_dynamic({}, {})
        runtime = cluster.runtime
        self.directories = Directories(runtime, settings, settings.log_directories)
        self.housekeeping = Housekeeping(runtime, settings, self.directories)
        self.broker = Broker(
            runtime, settings, self.listeners, self.directories, self.housekeeping, cluster.controller,
            cluster.authorizer,
        )  # fmt: skip
        self.broker.local_links = cluster.local_links
        self.broker.services.open_data_snapshots = cluster.open_data_snapshots
        runtime.nodes += [self.directories, self.housekeeping, self.broker]

    def open(self, cluster_id: str) -> None:
        """Lock and look at the directories."""
        self.directories.open(self.directories.paths[0], cluster_id)

    def finished(self, state: str) -> None:
        """A start or a stop has come to its end."""
        self.state = state
        then, self.then = self.then, None
        if then is not None:
            then()

    # --- the way down -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The controller has moved what the broker led: answer who waits, close the connections and the directories."""
        broker, runtime = self.broker, self._cluster.runtime
        broker.stop_listening()
        broker.finish_work()
        # It has told the controller already, and its shards have resigned as their leadership ended.
        broker.serving = False
        broker.resign()
        # One more turn, in which the last answers leave.
        runtime.call_later(0, self._close)

    def _close(self) -> None:
        broker, runtime = self.broker, self._cluster.runtime
        broker.cancel_work()
        self.housekeeping.cancel_work()
        # Jobs of this broker may be under way.
        runtime.offload.close()
        broker.socket_server.close()
        broker.close()
        self._leave()
        try:
            self.directories.close()
        except StorageFailure as failure:
            broker.logs.error("storage", "directory-offline", directory=self.directories.metadata.path, reason=failure)
        broker.logs.info("server", "broker-stopped", node=broker.node_id)
        self.finished(DOWN)
        self._cluster.choose_broker()

    def kill(self) -> None:
        """Nothing more is written, and no client is told."""
        broker, runtime = self.broker, self._cluster.runtime
        self.state = KILLED
        broker.serving = False
        broker.commits.dirty.clear()
        broker.abandon()
        runtime.offload.close()
        broker.socket_server.close()
        self._leave()
        self.directories.abandon()
        broker.logs.warning("server", "broker-killed", node=broker.node_id)

    def _leave(self) -> None:
        cluster = self._cluster
        cluster.controller.forget(self.broker)
        self.housekeeping.close()
        for node in (self.broker, self.housekeeping, self.directories):
            cluster.runtime.nodes.remove(node)


class Cluster(Process):
    """A process of several brokers. `broker` is the first of them that serves."""

    __slots__ = ("_snapshots", "authorizer", "local_links", "members")

    def __init__(
        self,
        controller_settings: Settings,
        brokers: Sequence[tuple[Settings, list[Listener]]],
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        random: Random | None = None,
        reactor: Callable[[Runtime], Reactor] = Reactor,
        authorizer: Authorizer | None = None,
        logs: Logs | None = None,
    ) -> None:
        """`brokers` are the settings and the listeners of each."""
        controller_settings.set_dynamic({}, {})
        self._begin(clock, disk, random, reactor, logs)
        runtime = self.runtime
        directories = self.directories = Directories(runtime, controller_settings, controller_settings.log_directories)
        housekeeping = self.housekeeping = Housekeeping(runtime, controller_settings, directories)
        self.authorizer = self._authorizer(controller_settings, authorizer)
        self.controller = ControllerNode(runtime, controller_settings, directories, housekeeping, [], self.authorizer)
        self._subscribe_acls()
        runtime.nodes += [directories, housekeeping, self.controller]
        self.local_links = None
        self._snapshots: ClusterSnapshots | None = None
        if cluster_settings.needs_links(*brokers[0]):
            from pykafkad.server.local_links import LocalLinks

            self.local_links = LocalLinks(runtime, self._server)
        self.members = {settings.node_id: Member(self, settings, listening) for settings, listening in brokers}
        self.controller.on_committed(self)
        self.broker = next(iter(self.members.values())).broker
        self.audit = None
        if self.authorizer is not None and controller_settings.pykafkad_audit_file:
            from pykafkad.server import audit

            self.audit = audit.install(self, self.authorizer, controller_settings)

    def _server(self, node_id: int) -> SocketServer | None:
        """What serves the connections of a broker that is up."""
        member = self.members.get(node_id)
        return None if member is None or member.state in (DOWN, KILLED) else member.broker.socket_server

    def open_data_snapshots(self) -> ClusterSnapshots:
        """Those of all brokers."""
        if self._snapshots is None:
            from pykafkad.server.cluster_snapshots import ClusterSnapshots

            self._snapshots = ClusterSnapshots(self)
        return self._snapshots

    @property
    def used_snapshots(self) -> DataSnapshots | None:
        return self._snapshots

    @property
    def snapshot_paths(self) -> list[str]:
        paths = list(self.directories.paths)
        return [*paths, *(path for each in self.members.values() for path in each.directories.paths)]

    @property
    def brokers(self) -> list[Broker]:
        """Those that are not down, by their node ids."""
        return [each.broker for each in self.members.values() if each.state not in (DOWN, KILLED)]

    @property
    def node_ids(self) -> list[int]:
        """Those of its brokers, also of the ones that are down."""
        return list(self.members)

    @property
    def listeners(self) -> list[Listener]:
        """Where the brokers serve."""
        return [listener for each in self.members.values() for listener in each.listeners]

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving, of all brokers. Raises ConfigError, StorageFailure or OSError."""
        controller, runtime = self.controller, self.runtime
        self.directories.open(self.directories.paths[0])
        cluster_id = self.directories.metadata.meta["cluster.id"]
        for member in self.members.values():
            member.open(cluster_id)
        if stale_file is not None:
            # It is no part of the data, which may live in memory.
            Disk().unlink(stale_file)
        controller.start()
        for broker in (each.broker for each in self.members.values()):
            broker.bind()
        controller.activate(runtime.random.randbytes(16))
        for member in self.members.values():
            member.broker.start(runtime.random.randbytes(16))
            member.housekeeping.start()
            member.state = SERVING
        for broker in (each.broker for each in self.members.values()):
            if broker.socket_server.logins:
                from pykafkad.server import scram_users

                # When all are registered: what a registration waits behind is not committed in the same call.
                scram_users.share_secret(broker)
        self.housekeeping.start()
        self.choose_broker()
        controller.begin_serving()

    # --- one broker ---------------------------------------------------------------------------------------------------

    def stop_broker(self, node_id: int, then: Callable[[], object] | None = None) -> None:
        """A controlled shutdown; `then()` is called when the broker's directories are closed. Raises ValueError if it
        does not serve."""
        member = self._member(node_id, SERVING)
        member.state, member.then = STOPPING, then
        self.controller.submit(events.StopBroker(node_id))

    def kill_broker(self, node_id: int) -> None:
        """End a broker as a kill ends a process. Raises ValueError if it does not serve."""
        member = self._member(node_id, SERVING)
        registered = self.controller.image.brokers[node_id]
        member.kill()
        self.choose_broker()
        seconds = member.settings.broker_session_timeout_ms / 1000
        fence = events.FenceBroker(node_id, registered.epoch)
        self.runtime.call_later(seconds, partial(self.controller.submit, fence))

    def start_broker(self, node_id: int, then: Callable[[], object] | None = None) -> None:
        """Start a broker that was stopped or killed; `then()` is called when it serves. Raises ValueError if it is not
        down, ConfigError, StorageFailure or OSError."""
        member = self._member(node_id, DOWN, KILLED)
        controller = self.controller
        member.make()
        # What a broker does about a change comes before what is done about the broker.
        controller.forget(self)
        controller.on_committed(self)
        broker = member.broker
        try:
            member.open(self.directories.metadata.meta["cluster.id"])
            broker.bind()
        except (OSError, ConfigError):
            member.broker.socket_server.close()
            member._leave()
            raise
        member.state, member.then = STARTING, then
        broker.load()
        broker.register(self.runtime.random.randbytes(16))

    def _member(self, node_id: int, *states: str) -> Member:
        member = self.members.get(node_id)
        if member is None:
            raise ValueError(f"broker {node_id}: there are {', '.join(map(str, self.members))}")
        if member.state not in states:
            raise ValueError(f"broker {node_id} is {member.state}, not {' or '.join(states)}")
        return member

    def choose_broker(self) -> None:
        """One of those that serve stands for all where there is one to be asked."""
        serving = [each.broker for each in self.members.values() if each.state == SERVING]
        if serving and self.broker not in serving:
            self.broker = serving[0]
        for each in serving:
            each.tells_topics = each is self.broker

    # --- what the controller tells ------------------------------------------------------------------------------------

    def metadata_changed(self, delta: MetadataDelta) -> bool:
        """Go on with starts and stops that waited for this."""
        image = self.controller.image
        if any(kind == TYPE_BROKER for kind, _ in delta.configs):
            settings = self.controller.settings
            settings.set_dynamic(image.configs(TYPE_BROKER, ""), image.configs(TYPE_BROKER, str(settings.node_id)))
        for node_id in delta.brokers:
            member, registered = self.members.get(node_id), image.brokers.get(node_id)
            if member is None:
                continue
            if member.state == STARTING and registered is not None:
                self._go_up(member, registered.epoch, is_fenced=registered.fenced)
            elif member.state == STOPPING and (registered is None or registered.fenced):
                self.runtime.call_later(0, member.stop)
        return False

    def _go_up(self, member: Member, epoch: int, *, is_fenced: bool) -> None:
        if member.broker.image.brokers[member.broker.node_id].incarnation_id != member.broker.incarnation_id:
            # That of its life before is fenced only now.
            return
        if is_fenced:
            self.controller.submit(events.UnfenceBroker(member.broker.node_id, epoch))
            return
        member.broker.begin_serving()
        member.housekeeping.start()
        member.broker.logs.info("server", "broker-started", node=member.broker.node_id)
        member.finished(SERVING)
        self.choose_broker()

    def after_opening(self, answer: Callable[[], object]) -> None:
        """Nothing is opened here."""
        answer()
