"""A broker on a thread of this process.

Everybody else talks to it through `call`, which has the loop do something between two turns. The thread is a daemon: it
never keeps a process from ending. A forked child has copies of the broker's sockets and no broker: the copies are
closed there, so that clients of the parent see its connections end when they end."""

from __future__ import annotations

import os
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pykafkad import clock, disk, errors
from pykafkad.errors import StartFailure
from pykafkad.log import snapshot_store
from pykafkad.memory_disk import MemoryDisk
from pykafkad.metadata import events
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.server.broker import Broker
from pykafkad.server.fault_injection import Fault, FaultInjection
from pykafkad.server.listeners import Listener
from pykafkad.server.logs import tell_settings
from pykafkad.server.wiring import Process
from pykafkad.testing import log_bridge
from pykafkad.testing.options import Options

if TYPE_CHECKING:
    from pykafkad.server.trace import Exchange, WireTrace
    from pykafkad.testing.guard import Guard

Result = TypeVar("Result")

CALL_SECONDS = 60.0
"""What the loop is asked to do takes milliseconds; after so long it is stuck."""


CLOCK_STEPS = 500
"""In at most so many steps the clock is moved, however far."""


class BrokerEnded(Exception):
    """The broker does not run (any more)."""


class EmbeddedBroker:
    """A broker of this process: `start`, then `close`. Also what a broker in a process of its own has inside."""

    def __init__(self, options: Options, ahead_seconds: float = 0.0, is_traced: bool = False) -> None:
        """One that takes the place of a killed one has its clock, so far ahead of real time, and is traced if that one
        was."""
        self._options = options
        self.bootstrap = ""
        self._clock = clock.AdvancingClock()
        self._clock.ahead_seconds = ahead_seconds
        self._is_traced = is_traced
        self.control = ""
        """The address for the test's own requests, which may differ from that for clients."""
        self._faults: FaultInjection | None = None
        self._known_faults: dict[int, Fault] = {}
        self._trace: WireTrace | None = None
        self._failure = ""
        self._thread: threading.Thread | None = None
        self._process_id = os.getpid()

    def start(self) -> None:
        """Serve. Raises ConfigError, StorageFailure or StartFailure (such as for a port that is taken)."""
        options = self._options
        self._disk = MemoryDisk(options.memory_bytes, self._clock) if options.data is None else disk.Disk()
        self._begin(options)
        if self._is_traced:
            self._record()
        self._first_settings = self._process.controller.image.all_configs()
        self._begin_turning()

    def _begin(self, options: Options) -> None:
        """Make a process on the disk, up to serving."""
        settings = options.broker_settings()
        node_logs, sink = log_bridge.logs(options.log_level)
        listeners = options.listeners()
        process = Process(settings, listeners, [options.directory], clock=self._clock, disk=self._disk, logs=node_logs)
        try:
            process.start()
            if options.guard is not None:
                self._add_guard(process, options.guard)
        except Exception as error:
            process.runtime.reactor.close()
            if isinstance(error, OSError):
                raise StartFailure(error.strerror or str(error)) from None
            raise
        assert process.broker is not None
        self._process = process
        self._broker: Broker = process.broker
        self._faults = None
        self._known_faults.clear()
        if self._trace is not None:
            was_on = self._trace.is_on
            self._trace = type(self._trace)(self._broker, self._trace)
            if was_on:
                self._trace.start()
        self.bootstrap = sink.bootstrap = _address(listeners[0])
        self.control = _address(listeners[-1])
        # The test's own threads wait for the interpreter while a thread looks for sockets again and again.
        process.runtime.reactor.may_look = False
        if options.data is None:
            process.runtime.offload.has_thread = process.controller.sync_offload.has_thread = False
        tell_settings(node_logs.logger("config"), settings.warnings, settings.without_effect)

    def _add_guard(self, process: Process, guard: Guard) -> None:
        """Store the users and the ACLs that are not stored yet."""
        from pykafkad.cli import start_acls as words
        from pykafkad.server import scram_users, start_acls

        if guard.users:
            scram_users.add(
                process.controller, [(name, password, mechanism) for name, password, mechanism in guard.users], _Token()
            )
        if guard.acls:
            start_acls.add(process, words.parse(guard.acls, "acls:"))

    def _begin_turning(self) -> None:
        self._is_killed = self._is_ending = False
        self._thread = threading.Thread(target=self._run, name=f"pykafkad {self.bootstrap}", daemon=True)
        _LIVE.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                self._process.runtime.run()
                if self._is_killed:
                    self._drop()
                    return
                snapshots = self._broker.used_snapshots
                name = None if snapshots is None else snapshots.restore_to
                asking = None if snapshots is None else snapshots.hand_over()
                self._process.runtime.close()
                if not name or self._is_ending:
                    return
                snapshot_store.begin_restore(self._disk, [self._options.directory], name)
                snapshot_store.finish_restore(self._disk, [self._options.directory])
                self._begin(self._where_it_was)
                left = snapshot_store.leftovers(self._disk, [self._options.directory])
                self._broker.data_snapshots.remove(left)
                if asking is not None:
                    self._broker.data_snapshots.answer(asking)
        except BaseException:
            self._failure = f":\n{traceback.format_exc()}"

    def _drop(self) -> None:
        """End as a process does that is killed: nothing more is written, and no client is told."""
        self._broker.socket_server.stop_listening()
        self._process.runtime.reactor.close()
        self._broker.log_writer.close()
        self._process.runtime.cpu_offload.close()

    @property
    def _where_it_was(self) -> Options:
        """The options of the broker that takes this one's place."""
        return self._options.at(self.bootstrap, self.control)

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._thread is not None and self._thread.is_alive() and self._process_id == os.getpid()

    def close(self) -> None:
        """Stop it, and wait until its port is free. Raises what has ended its loop, if anything has."""
        thread = self._thread
        if thread is None or self._process_id != os.getpid():
            return
        self._is_ending = True
        self._process.runtime.stop("the test is done")
        thread.join(CALL_SECONDS)
        if thread.is_alive():
            raise BrokerEnded(f"the broker on {self.bootstrap} did not stop for {CALL_SECONDS:g} s")
        self._thread = None
        _LIVE.discard(self)
        if self._failure:
            raise BrokerEnded(f"the broker on {self.bootstrap} ended by an error{self._failure}")

    def restart(self, is_killed: bool = False) -> None:
        """Stop and serve again on the same port with the same data; after a kill, with what was written by then.
        Raises ValueError for a kill of one that has its data in a directory, which only a process of its own can
        leave in an instant."""
        if is_killed and self._options.data is not None:
            raise ValueError("a broker with its data in a directory can only be killed with own_process=True")
        self._is_killed = is_killed
        self.close()
        self._begin(self._where_it_was)
        self._begin_turning()

    # --- on the loop --------------------------------------------------------------------------------------------------

    def call(self, job: Callable[[], Result]) -> Result:
        """What `job()` returns or raises on the broker's loop."""
        if self._thread is threading.current_thread():
            return job()
        if not self.is_running:
            raise BrokerEnded(f"the broker on {self.bootstrap} does not run in this process{self._failure}")
        done = threading.Event()
        outcome: list[Any] = []

        def run(_: object) -> None:
            try:
                outcome.append((True, job()))
            except Exception as error:
                outcome.append((False, error))
            done.set()

        self._process.runtime.offload.post(run)
        self._wait(done)
        succeeded, result = outcome[0]
        if not succeeded:
            raise result
        return result  # type: ignore[no-any-return]

    def _wait(self, done: threading.Event) -> None:
        if not done.wait(CALL_SECONDS):
            raise BrokerEnded(f"the broker on {self.bootstrap} did not answer for {CALL_SECONDS:g} s")

    def reset(self) -> None:
        """Forget topics with their records, groups, transactions and dynamic settings, and release all faults.
        Connections stay, and what waits is answered as when topics are deleted and coordinators move."""
        tokens: list[_Token] = []

        def submit(event: Any) -> None:
            tokens.append(event.token)
            self._process.controller.submit(event)

        def forget() -> None:
            if self._faults is not None:
                self._faults.clear()
            image = self._process.controller.image
            topics: dict[bytes, str | None] = {topic.id: topic.name for topic in image.topics.values()}
            if topics:
                submit(events.DeleteTopics(_Token(), topics))
            changes: list[tuple[int, str, Any]] = [
                (kind, name, self._first_settings.get((kind, name), {}))
                for (kind, name), values in image.all_configs().items()
                if kind != TYPE_TOPIC and values != self._first_settings.get((kind, name))
            ]
            if changes:
                submit(events.AlterConfigs(_Token(), changes, incremental=False))

        self.call(forget)
        self._known_faults.clear()
        for token in tokens:
            self._wait(token.done)
            token.check()

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
                self._faults = FaultInjection(self._broker)
            self._faults.add(fault)

        self.call(add)
        number = len(self._known_faults)
        self._known_faults[number] = fault
        return number

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
        Connections are no longer idle than they really were."""
        start = self.call(lambda: self._clock.ahead_seconds)
        least = seconds / CLOCK_STEPS

        def step() -> bool:
            left = start + seconds - self._clock.ahead_seconds
            due_at = self._process.runtime.next_turn_at()
            until_due = left if due_at is None else due_at - self._clock.now()
            moved = left if left <= least else min(left, max(until_due, least))
            self._clock.ahead_seconds += moved
            for connection in self._broker.socket_server.connections():
                connection.transport.last_active += moved
            return moved < left

        while self.call(step):
            pass
        # Timers fire in the turn after that in which the clock moved, and what follows from them in the next.
        for _ in range(2):
            self.call(lambda: None)
        return self._clock.ahead_seconds

    # --- the trace ----------------------------------------------------------------------------------------------------

    def start_trace(self) -> None:
        """Record requests and answers from now on; fine if that is so already."""
        self.call(self._record)

    def _record(self) -> None:
        from pykafkad.server.trace import WireTrace

        if self._trace is None:
            self._trace = WireTrace(self._broker)
        self._trace.start()

    def stop_trace(self) -> None:
        """Record no more."""
        if self._trace is not None:
            self.call(self._trace.stop)

    def clear_trace(self) -> None:
        """Forget what was recorded."""
        if self._trace is not None:
            self.call(self._trace.clear)

    def traced(self) -> list[Exchange]:
        """What was recorded, oldest first."""
        return [] if self._trace is None else self.call(self._trace.exchanges)

    # --- what is left of it -------------------------------------------------------------------------------------------

    def keep(self, directory: str) -> None:
        """Write what the data directory holds now to `directory`, for `pykafkad serve --data` or `dump-log`."""

        def copy() -> None:
            self._broker.commits.write_all()
            _copy(self._disk, self._options.directory, directory)

        self.call(copy)


class _Token:
    """Takes the controller's answer."""

    __slots__ = ("done", "message")

    def __init__(self) -> None:
        self.done = threading.Event()

    def deliver(self, message: Any) -> None:
        self.message = message
        self.done.set()

    def check(self) -> None:
        for row in self.message.responses:
            if row.error_code:
                raise BrokerEnded(f"reset: {errors.name(row.error_code)}: {row.error_message}")


def _address(listener: Listener) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{host or 'localhost'}:{listener.port}"


def _copy(source: disk.Disk, path: str, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    for name in source.listdir(path):
        if source.is_directory(f"{path}/{name}"):
            _copy(source, f"{path}/{name}", f"{target}/{name}")
        elif name != ".lock":
            disk.Disk().write(f"{target}/{name}", source.read(f"{path}/{name}") or b"")


_LIVE: weakref.WeakSet[EmbeddedBroker] = weakref.WeakSet()
"""The brokers that run in this process: for forked children alone."""


def _close_copies() -> None:
    for each in list(_LIVE):
        for copy in each._broker.socket_server.sockets():
            copy.close()
    _LIVE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
