"""The places of brokers and controllers that share a process: each stops, is killed and starts again by itself.

What is in a place is a process of its role (`wiring.Process`, `broker_process.BrokerProcess`), made anew by each start.
Its end is that of a process: in a controlled way first its work ends, then its connections, then its directories; a
kill leaves everything as it is. What the nodes share (loop, clock, threads) goes on."""

from __future__ import annotations

from functools import partial

from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.raft.roles import Resigned
from pykafkad.server.broker_lifecycle import RUNNING, SHUTDOWN_SECONDS
from pykafkad.server.broker_process import BrokerProcess
from pykafkad.server.cluster import DOWN, KILLED, SERVING, STARTING, STOPPING
from pykafkad.server.raft_controller import RaftController
from pykafkad.server.wiring import BROKER, CONTROLLER, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.config import Settings
    from pykafkad.server.broker import Broker
    from pykafkad.server.listeners import Listener
    from pykafkad.server.runtime import Runtime, RuntimeNode


RESIGN_SECONDS = 1.0
"""For so long a controller that leads no more waits until the others know. Some of them may be down."""

_PAUSE_SECONDS = 0.005


class Place:
    """The place of one node. `process` is what is there now, `parts` are its parts that have turns."""

    role = ""
    process: Process

    def __init__(self, runtime: Runtime, settings: Settings, listening: list[Listener]) -> None:
        self.settings = settings
        self.listeners = listening
        self.state = DOWN
        self.parts: list[RuntimeNode] = []
        self._runtime = runtime
        self._then: Callable[[], object] | None = None

    @property
    def node_id(self) -> int:
        """That of whoever is in this place."""
        return self.settings.node_id

    def make(self) -> None:
        """A process of this role, which has turns from now on."""
        raise NotImplementedError

    def _made(self, kind: type[Process]) -> Process:
        nodes = self._runtime.nodes
        before = len(nodes)
        made = kind(self.settings, self.listeners, self.settings.log_directories, runtime=self._runtime)
        self.parts = nodes[before:]
        return made

    def _finish(self, state: str) -> None:
        self.state = state
        then, self._then = self._then, None
        if then is not None:
            then()

    def undo(self) -> None:
        """A start has failed: let go of what it has taken."""
        self.abandon()
        self.state = DOWN

    # --- the way down

    def stop(self, then: Callable[[], object]) -> None:
        """Leave the cluster in a controlled way; `then()` when the directories are closed."""
        self.state, self._then = STOPPING, then

    def _end_work(self) -> None:
        """Others do its work by now: answer who waits."""
        parts = self.parts[::-1]
        for each in parts:
            each.stop_listening()
        # Twice: what one part finishes may be work for another.
        for _ in range(2):
            for each in self.parts:
                each.finish_work()
        for each in parts:
            each.resign()
        # One more turn, in which the last answers leave.
        self._runtime.call_later(_PAUSE_SECONDS, self._close)

    def _close(self) -> None:
        parts = self.parts[::-1]
        for each in parts:
            each.cancel_work()
        # Jobs of this node may be under way.
        self._runtime.offload.close()
        self._close_connections()
        self._leave()
        for each in parts:
            try:
                each.close()
            except StorageFailure as failure:
                self._runtime.logs.error("storage", "directory-offline", node=self.node_id, reason=failure)
        self._close_audit()
        self._runtime.logs.info("server", f"{self.role}-stopped", node=self.node_id)
        self._finish(DOWN)

    def kill(self) -> None:
        """End as a process does that is killed: nothing more is written, and nobody is told."""
        self.state = KILLED
        self.abandon()
        self._runtime.logs.warning("server", f"{self.role}-killed", node=self.node_id)

    def abandon(self) -> None:
        """Leave everything as it is."""
        self._runtime.offload.close()
        self._close_connections()
        self._abandon_work()
        self._leave()
        self.process.housekeeping.close()
        if hasattr(self.process.directories, "metadata"):
            # They are open.
            self.process.directories.abandon()
        self._close_audit()

    def _close_connections(self) -> None:
        raise NotImplementedError

    def _abandon_work(self) -> None:
        raise NotImplementedError

    def _close_audit(self) -> None:
        audit, self.process.audit = self.process.audit, None
        if audit is not None:
            audit.close()

    def _leave(self) -> None:
        # Another list: that of before may be walked through at this moment.
        gone = set(map(id, self.parts))
        self._runtime.nodes = [each for each in self._runtime.nodes if id(each) not in gone]
        self.parts = []


class ControllerPlace(Place):
    """That of a controller."""

    role = CONTROLLER

    def make(self) -> None:
        """See `Place.make`."""
        self.process = self._made(Process)

    @property
    def controller(self) -> RaftController:
        """The one that is there now."""
        found = self.process.controller
        assert isinstance(found, RaftController), "several controllers are a quorum"
        return found

    @property
    def is_active(self) -> bool:
        """Whether it decides."""
        return self.state == SERVING and self.controller.metadata_log.is_active

    def start(self, stale_file: str | None = None) -> None:
        """Take part in the quorum. Raises ConfigError, StorageFailure or OSError."""
        self.process.start(stale_file=stale_file)
        self.state = SERVING

    def stop(self, then: Callable[[], object]) -> None:
        """See `Place.stop`. Where it leads, it says that it leads no more, and another takes over at once."""
        super().stop(then)
        self.controller.resign()
        self._wait_until_told(self._runtime.now + RESIGN_SECONDS)

    def _wait_until_told(self, deadline: float) -> None:
        """End when the others know that it leads no more."""
        role = self.controller.quorum.role
        if type(role) is Resigned and role.unacknowledged and self._runtime.now < deadline:
            self._runtime.call_later(_PAUSE_SECONDS, partial(self._wait_until_told, deadline))
        else:
            self._end_work()

    def _close_connections(self) -> None:
        # A controller that ends does not look whose connection ends.
        self.controller.finish_work()
        self.controller.socket_server.close()

    def _abandon_work(self) -> None:
        controller = self.controller
        controller.serving = False
        if hasattr(controller, "metadata_log"):
            # It has started.
            controller.metadata_log.abandon()


class BrokerPlace(Place):
    """That of a broker."""

    role = BROKER
    process: BrokerProcess

    def make(self) -> None:
        """See `Place.make`."""
        made = self._made(BrokerProcess)
        assert isinstance(made, BrokerProcess)
        self.process = made

    @property
    def broker(self) -> Broker:
        """The one that is there now."""
        broker = self.process.broker
        assert broker is not None
        return broker

    @property
    def serves(self) -> bool:
        """Whether clients are led to it."""
        return self.state in (STARTING, SERVING) and self.process.lifecycle.state == RUNNING

    def begin(self, then: Callable[[], object] | None = None, stale_file: str | None = None) -> None:
        """Start; `then()` when it serves. Raises ConfigError, StorageFailure or OSError."""
        self.state, self._then = STARTING, then
        self.process.served = partial(self._finish, SERVING)
        self.process.begin(stale_file=stale_file)

    def stop(self, then: Callable[[], object]) -> None:
        """See `Place.stop`. The controller moves first what it leads."""
        super().stop(then)
        lifecycle = self.process.lifecycle
        lifecycle.ended = lambda: self._runtime.call_later(0, self._end_work)
        lifecycle.leave()
        self._runtime.call_later(SHUTDOWN_SECONDS, partial(self._give_up, self.process))

    def _give_up(self, process: BrokerProcess) -> None:
        """No controller has let it go in this time."""
        process.lifecycle.close()

    def _close_connections(self) -> None:
        self.broker.socket_server.close()

    def _abandon_work(self) -> None:
        broker, process = self.broker, self.process
        broker.serving = False
        process.lifecycle.close()
        broker.commits.dirty.clear()
        broker.abandon()
        process.source.abandon()
        process.lifecycle.channel.close()


def checked(place: Place | None, node_id: int, known: list[int], role: str, *states: str) -> Place:
    """The place, if it is in one of these states. Raises ValueError."""
    if place is None:
        raise ValueError(f"{role} {node_id}: there are {', '.join(map(str, known))}")
    if place.state not in states:
        raise ValueError(f"{role} {node_id} is {place.state}, not {' or '.join(states)}")
    return place


START_FAILURES = (OSError, ConfigError, StorageFailure)
"""What stands in the way of a start."""
