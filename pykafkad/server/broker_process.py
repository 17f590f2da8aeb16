"""A process that is a broker alone (`process.roles=broker`): it observes the metadata quorum of other processes, is
registered with their active controller, and asks that for every change of the metadata."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.handlers import snapshot_actions
from pykafkad.server import peer_security
from pykafkad.server.broker import Broker
from pykafkad.server.broker_lifecycle import RUNNING, BrokerLifecycle
from pykafkad.server.controller_channel import ControllerChannel
from pykafkad.server.directories import Directories
from pykafkad.server.housekeeping import Housekeeping
from pykafkad.server.metadata_observer import MetadataObserver
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from pykafkad.server.wiring import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.listeners import Listener
    from pykafkad.server.local_links import LocalLinks
    from pykafkad.server.logs import Logs
    from pykafkad.server.peer_types import Security
    from pykafkad.server.session import Authorizer


class BrokerProcess(Process):
    """`start` returns when the broker serves; `begin` does not wait for that."""

    __slots__ = ("_settings", "lifecycle", "served", "source")

    def __init__(
        self,
        settings: Settings,
        listening: list[Listener],
        data_directories: Sequence[str],
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        random: Random | None = None,
        reactor: Callable[[Runtime], Reactor] = Reactor,
        authorizer: Authorizer | None = None,
        logs: Logs | None = None,
        runtime: Runtime | None = None,
        observer: Callable[..., Any] = MetadataObserver,
    ) -> None:
        """`observer(runtime, settings, directories, housekeeping)` makes what observes the quorum. A `runtime` is
        shared with others, and has what is its own: clock, disk, chance, loop and logs."""
        settings.set_dynamic({}, {})
        runtime = self._begin(clock, disk, random, reactor, logs, runtime)
        self._settings = settings
        directories = self.directories = Directories(runtime, settings, data_directories)
        housekeeping = self.housekeeping = Housekeeping(runtime, settings, directories)
        authorizer = self._authorizer(settings, authorizer)
        self.source = self._make_source(observer, authorizer)
        channel: Any = ControllerChannel(runtime, settings, self.source, self._local_links())
        self.controller = channel
        if self._acls is not None:
            self.source.on_committed(self._acls)
        broker = self.broker = Broker(runtime, settings, listening, directories, housekeeping, channel, authorizer)
        self.lifecycle = BrokerLifecycle(broker, channel, self._unfenced)
        self.source.on_committed(self.lifecycle)
        self.served: Callable[[], object] | None = None
        """Called once, when clients are led here."""
        broker.peer_security = self._peer_security()
        broker.services.open_data_snapshots = snapshot_actions.none_here
        # The last is the first to resign: others lead before anything here ends.
        runtime.nodes += [directories, housekeeping, self.source, broker, channel, self.lifecycle]
        self.audit = None
        if authorizer is not None and settings.pykafkad_audit_file:
            from pykafkad.server import audit

            self.audit = audit.install(self, authorizer, settings)

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving. Raises ConfigError, StorageFailure or OSError with what stands in the way."""
        self.begin(stale_file=stale_file)
        runtime = self.runtime
        while self.lifecycle.state != RUNNING:
            if runtime.stopping is not None:
                raise StartFailure(runtime.stopping)
            runtime.reactor.turn(runtime.seconds_to_next_turn(float("inf")))

    def _make_source(self, observer: Callable[..., Any], authorizer: Authorizer | None) -> Any:
        """Where the broker learns of the metadata."""
        return observer(self.runtime, self._settings, self.directories, self.housekeeping)

    def _local_links(self) -> LocalLinks | None:
        """The way to a controller of this process."""
        return None

    def _peer_security(self) -> Security:
        """How the broker reaches others. Raises ConfigError."""
        return peer_security.of_brokers(self._settings)

    @property
    def own_controller(self) -> ControllerNode | None:
        return None

    def ask_at_start(self, event: Any) -> Any:
        """Ask whichever controller is active. Raises StartFailure when no answer comes."""
        self.controller.submit(event)
        token, runtime = event.token, self.runtime
        while token.message is None and token.problem is None:
            if runtime.stopping is not None:
                raise StartFailure(runtime.stopping)
            runtime.reactor.turn(runtime.seconds_to_next_turn(float("inf")))
        if token.problem is not None:
            raise StartFailure(token.problem)
        return token.message

    def begin(self, *, stale_file: str | None = None) -> None:
        """Open the directories, listen, and begin to observe and to register."""
        broker = self.broker
        assert broker is not None
        self._open_directories(self._settings.metadata_log_dir or self.directories.paths[0])
        if stale_file is not None:
            # It is no part of the data, which may live in memory.
            Disk().unlink(stale_file)
        incarnation_id = self.runtime.random.randbytes(16)
        self._start_source(incarnation_id)
        self.lifecycle.channel.start()
        broker.bind()
        # As in Kafka: who was answered before the broker has the metadata would take its topics for gone.
        broker.socket_server.hold_connections()
        broker.services.cluster_id, broker.services.image = broker.cluster_id, broker.image
        self.source.begin_serving()
        self.lifecycle.start(incarnation_id)

    def _open_directories(self, metadata_path: str) -> None:
        cluster_id = self._settings.pykafkad_cluster_id
        if not cluster_id and not self.runtime.disk.exists(f"{metadata_path}/meta.properties"):
            raise ConfigError(
                f"{metadata_path} belongs to no cluster yet: name that of the controllers with pykafkad.cluster.id, or "
                "format the directory with pykafkad format or kafka-storage.sh"
            )
        self.directories.open(metadata_path, cluster_id or None)

    def _start_source(self, incarnation_id: bytes) -> None:
        self.source.start()

    def _unfenced(self) -> None:
        """The controller leads clients here."""
        broker = self.broker
        assert broker is not None
        broker.begin_serving()
        broker.socket_server.accept_connections()
        if broker.socket_server.logins:
            from pykafkad.server import scram_users

            scram_users.share_secret(broker)
        self.housekeeping.start()
        served, self.served = self.served, None
        if served is not None:
            served()
