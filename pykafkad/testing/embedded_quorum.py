"""Several brokers and several controllers on one thread of this process."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from pykafkad.server import cluster_settings, run
from pykafkad.server.binding import reserved_port
from pykafkad.server.quorum_cluster import QuorumCluster
from pykafkad.server.start_requests import StartRequests
from pykafkad.testing.embedded import address_of
from pykafkad.testing.embedded_cluster import EmbeddedCluster

if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.server.logs import Logs
    from pykafkad.server.socket_server import SocketServer
    from pykafkad.server.wiring import Process
    from pykafkad.testing.guard import Guard
    from pykafkad.testing.options import Options


class EmbeddedQuorum(EmbeddedCluster):
    """As `EmbeddedCluster`; single controllers stop, end and start again, too."""

    _process: QuorumCluster  # type: ignore[assignment]
    _controller_ports: list[int] | None = None

    def _make(self, options: Options, settings: Settings, node_logs: Logs) -> Process:
        members = cluster_settings.of_brokers(settings, options.brokers, options.racks, options.settings)
        ports = options.ports or [options.port + index if options.port else 0 for index in range(options.brokers)]
        if not self._controller_ports:
            host = cluster_settings.CONTROLLER_HOST
            self._controller_ports = [reserved_port(host) for _ in range(options.controllers)]
        quorum, members = cluster_settings.of_quorum(settings, members, self._controller_ports, self._disk, Random())
        return QuorumCluster(
            [(each, run.parse_listeners(each)) for each in quorum],
            list(zip(members, self._listeners(options, ports), strict=True)),
            clock=self.clock,
            disk=self._disk,
            logs=node_logs,
        )

    def _do_without_threads(self, process: QuorumCluster) -> None:  # type: ignore[override]
        process.runtime.offload.has_thread = False
        for place in process.controller_places.values():
            place.controller.sync_offload.has_thread = False
        for each in process.broker_places.values():
            each.process.source.sync_offload.has_thread = False

    def _add_guard(self, process: QuorumCluster, guard: Guard) -> None:  # type: ignore[override]
        """By requests to the test's own listeners."""
        from pykafkad.cli import start_acls as words

        addresses = [address_of(each.listeners[-1]) for each in process.broker_places.values()]
        users = [(name, password, mechanism) for name, password, mechanism in guard.users]
        requests = StartRequests(addresses, lambda: process.runtime.stopping, process.runtime)
        requests.settle([], words.parse(guard.acls, "acls:"), users)
        process.turn_until(process.is_in_step)

    def _find_addresses(self, process: QuorumCluster) -> None:  # type: ignore[override]
        listening = [each.listeners for each in process.broker_places.values()]
        self.bootstrap = ",".join(address_of(each[0]) for each in listening)
        self.control = ",".join(address_of(each[-1]) for each in listening)

    def socket_servers(self) -> list[SocketServer]:
        """Those of all nodes."""
        places = self._process.controller_places.values()
        return [*super().socket_servers(), *(each.controller.socket_server for each in places)]

    def _drop(self) -> None:
        for each in self._process.places:
            if each.state in ("serving", "starting"):
                each.kill()
        self._process.runtime.reactor.close()
        self._process.runtime.cpu_offload.close()

    # --- the controllers ----------------------------------------------------------------------------------------------

    def stop_controller(self, node_id: int) -> None:
        """Stop one controller; where it is active, another takes over."""
        self._do(self._process.stop_controller, node_id)

    def kill_controller(self, node_id: int) -> None:
        """End one controller without a word."""
        self._call(lambda: self._process.kill_controller(node_id))

    def start_controller(self, node_id: int) -> None:
        """Start one controller again, where it was."""
        self._call(lambda: self._process.start_controller(node_id))
