"""Several brokers of one process under a quorum of several controllers.

Each of them is what a process of that role is (`wiring.Process`, `broker_process.BrokerProcess`): it has directories,
listeners and a view of the metadata of its own, and reaches the others by connections alone. What they share is the
loop, and with it one processor core."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.server.broker_lifecycle import RUNNING
from pykafkad.server.broker_process import BrokerProcess
from pykafkad.server.cluster import no_snapshots
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime, RuntimeNode
from pykafkad.server.wiring import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.disk import Disk
    from pykafkad.server.broker import Broker
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs

    Nodes = Sequence[tuple[Settings, list[Listener]]]


class _Leaving(RuntimeNode):
    """Has all brokers leave at the same time: each waits for what the heartbeats of the others tell."""

    def __init__(self, members: Iterable[BrokerProcess]) -> None:
        self._members = members

    def resign(self) -> None:
        """The process stops."""
        for each in self._members:
            each.lifecycle.leave()


class _Audits:
    """The audit of each node."""

    def __init__(self, nodes: Sequence[Process | BrokerProcess]) -> None:
        self._nodes = nodes

    def close(self) -> None:
        """Nothing more is written."""
        for each in self._nodes:
            if each.audit is not None:
                each.audit.close()


class QuorumCluster(Process):
    """`broker`, and what belongs to it, is that of the first broker, which is asked where one is enough."""

    __slots__ = ("controllers", "members")

    is_quorum = True

    def __init__(
        self,
        controllers: Nodes,
        brokers: Nodes,
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        random: Random | None = None,
        reactor: Callable[[Runtime], Reactor] = Reactor,
        logs: Logs | None = None,
    ) -> None:
        """The settings (`cluster_settings.of_quorum`) and the listeners of each."""
        self._begin(clock, disk, random, reactor, logs)
        runtime = self.runtime
        self.controllers = [
            Process(settings, listening, settings.log_directories, runtime=runtime)
            for settings, listening in controllers
        ]
        self.members = {
            settings.node_id: BrokerProcess(settings, listening, settings.log_directories, runtime=runtime)
            for settings, listening in brokers
        }
        first = next(iter(self.members.values()))
        self.broker, self.controller = first.broker, first.controller
        self.audit = _Audits([*self.controllers, *self.members.values()])
        self.directories, self.housekeeping = first.directories, first.housekeeping
        # The last is the first to resign.
        runtime.nodes.append(_Leaving(self.members.values()))
        for each in self.members.values():
            assert each.broker is not None
            each.broker.services.open_data_snapshots = no_snapshots
            each.broker.tells_topics = each is first

    @property
    def brokers(self) -> list[Broker]:
        """Those that serve."""
        return [
            each.broker for each in self.members.values() if each.broker is not None and each.lifecycle.state == RUNNING
        ]

    @property
    def listeners(self) -> list[Listener]:
        """Where the brokers serve."""
        return [listener for each in self.members.values() for listener in each.listeners]

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving, of all brokers. Raises ConfigError, StorageFailure or OSError."""
        self.begin(stale_file=stale_file)
        runtime = self.runtime
        while len(self.brokers) < len(self.members):
            if runtime.stopping is not None:
                raise ConfigError(runtime.stopping)
            runtime.reactor.turn(runtime.seconds_to_next_turn(float("inf")))

    def begin(self, *, stale_file: str | None = None) -> None:
        """The same without waiting until the brokers serve."""
        for controller in self.controllers:
            controller.start(stale_file=stale_file)
        for each in self.members.values():
            each.begin()
