"""The nodes of a cluster as child processes of this one: their start, what they report, and their end.

Each child (`node_process.py`) has a thread here, which waits for its report and for its end. Whatever happens goes
through one queue to the main thread, signals too. Lines of the log the children write themselves, to the standard error
that all share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from queue import SimpleQueue

from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server import node_process
from pykafkad.server.wiring import BROKER

READY = "pykafkad ready on "
"""How the report of a node begins that serves; the addresses follow."""

STOP_SECONDS = 90.0
"""So long a child may take to stop, longer than a controlled shutdown waits; then it is killed."""

_REPORT = "report"
_END = "end"
_SIGNAL = "signal"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.logs import Logs


class Interrupted(Exception):
    """A signal came while nodes were starting."""


class ChildNode:
    """One child. `addresses` are those of its listeners once it serves, `status` says how it ended."""

    def __init__(self, settings: Settings, level: str, events: SimpleQueue[tuple[str, Any]]) -> None:
        self.node_id = settings.node_id
        self.role = node_process.role_of(settings)
        self.addresses: list[str] = []
        self.report = ""
        self.status: str | None = None
        self.exit_code = 0
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
        self._write(node_process.asked_of(settings, level))
        self.watcher = threading.Thread(target=self._watch, args=(events,), daemon=True)
        self.watcher.start()

    def _write(self, text: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text)
            self.process.stdin.flush()
        except OSError:
            # It has ended, which its watcher tells.
            pass

    def _watch(self, events: SimpleQueue[tuple[str, Any]]) -> None:
        """Tell what it reports, and its end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.report = line.strip()
            events.put((_REPORT, self))
        self.exit_code = self.process.wait()
        self.status = f"signal {-self.exit_code}" if self.exit_code < 0 else f"exit status {self.exit_code}"
        events.put((_END, self))

    def ask_to_stop(self) -> None:
        """It stops in a controlled way, or, while it starts, at once."""
        self._write(f"{node_process.STOP}\n")
        if not self.addresses:
            self.process.terminate()

    def close(self) -> None:
        """It has ended: give back what is left of it."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                # What was still to be written, nobody reads any more.
                pass


class ChildNodes:
    """All children. `start` some, `wait_ready`, then `serve`; `close` ends all that are left."""

    def __init__(self, logs: Logs) -> None:
        self.children: list[ChildNode] = []
        self.stopping: str | None = None
        """The signal that came, if one did."""
        self._logs = logs
        self._events: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def stop(self, reason: str) -> None:
        """End `wait_ready` or `serve`; safe in a signal handler."""
        self.stopping = reason
        self._events.put((_SIGNAL, None))

    def kill(self, exit_code: int) -> None:
        """End everything at once, this process too."""
        for child in self.children:
            child.process.kill()
        os._exit(exit_code)

    def start(self, nodes: Iterable[Settings]) -> list[ChildNode]:
        """Start a process for each of these nodes."""
        begun: list[ChildNode] = []
        for settings in nodes:
            begun.append(ChildNode(settings, self._logs.level, self._events))
            self.children.append(begun[-1])
        return begun

    def wait_ready(self, awaited: Sequence[ChildNode]) -> None:
        """Wait until each of them serves. Raises StartFailure or ConfigError with what stood in the way of any child,
        and Interrupted."""
        while not all(child.addresses for child in awaited):
            kind, child = self._events.get()
            if kind == _SIGNAL:
                raise Interrupted
            if kind == _END:
                failure = ConfigError if child.exit_code == 2 else StartFailure
                raise failure(f"{child.role} {child.node_id}: {child.report or f'it ended with {child.status}'}")
            if child.report.startswith(READY):
                child.addresses = child.report.removeprefix(READY).split()
                fields = {"role": child.role, "pid": child.process.pid, "listens": ",".join(child.addresses)}
                self._logs.info("server", "node-started", node=child.node_id, **fields)

    def serve(self) -> bool:
        """Until a signal comes, or no broker is left: whether it was a signal."""
        while True:
            kind, child = self._events.get()
            if kind == _SIGNAL:
                return True
            if kind == _END:
                self._logs.error("server", "node-ended", node=child.node_id, role=child.role, status=child.status)
                if not self._alive(BROKER):
                    return False

    def _alive(self, role: str) -> list[ChildNode]:
        return [child for child in self.children if child.role == role and child.status is None]

    def close(self) -> None:
        """Stop the brokers, then the controllers, which help them to leave. Who takes too long is killed."""
        for role in (BROKER, "controller"):
            stopping = self._alive(role)
            for child in stopping:
                child.ask_to_stop()
            for child in stopping:
                child.watcher.join(STOP_SECONDS)
                if child.status is None:
                    self._logs.warning("server", "node-killed", node=child.node_id, seconds=STOP_SECONDS)
                    child.process.kill()
                    child.watcher.join()
        for child in self.children:
            child.close()
