"""One node of a cluster, a broker or a controller, in a process of its own, which ends with its parent.

The parent (`child_nodes.py`) writes one line of JSON to the standard input: the node's id, its settings, and the level
and form of the log. The node reports one line on its standard output: the readiness line, or why it cannot start. It
serves until a signal, until the parent writes `stop`, or until the standard input ends, as it does at the parent's
death of whatever kind. Then, and at SIGTERM, brokers stop at once, and a controller waits for them: they leave the
cluster with its help.

The process is `python -m pykafkad.server.node_process`."""

from __future__ import annotations

import sys
from functools import partial
from queue import SimpleQueue

from pykafkad.clock import Clock
from pykafkad.config import Settings
from pykafkad.errors import ConfigError, StartFailure, StorageFailure
from pykafkad.server import logs, run
from pykafkad.server.wiring import BROKER

STOP = "stop"
"""What the parent writes when the node is to stop."""

CLOSED = "closed"
"""What a node writes when its directories are closed and an answer is all that is left to do."""

WAIT_SECONDS = 15.0
"""For so long a controller without a parent waits for the brokers: longer than the default of
`broker.session.timeout.ms`, after which one that was killed counts as gone."""

_PAUSE_SECONDS = 0.1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.server.asked_snapshots import AskedSnapshots
    from pykafkad.server.broker import Broker
    from pykafkad.server.wiring import Process


class ParentWatch:
    """Stops a process when its parent says so, or is gone: what `run.run` knows as the control of a process."""

    def __init__(self, source: Any, snapshot_paths: Sequence[str] = ()) -> None:
        """`source` is the standard input, without a buffer: nobody holds its lock at the end of the process. Snapshots
        are those of `snapshot_paths`, the directories of all nodes; none, where these are in memory."""
        self._source = source
        self._snapshot_paths = snapshot_paths
        self._snapshots: AskedSnapshots | None = None
        self._last_words: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.clock = Clock()
        self.words: dict[str, str] = {}

    def began(self, process: Process) -> None:
        """This process serves from now on."""
        import signal
        import threading

        def beside_loop(call: Callable[..., object], *arguments: object) -> None:
            threading.Thread(target=call, args=(process, threading.Event(), *arguments), daemon=True).start()

        def on_signal(number: int, _frame: object) -> None:
            if process.broker is None:
                beside_loop(self._stop_last, f"signal {number}")
            else:
                process.runtime.stop(f"signal {number}")

        # Who stops a whole service may tell all of its processes at the same time: it is no second wish to stop.
        signal.signal(signal.SIGTERM, on_signal)
        beside_loop(self._watch)
        if process.broker is not None and self._snapshot_paths:
            process.broker.services.open_data_snapshots = partial(self._open_snapshots, process.broker)

    def _open_snapshots(self, broker: Broker) -> AskedSnapshots:
        if self._snapshots is None:
            from pykafkad.server.asked_snapshots import AskedSnapshots

            self._snapshots = AskedSnapshots(broker, self._snapshot_paths, tell)
        return self._snapshots

    def _watch(self, process: Process, never: Any) -> None:
        import json

        while True:
            line = self._source.readline().decode().strip()
            if line == STOP:
                # In the loop, where whoever asked for a snapshot is looked for.
                process.runtime.offload.post(partial(self._stop, process))
            elif not line:
                self._last_words.put(None)
                if process.runtime.stopping is None and process.broker is None:
                    self._stop_last(process, never, "the parent process is gone")
                elif process.runtime.stopping is None:
                    process.runtime.stop("the parent process is gone")
                return
            else:
                self._told(process, json.loads(line))

    def _stop(self, process: Process, _: object) -> None:
        if self._snapshots is not None:
            self._snapshots.keep_connection()
        process.runtime.stop("the parent process stops")

    def _told(self, process: Process, answer: dict[str, Any]) -> None:
        """The parent answers what it was asked: at once, or when this process has stopped."""
        snapshots = self._snapshots
        if answer["is_last"]:
            self._last_words.put(answer)
        elif snapshots is not None:
            process.runtime.offload.post(lambda _: snapshots.refused(answer["code"], answer["text"]))

    def finish(self) -> None:
        """Everything is closed: answer who has asked for a snapshot, when the parent says how it went."""
        snapshots = self._snapshots
        if snapshots is None or not snapshots.has_kept:
            return
        tell(CLOSED)
        answer = self._last_words.get()
        if answer is not None:
            snapshots.answer(answer["code"], answer["text"])

    def _stop_last(self, process: Process, never: Any, reason: str) -> None:
        """Stop a controller when the brokers have left, or have had their time for that."""
        until = self.clock.now() + WAIT_SECONDS
        while self.clock.now() < until and _has_brokers(process):
            never.wait(_PAUSE_SECONDS)
        process.runtime.stop(reason)


def tell(line: str) -> None:
    """Write a line to the parent."""
    try:
        print(line, flush=True)
    except OSError:
        # It is gone, which ends this process, too.
        pass


def _has_brokers(process: Process) -> bool:
    """Whether a broker has not left yet, as far as this controller knows."""
    return any(not broker.fenced for broker in list(process.controller.image.brokers.values()))


def main() -> int:
    """Serve; the exit code: 2 where a setting is invalid, 1 where the node cannot start now."""
    import json

    source = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115 - it is open as long as the process lives
    asked = json.loads(source.readline())
    logs.configure(asked["level"], logs.LabelledSink("node", asked["node"], is_json=asked["is_json"]))
    settings = Settings(asked["settings"])
    watch = ParentWatch(source, asked["snapshot_paths"])
    try:
        exit_code = run.run(
            settings,
            data_directories=settings.log_directories,
            topics=[],
            ready_file=None,
            control=watch,
        )
        watch.finish()
        return exit_code
    except (ConfigError, StartFailure, StorageFailure) as error:
        print(str(error).replace("\n", " "), flush=True)
        return 2 if isinstance(error, ConfigError) and not isinstance(error, StartFailure) else 1


def asked_of(settings: Settings, level: str, is_json: bool, snapshot_paths: Sequence[str] = ()) -> str:
    """The line that the parent writes first: the log is written from `level` on, as JSON if it `is_json`; snapshots are
    those of `snapshot_paths`."""
    import json

    asked = {"node": settings.node_id, "settings": settings.static, "level": level, "is_json": is_json}
    return json.dumps({**asked, "snapshot_paths": list(snapshot_paths)}) + "\n"


def role_of(settings: Settings) -> str:
    """`broker` or `controller`."""
    return BROKER if BROKER in settings.process_roles else "controller"


if __name__ == "__main__":
    sys.exit(main())
