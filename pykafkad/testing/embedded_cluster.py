"""Several brokers on one thread of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pykafkad.server import cluster_settings
from pykafkad.server.cluster import Cluster
from pykafkad.server.listeners import Listener
from pykafkad.testing.broker_loop import Token
from pykafkad.testing.embedded import EmbeddedBroker, address_of

if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.server.logs import Logs
    from pykafkad.server.wiring import Process
    from pykafkad.testing.options import Options


class EmbeddedCluster(EmbeddedBroker):
    """As `EmbeddedBroker`; single brokers stop, end and start again while the others serve."""

    _process: Cluster

    def _make(self, options: Options, settings: Settings, node_logs: Logs) -> Process:
        members = cluster_settings.of_brokers(settings, options.brokers, options.racks, options.settings)
        ports = options.ports or [options.port + index if options.port else 0 for index in range(options.brokers)]
        return Cluster(
            cluster_settings.of_controller(settings, members),
            list(zip(members, self._listeners(options, ports), strict=True)),
            clock=self.clock,
            disk=self._disk,
            logs=node_logs,
        )

    @staticmethod
    def _listeners(options: Options, ports: Sequence[int]) -> list[list[Listener]]:
        """Those of each broker: that for clients, and if they are guarded the test's own."""
        if options.guard is None:
            return [[Listener("PLAINTEXT", options.host, port)] for port in ports]
        control_ports = options.control_ports or [0] * len(ports)
        return [
            options.guard.listeners(options.host, port, control_port)
            for port, control_port in zip(ports, control_ports, strict=True)
        ]

    def _find_addresses(self, process: Cluster) -> None:  # type: ignore[override]
        """Of all brokers, with commas between them."""
        listening = [each.listeners for each in process.members.values()]
        self.bootstrap = ",".join(address_of(each[0]) for each in listening)
        self.control = ",".join(address_of(each[-1]) for each in listening)

    def _snapshot_paths(self) -> list[str]:
        return self._process.snapshot_paths

    def _drop(self) -> None:
        for node_id, member in self._process.members.items():
            if member.state == "serving":
                self._process.kill_broker(node_id)
        self._process.runtime.reactor.close()
        self._process.runtime.cpu_offload.close()

    # --- one of them --------------------------------------------------------------------------------------------------

    def stop_broker(self, node_id: int) -> None:
        """Stop one broker; its partitions have other leaders where they can."""
        self._do(self._process.stop_broker, node_id)

    def kill_broker(self, node_id: int) -> None:
        """End one broker without a word."""
        self._call(lambda: self._process.kill_broker(node_id))

    def start_broker(self, node_id: int) -> None:
        """Start one broker again, where it was."""
        self._do(self._process.start_broker, node_id)
        self._call(self._brokers_changed)

    def _do(self, begin: Callable[[int, Callable[[], object]], object], node_id: int) -> None:
        token = Token()
        self._call(lambda: begin(node_id, token.done.set))
        self._wait(token.done)

    def _call(self, job: Callable[[], Any]) -> None:
        try:
            self.call(job)
        except ValueError as problem:
            raise RuntimeError(str(problem)) from None
