"""The nodes of a cluster as child processes of this one: their start, what they report, and their end.

Each child (`node_process.py`) has a thread here, which waits for its report and for its end. Whatever happens goes
through one queue to the main thread, signals too. Lines of the log the children write themselves, to the standard error
that all share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from queue import Empty, SimpleQueue

from pykafkad import errors
from pykafkad.clock import Clock
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server import node_process, run
from pykafkad.server.wiring import BROKER

_SERVES = f"{run.READY} on "
"""How the report of a node begins that serves; the addresses follow."""

STOP_SECONDS = 90.0
"""So long the children of a role may take to stop, longer than a controlled shutdown waits; then they are killed. Those
that have stopped may take as long again to end, all of them together."""

_STOPPED = "the nodes stop for another request; ask again when they serve"

_REPORT = "report"
_REQUEST = "request"
_END = "end"
_SIGNAL = "signal"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.logs import Logs


class Interrupted(Exception):
    """A signal came while nodes were starting."""


class ChildNode:
    """One child. `addresses` are those of its listeners once it serves, `status` says how it ended."""

    def __init__(
        self,
        settings: Settings,
        level: str,
        is_json: bool,
        events: SimpleQueue[tuple[str, Any]],
        snapshot_paths: Sequence[str],
    ) -> None:
        """Its log is written from `level` on, as JSON if it `is_json`; snapshots are those of `snapshot_paths`."""
        self.node_id = settings.node_id
        self.role = node_process.role_of(settings)
        self.addresses: list[str] = []
        self.report = ""
        self.request = ""
        """What it has asked for last."""
        self.closed = threading.Event()
        """Set when its directories are closed, at its end at the latest."""
        self.status: str | None = None
        self.exit_code = 0
        self.is_end_told = False
        # Ctrl-C at a terminal reaches a whole group of processes; the parent says when which child stops.
        of_its_own: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", node_process.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            **of_its_own,
        )
        self._write(node_process.asked_of(settings, level, is_json, snapshot_paths))
        self.watcher = threading.Thread(target=self._watch, args=(events,), daemon=True)
        self.watcher.start()

    def _write(self, text: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text)
            self.process.stdin.flush()
        except (OSError, ValueError):
            # It has ended, which its watcher tells, or it was closed after its end.
            pass

    def _watch(self, events: SimpleQueue[tuple[str, Any]]) -> None:
        """Tell what it reports, and its end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == node_process.CLOSED:
                self.closed.set()
            elif line.startswith("{"):
                self.request = line
                events.put((_REQUEST, self))
            else:
                self.report = line.strip()
                events.put((_REPORT, self))
        self.exit_code = self.process.wait()
        self.status = f"signal {-self.exit_code}" if self.exit_code < 0 else f"exit status {self.exit_code}"
        self.closed.set()
        events.put((_END, self))

    def tell(self, code: int, text: str | None, *, is_last: bool = False) -> None:
        """Answer what it has asked; `is_last` where it has been stopped."""
        import json

        self._write(json.dumps({"code": code, "text": text, "is_last": is_last}) + "\n")

    def ask_to_stop(self) -> None:
        """It stops in a controlled way, or, while it starts, at once."""
        self._write(f"{node_process.STOP}\n")
        if not self.addresses:
            self.process.terminate()

    def hang_up(self) -> None:
        """Let it hear nothing more: then it ends, if it has not yet."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            # What was still to be written, nobody reads any more.
            pass

    def close(self) -> None:
        """It has ended: give back what is left of it."""
        assert self.process.stdout is not None
        self.hang_up()
        self.process.stdout.close()


def _failure(child: ChildNode) -> ConfigError:
    """Why no start succeeds with this child, which has ended."""
    # The report of one that has served is no reason.
    if child.addresses or not child.report:
        return StartFailure(f"{child.role} {child.node_id}: it ended with {child.status}")
    failure = ConfigError if child.exit_code == 2 else StartFailure
    return failure(f"{child.role} {child.node_id}: {child.report}")


class ChildNodes:
    """All children. `start` some, `wait_ready`, then `serve`; `close` ends all that are left."""

    def __init__(
        self,
        logs: Logs,
        *,
        is_json: bool = False,
        snapshot_paths: Sequence[str] = (),
        clock: Clock | None = None,
    ) -> None:
        """The log of all of them is written as JSON, as `logs` are, if it `is_json`. Their directories are
        `snapshot_paths`, if snapshots can be made of them."""
        self._snapshot_paths = snapshot_paths
        self._requests: list[ChildNode] = []
        self._stopped: list[ChildNode] = []
        """Former children that have an answer to give."""
        self._is_json = is_json
        self.children: list[ChildNode] = []
        self.stopping: str | None = None
        """The signal that came, if one did."""
        self._logs = logs
        self._clock = clock or Clock()
        self._events: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def stop(self, reason: str) -> None:
        """End `wait_ready` or `serve`; safe in a signal handler."""
        self.stopping = reason
        self._events.put((_SIGNAL, None))

    def kill(self, exit_code: int) -> None:
        """End everything at once, this process too."""
        for child in (*self.children, *self._stopped):
            child.process.kill()
        os._exit(exit_code)

    def start(self, nodes: Iterable[Settings]) -> list[ChildNode]:
        """Start a process for each of these nodes. Raises StartFailure where the system has no room for one."""
        begun: list[ChildNode] = []
        for settings in nodes:
            try:
                begun.append(ChildNode(settings, self._logs.level, self._is_json, self._events, self._snapshot_paths))
            except OSError as error:
                where = f"{node_process.role_of(settings)} {settings.node_id}"
                raise StartFailure(f"{where}: no process for it: {error.strerror or error}") from None
            self.children.append(begun[-1])
        return begun

    def wait_ready(self, awaited: Sequence[ChildNode]) -> None:
        """Wait until each of them serves. Raises StartFailure or ConfigError with what stood in the way of any child,
        and Interrupted."""
        while not all(child.addresses for child in awaited):
            kind, child = self._next()
            if kind == _SIGNAL:
                raise Interrupted
            if kind == _END:
                raise _failure(child)
            if kind == _REQUEST:
                self._requests.append(child)
            elif child.report.startswith(_SERVES):
                child.addresses = child.report.removeprefix(_SERVES).split()
                fields = {"role": child.role, "pid": child.process.pid, "listens": ",".join(child.addresses)}
                self._logs.info("server", "node-started", node=child.node_id, **fields)
            elif child.report.startswith(run.READY):
                raise StartFailure(f"{child.role} {child.node_id}: its report has no addresses: {child.report}")

    def is_stopped(self) -> bool:
        """Whether a signal came, without a wait; for what is done between `wait_ready` and `serve`. Raises StartFailure
        when a child has ended."""
        while self.stopping is None:
            try:
                kind, child = self._events.get_nowait()
            except Empty:
                return False
            if kind == _END:
                raise _failure(child)
            if kind == _REQUEST:
                self._requests.append(child)
        return True

    def _next(self) -> tuple[str, Any]:
        """What happens next to this process or a child. Of former children the end is all that counts."""
        while True:
            kind, child = self._events.get()
            if kind == _SIGNAL or child in self.children:
                return kind, child
            if kind == _END and child in self._stopped:
                self._stopped.remove(child)
                child.close()
            elif kind == _REQUEST:
                child.tell(errors.INVALID_REQUEST, _STOPPED, is_last=True)

    def serve(self, perform: Callable[[ChildNode], object]) -> bool:
        """Until a signal comes, or no broker is left: whether it was a signal. `perform(child)` does what a child has
        asked for."""
        while True:
            while self._requests:
                child = self._requests.pop(0)
                if child in self.children:
                    perform(child)
                else:
                    child.tell(errors.INVALID_REQUEST, _STOPPED, is_last=True)
            kind, child = self._next()
            if kind == _SIGNAL:
                return True
            if kind == _REQUEST:
                self._requests.append(child)
            elif kind == _END:
                self._tell_end(child)
                if not self._alive(BROKER):
                    return False

    def _tell_end(self, child: ChildNode) -> None:
        child.is_end_told = True
        self._logs.error("server", "node-ended", node=child.node_id, role=child.role, status=child.status)

    def _tell_ends(self) -> None:
        """Tell of children that served and ended by themselves. Who stops all processes may have told them too, not
        this one alone: then a clean end is no news."""
        for child in self.children:
            is_news = child.status is not None and child.addresses and not child.is_end_told
            if is_news and (self.stopping is None or child.exit_code):
                self._tell_end(child)

    def _alive(self, role: str) -> list[ChildNode]:
        return [child for child in self.children if child.role == role and child.status is None]

    def close(self) -> None:
        """Stop the brokers, then the controllers, which help them to leave. Who takes too long is killed."""
        self._tell_ends()
        self._stop()
        left = [*self.children, *self._stopped]
        # Those that hold an answer end only when they hear nothing more: all of them do before one is waited for.
        for child in left:
            child.hang_up()
        deadline = self._clock.now() + STOP_SECONDS
        for child in left:
            child.watcher.join(max(0.0, deadline - self._clock.now()))
        self._kill([child for child in left if child.status is None])
        for child in left:
            child.close()

    def stop_all(self) -> list[ChildNode]:
        """Stop all of them, as `close` does; those that were killed. Others can take their places then: their
        directories are closed. Who was asked for a snapshot runs on until it hears what to answer."""
        killed = self._stop()
        for child in self.children:
            if child.status is None:
                self._stopped.append(child)
            else:
                child.close()
        self.children = []
        return killed

    def _stop(self) -> list[ChildNode]:
        killed = []
        for role in (BROKER, "controller"):
            stopping = self._alive(role)
            for child in stopping:
                # However it ends from now on, it was asked to.
                child.is_end_told = True
                child.ask_to_stop()
            deadline = self._clock.now() + STOP_SECONDS
            late = [child for child in stopping if not child.closed.wait(max(0.0, deadline - self._clock.now()))]
            self._kill(late)
            killed += late
        return killed

    def _kill(self, late: Sequence[ChildNode]) -> None:
        """End these children, which have had their time, and wait until they have ended."""
        for child in late:
            self._logs.warning("server", "node-killed", node=child.node_id, seconds=STOP_SECONDS)
            child.process.kill()
        for child in late:
            child.watcher.join()
