"""Several brokers of one process under a quorum of several controllers.

Each of them is what a process of that role is (`wiring.Process`, `broker_process.BrokerProcess`): it has directories,
listeners and a view of the metadata of its own, and reaches the others by connections alone. What they share is the
loop, and with it one processor core. Each of them may stop, or be killed, and start again while the others serve
(`quorum_members.py`)."""

from __future__ import annotations

from functools import partial

from pykafkad.errors import ConfigError
from pykafkad.server.broker_lifecycle import GONE, LEAVING, SHUTDOWN_SECONDS
from pykafkad.server.cluster import DOWN, KILLED, SERVING
from pykafkad.server.quorum_members import START_FAILURES, BrokerPlace, ControllerPlace, checked
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime, RuntimeNode
from pykafkad.server.wiring import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.disk import Disk
    from pykafkad.metadata.brokers import Broker as Registered
    from pykafkad.server.broker import Broker
    from pykafkad.server.broker_process import BrokerProcess
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.data_snapshots import DataSnapshots
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.quorum_snapshots import QuorumSnapshots
    from pykafkad.server.raft_controller import RaftController

    Nodes = Sequence[tuple[Settings, list[Listener]]]


class _Leaving(RuntimeNode):
    """Has all brokers leave at the same time, before anything else ends: each waits for what the heartbeats of the
    others tell, and after an election the way to the active controller is a new connection."""

    def __init__(self, cluster: QuorumCluster) -> None:
        self._cluster = cluster

    def stop_listening(self) -> None:
        """The process stops."""
        cluster, runtime = self._cluster, self._cluster.runtime
        lifecycles = [each.process.lifecycle for each in cluster.broker_places.values()]
        if cluster.goes_back:
            # Nothing that the controllers decided now would be there afterwards.
            for each in lifecycles:
                each.close()
            return
        for each in lifecycles:
            # One that leaves already goes on with it: another call would end that.
            if each.state not in (LEAVING, GONE):
                each.leave()
        deadline = runtime.clock.now() + SHUTDOWN_SECONDS
        # The loop has ended; its turns go on here.
        while cluster.can_decide and runtime.clock.now() < deadline and any(each.state != GONE for each in lifecycles):
            runtime.reactor.turn(runtime.seconds_to_next_turn(deadline))
        for each in lifecycles:
            each.close()


class _Audits:
    """The audit of each node."""

    def __init__(self, cluster: QuorumCluster) -> None:
        self._cluster = cluster

    def close(self) -> None:
        """Nothing more is written."""
        for each in self._cluster.places:
            if each.process.audit is not None:
                each.process.audit.close()


class QuorumCluster(Process):
    """`broker`, and what belongs to it, is that of a broker that serves, which is asked where one is enough."""

    __slots__ = ("_leaving", "_snapshots", "broker_places", "controller_places")

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
        self.controller_places = {each.node_id: ControllerPlace(runtime, each, where) for each, where in controllers}
        self.broker_places = {each.node_id: BrokerPlace(runtime, each, where) for each, where in brokers}
        self._leaving = _Leaving(self)
        self._snapshots: QuorumSnapshots | None = None
        self.audit = _Audits(self)
        for place in self.places:
            place.make()
        for controller_place in self.controller_places.values():
            controller_place.controller.has_ended = self.has_ended
        self._order()
        self._take(next(iter(self.broker_places.values())))
        for broker_place in self.broker_places.values():
            self._equip(broker_place)

    @property
    def places(self) -> list[ControllerPlace | BrokerPlace]:
        """All of them, the controllers first."""
        return [*self.controller_places.values(), *self.broker_places.values()]

    @property
    def controllers(self) -> list[Process]:
        """What is in the places of controllers now."""
        return [each.process for each in self.controller_places.values()]

    @property
    def members(self) -> dict[int, BrokerProcess]:
        """What is in the places of brokers now, by their node ids."""
        return {node_id: each.process for node_id, each in self.broker_places.items()}

    @property
    def brokers(self) -> list[Broker]:
        """Those that serve."""
        return [each.broker for each in self.broker_places.values() if each.serves]

    @property
    def can_decide(self) -> bool:
        """Whether so many controllers serve that one of them is active, or will be."""
        serving = [each for each in self.controller_places.values() if each.state == SERVING]
        return 2 * len(serving) > len(self.controller_places)

    @property
    def active_controller(self) -> RaftController | None:
        """The controller that decides; None while there is none."""
        found = [each.controller for each in self.controller_places.values() if each.is_active]
        # One that has not heard of its successor yet has an older epoch.
        return max(found, key=lambda each: each.quorum.epoch, default=None)

    @property
    def node_ids(self) -> list[int]:
        """Those of its brokers, also of the ones that are down."""
        return list(self.broker_places)

    @property
    def deciding_controller(self) -> ControllerNode | None:
        """As `active_controller`."""
        return self.active_controller

    def is_in_step(self) -> bool:
        """Whether every broker that serves knows what the active controller has decided."""
        active = self.active_controller
        return active is not None and all(each.image.offset >= active.image.offset for each in self.brokers)

    def has_settled(self) -> bool:
        """Whether clients are led to all brokers that are up, which know what the active controller has decided."""
        active = self.active_controller
        known = {} if active is None else active.image.brokers
        return self.is_in_step() and all(
            each.node_id in known and not known[each.node_id].fenced for each in self.brokers
        )

    @property
    def listeners(self) -> list[Listener]:
        """Where the brokers serve."""
        return [listener for each in self.broker_places.values() for listener in each.listeners]

    @property
    def nodes(self) -> tuple[Nodes, Nodes]:
        """The settings and the listeners of the controllers and of the brokers, which know their ports by now: for the
        process that takes the place of this one."""
        controllers, brokers = (
            [(each.settings, each.listeners) for each in places.values()]
            for places in (self.controller_places, self.broker_places)
        )
        return controllers, brokers

    def has_ended(self, registered: Registered) -> bool:
        """Whether a broker's registration is that of an earlier life of a broker of this process."""
        place = self.broker_places.get(registered.id)
        return place is not None and registered.incarnation_id != place.process.lifecycle.incarnation_id

    def open_data_snapshots(self) -> QuorumSnapshots:
        """Those of all brokers and controllers."""
        if self._snapshots is None:
            from pykafkad.server.quorum_snapshots import QuorumSnapshots

            self._snapshots = QuorumSnapshots(self)
        return self._snapshots

    @property
    def used_snapshots(self) -> DataSnapshots | None:
        return self._snapshots

    @property
    def goes_back(self) -> bool:
        """Whether the process stops for the way back to a snapshot."""
        return self._snapshots is not None and self._snapshots.restore_to is not None

    @property
    def snapshot_paths(self) -> list[str]:
        return [path for each in self.places for path in each.settings.log_directories]

    def _order(self) -> None:
        """Turns go from the controllers to the brokers, whatever was started last; in the opposite order the nodes
        resign, at the stop of the process."""
        self.runtime.nodes = [*(part for each in self.places for part in each.parts), self._leaving]

    def _equip(self, place: BrokerPlace) -> None:
        place.broker.tells_topics = place.broker is self.broker
        place.broker.services.open_data_snapshots = self.open_data_snapshots

    def _take(self, place: BrokerPlace) -> None:
        process = place.process
        self.broker, self.controller = process.broker, process.controller
        self.directories, self.housekeeping = process.directories, process.housekeeping

    def _choose_broker(self) -> None:
        """One of those that serve stands for all where there is one to be asked."""
        serving = [each for each in self.broker_places.values() if each.serves]
        if serving and self.broker not in [each.broker for each in serving]:
            self._take(serving[0])
        for each in serving:
            each.broker.tells_topics = each.broker is self.broker

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving, of all brokers. Raises ConfigError, StorageFailure or OSError."""
        self.begin(stale_file=stale_file)
        self.turn_until(lambda: len(self.brokers) == len(self.broker_places))

    def turn_until(self, is_there: Callable[[], bool]) -> None:
        """Have turns until something is there, while nobody else gives them. Raises ConfigError if the process stops
        before that."""
        runtime = self.runtime
        while not is_there():
            if runtime.stopping is not None:
                raise ConfigError(runtime.stopping)
            runtime.reactor.turn(runtime.seconds_to_next_turn(float("inf")))

    def begin(self, *, stale_file: str | None = None) -> None:
        """The same without waiting until the brokers serve."""
        for controller in self.controller_places.values():
            controller.start(stale_file)
        for each in self.broker_places.values():
            each.begin()

    # --- one node -----------------------------------------------------------------------------------------------------

    def stop_broker(self, node_id: int, then: Callable[[], object]) -> None:
        """A controlled shutdown; `then()` is called when the broker's directories are closed. Raises ValueError if it
        does not serve, or if no controller could let it go."""
        place = self._broker(node_id, SERVING)
        if self.active_controller is None:
            raise ValueError(
                f"broker {node_id} cannot leave in a controlled way: no controller is active; start one, or kill it"
            )
        place.stop(partial(self._ended, then))

    def _ended(self, then: Callable[[], object]) -> None:
        self._choose_broker()
        then()

    def kill_broker(self, node_id: int) -> None:
        """End a broker as a kill ends a process. Raises ValueError if it does not serve."""
        self._broker(node_id, SERVING).kill()
        self._choose_broker()

    def start_broker(self, node_id: int, then: Callable[[], object]) -> None:
        """Start a broker that was stopped or killed; `then()` is called when it serves. Raises ValueError if it is not
        down, or if no controller could register it, ConfigError, StorageFailure or OSError."""
        place = self._broker(node_id, DOWN, KILLED)
        if self.active_controller is None:
            raise ValueError(f"broker {node_id} cannot start: no controller is active that could register it")
        place.make()
        self._order()
        self._equip(place)
        try:
            place.begin(partial(self._ended, then))
        except START_FAILURES:
            place.undo()
            raise

    def _broker(self, node_id: int, *states: str) -> BrokerPlace:
        place = checked(self.broker_places.get(node_id), node_id, list(self.broker_places), "broker", *states)
        assert isinstance(place, BrokerPlace)
        return place

    def stop_controller(self, node_id: int, then: Callable[[], object]) -> None:
        """Stop a controller; if it is active, another takes over at once, where a majority is left. `then()` is called
        when its directory is closed. Raises ValueError if it does not serve."""
        self._controller(node_id, SERVING).stop(then)

    def kill_controller(self, node_id: int) -> None:
        """End a controller as a kill ends a process. Raises ValueError if it does not serve."""
        self._controller(node_id, SERVING).kill()

    def start_controller(self, node_id: int) -> None:
        """Start a controller that was stopped or killed. Raises ValueError if it is not down, ConfigError,
        StorageFailure or OSError."""
        place = self._controller(node_id, DOWN, KILLED)
        place.make()
        place.controller.has_ended = self.has_ended
        self._order()
        try:
            place.start()
        except START_FAILURES:
            place.undo()
            raise

    def _controller(self, node_id: int, *states: str) -> ControllerPlace:
        known = list(self.controller_places)
        place = checked(self.controller_places.get(node_id), node_id, known, "controller", *states)
        assert isinstance(place, ControllerPlace)
        return place
