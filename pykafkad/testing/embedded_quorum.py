"""Several brokers and several controllers on one thread of this process."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from pykafkad.server import cluster_settings, run
from pykafkad.server.binding import reserved_port
from pykafkad.server.quorum_cluster import QuorumCluster
from pykafkad.server.start_requests import StartRequests
from pykafkad.testing.broker_loop import BrokerEnded, Token
from pykafkad.testing.embedded import address_of
from pykafkad.testing.embedded_cluster import EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.config import Settings
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.logs import Logs
    from pykafkad.server.socket_server import SocketServer
    from pykafkad.server.wiring import Process
    from pykafkad.testing.guard import Guard
    from pykafkad.testing.options import Options

_TURNS_PER_STEP = 6
"""So many turns follow each step of the clock: nodes that ask each other need some for a question and its answer."""

_PAUSE_SECONDS = 0.005


class EmbeddedQuorum(EmbeddedCluster):
    """As `EmbeddedCluster`; single controllers stop, end and start again, too."""

    _process: QuorumCluster  # type: ignore[assignment]

    def _make(self, options: Options, settings: Settings, node_logs: Logs) -> Process:
        members = cluster_settings.of_brokers(settings, options.brokers, options.racks, options.settings)
        ports = options.ports or [options.port + index if options.port else 0 for index in range(options.brokers)]
        controller_ports = [reserved_port(cluster_settings.CONTROLLER_HOST) for _ in range(options.controllers)]
        quorum, members = cluster_settings.of_quorum(settings, members, controller_ports, self._disk, Random())
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

    def active_controller(self) -> int | None:
        """The node id of the controller that decides; None while there is none."""

        def look() -> int | None:
            active = self._process.active_controller
            return None if active is None else active.node_id

        return self.call(look)

    def stop_controller(self, node_id: int) -> None:
        """Stop one controller; where it is active, another takes over."""
        self._do(self._process.stop_controller, node_id)

    def kill_controller(self, node_id: int) -> None:
        """End one controller without a word."""
        self._call(lambda: self._process.kill_controller(node_id))

    def start_controller(self, node_id: int) -> None:
        """Start one controller again, where it was."""
        self._call(lambda: self._process.start_controller(node_id))

    def _deciding_controller(self) -> ControllerNode:
        active = self._process.active_controller
        if active is None:
            raise BrokerEnded("no controller is active; start one, and wait for it")
        return active

    # --- what takes longer with a quorum ------------------------------------------------------------------------------

    def reset(self) -> None:
        """As that of one broker; every broker knows of it then."""
        super().reset()
        self.wait_until_known()

    def wait_until_known(self) -> None:
        """Return when every broker knows what was decided, or nobody can decide anything."""
        self._wait_until(lambda: not self._process.can_decide or self._process.is_in_step())

    def advance_clock(self, seconds: float) -> float:
        """As that of one broker. Who has lost its session or its lead by a large step, as on a machine that slept, has
        it again then."""
        ahead = super().advance_clock(seconds)
        self._wait_until(lambda: not self._process.can_decide or self._process.has_settled())
        return ahead

    def _clock_moved(self) -> None:
        for _ in range(_TURNS_PER_STEP):
            self.call(lambda: None)

    def _wait_until(self, is_there: Callable[[], bool]) -> None:
        token = Token()

        def look() -> None:
            if is_there():
                token.done.set()
            else:
                self._process.runtime.call_later(_PAUSE_SECONDS, look)

        self.call(look)
        self._wait(token.done)
