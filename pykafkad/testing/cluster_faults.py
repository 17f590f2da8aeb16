"""The faults of several brokers of one process: each is one of all of them, or of the one that it names.

What the brokers ask of each other meets none, unless a fault names the client id of such requests, as
`broker-2-fetcher-0`: a fault that happens once is meant for a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafkad.server.fault_injection import Asked, FaultDispatcher, FaultInjection
from pykafkad.server.node_names import names_of_node

if TYPE_CHECKING:
    from pykafkad.server.broker import Broker
    from pykafkad.server.injected_fault import Fault
    from pykafkad.server.wiring import Process


class _SharedDispatcher(FaultDispatcher):
    """Serves the requests of other brokers as ever."""

    __slots__ = ()

    _faults: _SharedFaults

    def _read(self, view: memoryview, start: int, end: int) -> Asked | None:
        asked = super()._read(view, start, end)
        return None if asked is None or not self._faults_for(asked) else asked

    def _faults_for(self, asked: Asked) -> list[Fault]:
        every = self._faults.active
        if asked.client_id not in self._faults.names_of_nodes:
            return every
        return [each for each in every if each.client_id == asked.client_id]


class _SharedFaults(FaultInjection):
    """The faults of one broker, which end everywhere."""

    __slots__ = ("_all", "names_of_nodes")

    dispatcher_class = _SharedDispatcher

    def __init__(self, broker: Broker, every: ClusterFaults) -> None:
        super().__init__(broker)
        self._all = every
        self.names_of_nodes = every.names_of_nodes
        self.tell = lambda *told: every.tell(*told)

    def has_fired(self, fault: Fault) -> None:
        """A request met a fault, which ends with its last time at every broker."""
        is_last = fault.left == 1
        super().has_fired(fault)
        if is_last:
            self._all.remove(fault)


class ClusterFaults(FaultInjection):
    """The faults of several brokers."""

    __slots__ = ("_brokers", "_node_ids", "_of_brokers", "names_of_nodes")

    def __init__(self, process: Process) -> None:
        self._node_ids = process.node_ids
        self._brokers: Callable[[], list[Broker]] = lambda: process.brokers
        self._of_brokers: dict[Broker, _SharedFaults] = {}
        self.names_of_nodes = frozenset(name for each in self._node_ids for name in names_of_node(each))
        """The client ids of what the brokers ask of each other."""
        self.active = []
        self.tell: Callable[[Fault, str, str], None] = lambda *_: None
        self.follow()

    def follow(self) -> None:
        """A broker that has started meets them too."""
        now = dict.fromkeys(self._brokers())
        self._of_brokers = {each: faults for each, faults in self._of_brokers.items() if each in now}
        for broker in now:
            if broker not in self._of_brokers:
                faults = self._of_brokers[broker] = _SharedFaults(broker, self)
                for fault in self.active:
                    self._add_at(broker, faults, fault)

    def add(self, fault: Fault) -> None:
        """Set a fault at every broker, or at its own. Raises ValueError as that of one broker."""
        self._check(fault, self._node_ids)
        for broker, faults in self._of_brokers.items():
            self._add_at(broker, faults, fault)
        self.active = [*self.active, fault]

    def _add_at(self, broker: Broker, faults: _SharedFaults, fault: Fault) -> None:
        if fault.broker in (None, broker.node_id):
            faults.add(fault)

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
