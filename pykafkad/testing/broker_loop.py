"""What other threads have a broker's loop do, between two of its turns: reset it, set faults, move its clock, trace it.

Everybody talks to the loop through `call`. A job that a loop has not done by its end is done by that of the broker that
takes its place, after the way back to a snapshot, say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pykafkad import errors
from pykafkad.clock import AdvancingClock
from pykafkad.metadata import events
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.server.broker import Broker
from pykafkad.server.fault_injection import FaultInjection
from pykafkad.server.injected_fault import Fault
from pykafkad.server.wiring import Process
from pykafkad.testing import topics as new_topics
from pykafkad.wire import messages

if TYPE_CHECKING:
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.exchanges import Exchange
    from pykafkad.server.quorum_cluster import QuorumCluster
    from pykafkad.server.timeline import Timeline
    from pykafkad.server.trace import WireTrace

Result = TypeVar("Result")

CALL_SECONDS = 60.0
"""What the loop is asked to do takes milliseconds; after so long it is stuck."""

CLOCK_STEPS = 500
"""In at most so many steps the clock is moved, however far."""

_TURNS_PER_STEP = 6
"""With several controllers so many turns follow each step of the clock: nodes that ask each other need some for a
question and its answer."""

_PAUSE_SECONDS = 0.005


class BrokerEnded(Exception):
    """The broker does not run (any more)."""


class BrokerLoop:
    """The loop of one broker, and of those that take its place, as other threads see it."""

    def __init__(self, clock: AdvancingClock) -> None:
        """`clock` is the broker's."""
        self.bootstrap = ""
        self.has_several = False
        """Whether there are several brokers, each of which is asked for what is its own."""
        self.clock = clock
        self._faults: FaultInjection | None = None
        self._known_faults: dict[int, Fault] = {}
        # Never used again: somebody may still ask for a fault that a reset has taken away.
        self._next_fault = 0
        self._trace: WireTrace | None = None
        self._timeline: Timeline | None = None
        self._failure = ""
        self._thread: threading.Thread | None = None
        # What was asked of the loop and is not done.
        self._waiting: list[_Job] = []
        self._is_over = False

    @property
    def is_running(self) -> bool:
        """Whether the loop turns."""
        raise NotImplementedError

    def take(self, process: Process) -> None:
        """From now on this is the broker, which has its predecessor's trace and none of its faults."""
        assert process.broker is not None
        self._process = process
        self._broker: Broker = process.broker
        self._faults = None
        self._known_faults.clear()
        if self._trace is not None:
            was_on = self._trace.is_on
            # One that somebody else has begun for this broker goes on with what there is, too.
            runtime = process.runtime
            self._trace = runtime.trace or type(self._trace)(runtime, process.brokers, self._trace)
            if was_on:
                self._trace.start()
        self._listen()
        # Other threads wait for the interpreter while a thread looks for sockets again and again.
        process.runtime.reactor.may_look = False
        self._is_over = False
        for each in list(self._waiting):
            process.runtime.offload.post(each.run)

    def _listen(self) -> None:
        if self._timeline is not None:
            process = self._process
            node_logs = (process.runtime.logs, process.controller.logs, *(each.logs for each in process.brokers))
            self._timeline.listen({id(each): each for each in node_logs}.values())

    def _brokers_changed(self) -> None:
        """On the loop: one of several brokers has started; it has the faults and the trace of the others."""
        if self._faults is not None:
            self._faults.follow()
        if self._trace is not None:
            self._trace.follow(self._process.brokers)
        self._listen()

    def remember_settings(self) -> None:
        """The dynamic settings of now are those that a reset goes back to."""
        self._first_settings = self._process.controller.image.all_configs()

    # --- on the loop --------------------------------------------------------------------------------------------------

    def call(self, job: Callable[[], Result]) -> Result:
        """What `job()` returns or raises on the broker's loop."""
        if self._thread is threading.current_thread():
            return job()
        waiting = _Job(job)
        # First in the list: what begins when the loop ends is either found there or sees the end.
        self._waiting.append(waiting)
        try:
            if self._is_over or not self.is_running:
                raise BrokerEnded(f"the broker on {self.bootstrap} does not run in this process{self._failure}")
            self._process.runtime.offload.post(waiting.run)
            self._wait(waiting.done)
        finally:
            self._waiting.remove(waiting)
        if waiting.error is not None:
            raise waiting.error
        return waiting.result  # type: ignore[no-any-return]

    def abandon(self) -> None:
        """The loop has ended: whatever waits for it hears of that."""
        self._is_over = True
        for each in list(self._waiting):
            each.fail(BrokerEnded(f"the broker on {self.bootstrap} has ended"))

    def _wait(self, done: threading.Event) -> None:
        if not done.wait(CALL_SECONDS):
            raise BrokerEnded(f"the broker on {self.bootstrap} did not answer for {CALL_SECONDS:g} s")

    def reset(self, topics: dict[str, tuple[int, dict[str, str]]]) -> None:
        """Forget topics with their records, groups, transactions and dynamic settings, and release all faults.
        Connections stay, and what waits is answered as when topics are deleted and coordinators move. `topics` (see
        `testing.topics.wanted`) are created before any client can ask for one of them. Raises Refused for one that
        could not be created."""
        tokens: list[Token] = []

        def submit(event: Any) -> None:
            tokens.append(event.token)
            self._deciding_controller().submit(event)

        def forget() -> None:
            image = self._deciding_controller().image
            if self._faults is not None:
                self._faults.clear()
            known: dict[bytes, str | None] = {topic.id: topic.name for topic in image.topics.values()}
            if known:
                submit(events.DeleteTopics(Token(), known))
            changes: list[tuple[int, str, Any]] = [
                (kind, name, self._first_settings.get((kind, name), {}))
                for (kind, name), values in image.all_configs().items()
                if kind != TYPE_TOPIC and values != self._first_settings.get((kind, name))
            ]
            if changes:
                submit(events.AlterConfigs(Token(), changes, incremental=False))
            if topics:
                submit(events.CreateTopics(Token(), new_topics.rows(topics)))

        self.call(forget)
        self._known_faults.clear()
        for token in tokens:
            self._wait(token.done)
            token.check()
        self.wait_until_known()

    def _deciding_controller(self) -> ControllerNode:
        """Who decides what changes the metadata. Raises BrokerEnded while there is nobody."""
        deciding = self._process.deciding_controller
        if deciding is None:
            raise BrokerEnded("no controller is active; start one, and wait for it")
        return deciding

    def stop_broker(self, node_id: int) -> None:
        """Only one of several brokers can be stopped. Raises RuntimeError."""
        raise RuntimeError(f"there is one broker, which goes with close() and restart(), not broker {node_id}")

    kill_broker = start_broker = stop_broker

    def wait_until_known(self) -> None:
        """Return when every broker knows what was decided, or nobody can decide anything. With one controller all know
        it at once."""
        if self._process.is_quorum:
            self._wait_until(lambda process: not process.can_decide or process.is_in_step())

    def _wait_until(self, is_there: Callable[[QuorumCluster], bool]) -> None:
        token = Token()

        def look() -> None:
            # The process of then: another may have taken its place.
            if not self._process.is_quorum or is_there(self._process):  # type: ignore[arg-type]
                token.done.set()
            else:
                self._process.runtime.call_later(_PAUSE_SECONDS, look)

        self.call(look)
        self._wait(token.done)

    def stop_controller(self, node_id: int) -> None:
        """Only one of several controllers can be stopped. Raises RuntimeError."""
        raise RuntimeError(f"there is one controller, which goes with close() and restart(), not controller {node_id}")

    kill_controller = start_controller = stop_controller

    def active_controller(self) -> int | None:
        """The node id of the controller that decides; None while there is none."""

        def look() -> int | None:
            deciding = self._process.deciding_controller
            return None if deciding is None else deciding.node_id

        return self.call(look)

    # --- faults -------------------------------------------------------------------------------------------------------

    def add_fault(self, **fields: Any) -> int:
        """Set a fault with the fields of `Fault`; its number."""
        versions = fields.pop("versions", None)
        fault = Fault(
            fields.pop("kind"),
            frozenset(fields.pop("keys")),
            versions=None if versions is None else range(versions[0], versions[1] + 1),
            **fields,
        )

        def add() -> None:
            if self._faults is None:
                self._faults = self._inject()
                if self._timeline is not None:
                    self._faults.tell = self._fault_fired
            self._faults.add(fault)

        self.call(add)
        number = self._next_fault
        self._next_fault += 1
        self._known_faults[number] = fault
        return number

    def _inject(self) -> FaultInjection:
        if len(self._process.node_ids) == 1:
            return FaultInjection(self._broker)
        from pykafkad.testing.cluster_faults import ClusterFaults

        return ClusterFaults(self._process)

    def release_fault(self, number: int) -> None:
        """End a fault; fine if it has ended."""
        fault = self._known_faults.get(number)
        if fault is not None:
            self.call(lambda: None if self._faults is None else self._faults.remove(fault))

    def fault_counts(self, number: int) -> tuple[int, int]:
        """How many requests met a fault, and how many matched but were let through by its probability."""
        fault = self._known_faults.get(number)
        return (0, 0) if fault is None else (fault.fired, fault.passed)

    # --- the clock ----------------------------------------------------------------------------------------------------

    def advance_clock(self, seconds: float) -> float:
        """Move the broker's clock forward, from one thing that is due to the next; how far it is ahead of real time.
        Connections are no longer idle than they really were. Who of several nodes has lost its session or its lead by a
        large step, as on a machine that slept, has it again then."""
        start = self.call(lambda: self.clock.ahead_seconds)
        least = seconds / CLOCK_STEPS

        def step() -> bool:
            left = start + seconds - self.clock.ahead_seconds
            due_at = self._process.runtime.next_turn_at()
            until_due = left if due_at is None else due_at - self.clock.now()
            moved = left if left <= least else min(left, max(until_due, least))
            self.clock.ahead_seconds += moved
            for broker in self._process.brokers:
                for connection in broker.socket_server.connections():
                    connection.transport.last_active += moved
            return moved < left

        while self.call(step):
            self._clock_moved()
        # Timers fire in the turn after that in which the clock moved, and what follows from them in the next.
        for _ in range(2):
            self.call(lambda: None)
        ahead = self.clock.ahead_seconds
        if self._process.is_quorum:
            self._wait_until(lambda process: not process.can_decide or process.has_settled())
        return ahead

    def _clock_moved(self) -> None:
        """The clock has moved a step, and more are to come."""
        for _ in range(_TURNS_PER_STEP if self._process.is_quorum else 0):
            self.call(lambda: None)

    # --- the trace ----------------------------------------------------------------------------------------------------

    def start_trace(self, frame_bytes: int | None = None) -> None:
        """Record requests and answers from now on, of each at most so many bytes; fine if that is so already."""

        def record() -> None:
            self._record()
            if self._trace is not None and frame_bytes is not None:
                self._trace.frame_bytes = frame_bytes

        self.call(record)

    def _record(self) -> None:
        from pykafkad.server.trace import WireTrace

        if self._trace is None:
            runtime = self._process.runtime
            self._trace = runtime.trace or WireTrace(runtime, self._process.brokers)
        self._trace.start()

    def stop_trace(self) -> None:
        """Record no more."""
        if self._trace is not None:
            self.call(self._trace.stop)

    def clear_trace(self) -> None:
        """Forget what was recorded."""
        if self._trace is not None:
            self.call(self._trace.clear)

    def traced(self, limit: int | None = None, after: int = 0) -> tuple[list[Exchange], int, int]:
        """What was recorded, oldest first; how many older ones are left out by a limit, or as their numbers are not
        larger than `after`; and the number of the first."""
        trace = self._trace
        if trace is None:
            return [], 0, 1

        def look() -> tuple[list[Exchange], int, int]:
            found = trace.exchanges(limit, after)
            left_out = trace.size - len(found)
            return found, left_out, trace.first + left_out

        return self.call(look)

    # --- for the page of a control API --------------------------------------------------------------------------------

    def keep_timeline(self) -> None:
        """Remember what happens from now on, also in brokers that take this one's place. To be called before the
        start."""
        from pykafkad.server.timeline import Timeline

        self._timeline = Timeline(self.clock.now_ms)

    def note(self, event: str, fields: dict[str, object]) -> None:
        """Something that was done to the broker happened, too."""
        if self._timeline is not None:
            self._timeline.add("info", "control", event, fields)

    def _fault_fired(self, fault: Fault, api: str, client_id: str) -> None:
        assert self._timeline is not None
        self._timeline.add("warning", "faults", "fault-fired", {"kind": fault.kind, "api": api, "client_id": client_id})

    def look(self, lists: list[str], topic: str | None = None, events_after: int | None = None) -> dict[str, Any]:
        """What there is, of the `overview.LISTS`; a `topic`; and what happened since the event of that number."""
        from pykafkad.server import overview

        def read() -> dict[str, Any]:
            found = {name: overview.LISTS[name](self._process) for name in lists}
            return found if topic is None else {**found, "topic": overview.topic(self._process, topic)}

        found = self.call(read)
        if events_after is not None:
            found["events"] = [] if self._timeline is None else self._timeline.after(events_after)
        return found

    # --- metrics ------------------------------------------------------------------------------------------------------

    def metrics(self) -> str:
        """Counters and gauges as Prometheus' text (`pykafkad/server/kafka_metrics.py`)."""
        from pykafkad.server import kafka_metrics

        return self.call(lambda: kafka_metrics.text(self._process))


class _Job:
    """What the loop is asked to do, and what came of it."""

    __slots__ = ("_job", "done", "error", "result")

    def __init__(self, job: Callable[[], Any]) -> None:
        self._job = job
        self.done = threading.Event()
        self.result: Any = None
        self.error: Exception | None = None

    def run(self, _: object) -> None:
        """On the loop: do it, unless the one before has."""
        if self.done.is_set():
            return
        try:
            self.result = self._job()
        except Exception as error:
            self.fail(error)
        self.done.set()

    def fail(self, error: Exception) -> None:
        """It will not be done."""
        if not self.done.is_set():
            self.error = error
            self.done.set()


class Token:
    """Takes the controller's answer to something that was submitted."""

    __slots__ = ("done", "message")

    def __init__(self) -> None:
        self.done = threading.Event()

    def deliver(self, message: Any) -> None:
        """Take it."""
        self.message = message
        self.done.set()

    def check(self) -> None:
        """Raises BrokerEnded for an error, and Refused for a topic that could not be created."""
        if isinstance(self.message, messages.CreateTopicsResponse):
            new_topics.check_created(self.message)
            return
        for row in self.message.responses:
            if row.error_code:
                raise BrokerEnded(f"reset: {errors.name(row.error_code)}: {row.error_message}")
