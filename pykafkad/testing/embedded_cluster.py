"""Several brokers on one thread of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pykafkad.server import cluster_settings
from pykafkad.server.cluster import Cluster
from pykafkad.server.fault_injection import Fault, FaultInjection
from pykafkad.server.listeners import Listener
from pykafkad.testing.broker_loop import Token
from pykafkad.testing.embedded import EmbeddedBroker, address_of

if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.server.broker import Broker
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
        self._call(self._broker_started)

    def _broker_started(self) -> None:
        if self._faults is not None:
            assert isinstance(self._faults, ClusterFaults)
            self._faults.follow()

    def _do(self, begin: Callable[[int, Callable[[], object]], object], node_id: int) -> None:
        token = Token()
        self._call(lambda: begin(node_id, token.done.set))
        self._wait(token.done)

    def _call(self, job: Callable[[], Any]) -> None:
        try:
            self.call(job)
        except ValueError as problem:
            raise RuntimeError(str(problem)) from None

    # --- what is there for one broker alone ---------------------------------------------------------------------------

    def _inject(self) -> FaultInjection:
        return ClusterFaults(self._process)

    def _record(self) -> None:
        raise RuntimeError("several brokers have no trace yet")

    def metrics(self) -> str:
        """Not yet. Raises RuntimeError."""
        raise RuntimeError("several brokers have no metrics yet")


class _SharedFaults(FaultInjection):
    """The faults of one broker, which end everywhere."""

    __slots__ = ("_all",)

    def __init__(self, broker: Broker, every: ClusterFaults) -> None:
        super().__init__(broker)
        self._all = every

    def has_fired(self, fault: Fault) -> None:
        """A request met a fault, which ends with its last time at every broker."""
        is_last = fault.left == 1
        super().has_fired(fault)
        if is_last:
            self._all.remove(fault)


class ClusterFaults(FaultInjection):
    """The faults of several brokers: each is one of all of them."""

    __slots__ = ("_cluster", "_of_brokers")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of_brokers: dict[Broker, _SharedFaults] = {}
        self.active = []
        self.follow()

    def follow(self) -> None:
        """A broker that has started meets them too."""
        now = dict.fromkeys(self._cluster.brokers)
        self._of_brokers = {each: faults for each, faults in self._of_brokers.items() if each in now}
        for broker in now:
            if broker not in self._of_brokers:
                faults = self._of_brokers[broker] = _SharedFaults(broker, self)
                for fault in self.active:
                    faults.add(fault)

    def add(self, fault: Fault) -> None:
        """Set a fault at every broker."""
        for each in self._of_brokers.values():
            each.add(fault)
        self.active = [*self.active, fault]

    def remove(self, fault: Fault) -> None:
        """Release a fault."""
        self.active = [each for each in self.active if each is not fault]
        for each in self._of_brokers.values():
            each.remove(fault)

    def clear(self) -> None:
        """Release all."""
        self.active = []
        for each in self._of_brokers.values():
            each.clear()
