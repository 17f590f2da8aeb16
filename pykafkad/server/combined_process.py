"""A process that is a broker and a controller in one (`process.roles=broker,controller`) whose controller listens for
others: one of several voters, or the first that others may join.

The broker learns of the metadata from its own controller, as both have one log and one image. Everything that it asks
goes to the active controller, which may be any node: over a connection, also where it is the one beside it, and then
one that this process alone has. A process whose controller listens nowhere is simpler (`wiring.Process`)."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.handlers import snapshot_actions
from pykafkad.server import listeners, quorum_settings
from pykafkad.server.broker_process import BrokerProcess
from pykafkad.server.local_links import LocalLinks
from pykafkad.server.peer_types import PLAIN_TEXT
from pykafkad.server.raft_controller import RaftController

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.data_snapshots import DataSnapshots
    from pykafkad.server.listeners import Listener
    from pykafkad.server.peer_types import Security
    from pykafkad.server.session import Authorizer


class CombinedController(RaftController):
    """The controller beside a broker. Nodes reach it until that broker has left."""

    def stop_listening(self) -> None:
        """The process stops; the broker's controlled shutdown may need this controller, and so may other nodes."""

    def finish_work(self) -> None:
        """The broker's controlled shutdown has turns to come, in which the loop waits for no sync."""

    def resign(self) -> None:
        """The broker has left: take no new connections, commit what is being synced, and tell the others that this node
        leads no more."""
        self.socket_server.stop_listening()
        super().finish_work()
        super().resign()


class CombinedProcess(BrokerProcess):
    """`source` is the controller of this process; `controller` is the way to the active one."""

    __slots__ = ("_controller_listening",)

    def __init__(
        self,
        settings: Settings,
        listening: list[Listener],
        data_directories: Sequence[str],
        *,
        controller_listening: list[Listener] | None = None,
        **options: Any,
    ) -> None:
        """`listening` are the broker's listeners; those of the controller are in the settings, unless they are given.
        The options are those of a `BrokerProcess`."""
        if controller_listening is None:
            controller_listening = listeners.of_settings(settings, of_controller=True)
        self._controller_listening = controller_listening
        super().__init__(settings, listening, data_directories, **options)
        assert self.broker is not None
        self.broker.services.open_data_snapshots = self._data_snapshots

    @property
    def own_controller(self) -> ControllerNode | None:
        controller: ControllerNode = self.source
        return controller

    def _make_source(self, observer: Callable[..., Any], authorizer: Authorizer | None) -> CombinedController:
        return CombinedController(
            self.runtime, self._settings, self.directories, self.housekeeping, self._controller_listening, authorizer
        )

    def _local_links(self) -> LocalLinks:
        return LocalLinks(self.runtime, lambda _: self.source.socket_server)

    def _peer_security(self) -> Security:
        try:
            return super()._peer_security()
        except ConfigError as error:
            if quorum_settings.needs_format(self._settings):
                raise
            # A broker alone reaches nobody, and needs no login for that.
            self.runtime.logs.warning("server", "other-brokers-unreachable", reason=error)
            return PLAIN_TEXT

    def _data_snapshots(self) -> DataSnapshots:
        assert self.broker is not None
        if len(self.broker.image.brokers) > 1 or len(self.source.quorum.voters) > 1:
            snapshot_actions.none_here("other nodes have the same metadata")
        return self.broker.data_snapshots

    def _open_directories(self, metadata_path: str) -> None:
        settings = self._settings
        needs_format = quorum_settings.needs_format(settings)
        self.directories.open(metadata_path, settings.pykafkad_cluster_id or None, must_be_formatted=needs_format)

    def _start_source(self, incarnation_id: bytes) -> None:
        self.source.start()
        self.source.bind()
        self.source.activate(incarnation_id)
