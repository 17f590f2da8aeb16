"""A broker in a process of its own, which ends with its parent.

The parent writes lines of JSON to the child's standard input and reads one line for each from its standard output. When
the input ends, by a close or by the parent's death of whatever kind, the child stops. The child is
`python -m pykafkad.testing.child`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from pykafkad.errors import StartFailure
from pykafkad.testing.broker_loop import BrokerEnded
from pykafkad.testing.embedded import EmbeddedBroker, embedded
from pykafkad.testing.options import Options
from pykafkad.testing.wire_client import Refused, connected_to

if TYPE_CHECKING:
    from socket import socket

CALLS = (
    "reset",
    "restart",
    "add_fault",
    "release_fault",
    "fault_counts",
    "advance_clock",
    "start_trace",
    "stop_trace",
    "clear_trace",
    "traced",
    "metrics",
    "look",
    "note",
    "keep",
    "stop_broker",
    "kill_broker",
    "start_broker",
    "stop_controller",
    "kill_controller",
    "start_controller",
    "active_controller",
    "wait_until_known",
)
"""The methods of `EmbeddedBroker` that the parent may ask for."""

STOP_SECONDS = 20.0


class ChildBroker:
    """The parent's side: the methods of `EmbeddedBroker`."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.has_several = options.brokers > 1
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._process_id = os.getpid()
        # What the process that takes a killed one's place goes on with.
        self._ahead_seconds = 0.0
        self._is_traced = False
        self._keeps_timeline = False
        self.bootstrap = ""
        self.control = ""

    def start(self) -> None:
        """Serve. Raises StartFailure with what stood in the way."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pykafkad.testing.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        try:
            goes_on_with = {
                "ahead_seconds": self._ahead_seconds,
                "is_traced": self._is_traced,
                "keeps_timeline": self._keeps_timeline,
            }
            self.bootstrap, self.control = self._ask("start", {"options": self._options._asdict(), **goes_on_with})
        except BrokerEnded as error:
            self.close()
            raise StartFailure(str(error)) from None

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None and self._process_id == os.getpid()

    def close(self) -> None:
        """Stop it, and wait for its end."""
        process = self._process
        if process is None or self._process_id != os.getpid():
            return
        self._process = None
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def connect(self, node_id: int | None = None) -> socket:
        """See `EmbeddedBroker.connect`."""
        if node_id is None:
            return connected_to(self.control, None)
        # The others have the next ones.
        return connected_to(self.control, node_id - self._options.broker_settings().node_id)

    def reset(self, topics: dict[str, tuple[int, dict[str, str]]]) -> None:
        """See `EmbeddedBroker.reset`."""
        self._ask("reset", {"topics": topics})

    def restart(self, is_killed: bool = False) -> None:
        """See `EmbeddedBroker.restart`. With its data in a directory a killed one is a killed process: its clock
        and its trace go on in the next one, but what was recorded is gone."""
        process = self._process
        if not is_killed or self._options.data is None or process is None:
            self._ask("restart", {"is_killed": is_killed})
            return
        process.kill()
        self.close()
        self._options = self._options.at(self.bootstrap, self.control)
        self.start()

    def add_fault(self, **fields: Any) -> int:
        """See `EmbeddedBroker.add_fault`."""
        number: int = self._checked("add_fault", fields, ValueError)
        return number

    def release_fault(self, number: int) -> None:
        """See `EmbeddedBroker.release_fault`."""
        self._ask("release_fault", {"number": number})

    def fault_counts(self, number: int) -> tuple[int, int]:
        """See `EmbeddedBroker.fault_counts`."""
        fired, passed = self._ask("fault_counts", {"number": number})
        return fired, passed

    def advance_clock(self, seconds: float) -> float:
        """See `EmbeddedBroker.advance_clock`."""
        self._ahead_seconds = self._ask("advance_clock", {"seconds": seconds})
        return self._ahead_seconds

    def start_trace(self, frame_bytes: int | None = None) -> None:
        """See `EmbeddedBroker.start_trace`."""
        self._ask("start_trace", {"frame_bytes": frame_bytes})
        self._is_traced = True

    def stop_trace(self) -> None:
        """See `EmbeddedBroker.stop_trace`."""
        self._ask("stop_trace", {})
        self._is_traced = False

    def clear_trace(self) -> None:
        """See `EmbeddedBroker.clear_trace`."""
        self._ask("clear_trace", {})

    def traced(self, limit: int | None = None, after: int = 0) -> tuple[list[dict[str, Any]], int, int]:
        """See `EmbeddedBroker.traced`: the exchanges as `traces.to_json` has them."""
        exchanges, left_out, first = self._ask("traced", {"limit": limit, "after": after})
        return exchanges, left_out, first

    def keep_timeline(self) -> None:
        """See `EmbeddedBroker.keep_timeline`."""
        self._keeps_timeline = True

    def note(self, event: str, fields: dict[str, object]) -> None:
        """See `EmbeddedBroker.note`."""
        self._ask("note", {"event": event, "fields": fields})

    def look(self, lists: list[str], topic: str | None = None, events_after: int | None = None) -> dict[str, Any]:
        """See `EmbeddedBroker.look`."""
        found: dict[str, Any] = self._ask("look", {"lists": lists, "topic": topic, "events_after": events_after})
        return found

    def metrics(self) -> str:
        """See `EmbeddedBroker.metrics`."""
        text: str = self._ask("metrics", {})
        return text

    def keep(self, directory: str) -> None:
        """See `EmbeddedBroker.keep`."""
        self._ask("keep", {"directory": directory})

    def stop_broker(self, node_id: int) -> None:
        """See `EmbeddedCluster.stop_broker`."""
        self._of_one("stop_broker", node_id)

    def kill_broker(self, node_id: int) -> None:
        """See `EmbeddedCluster.kill_broker`."""
        self._of_one("kill_broker", node_id)

    def start_broker(self, node_id: int) -> None:
        """See `EmbeddedCluster.start_broker`."""
        self._of_one("start_broker", node_id)

    def stop_controller(self, node_id: int) -> None:
        """See `EmbeddedQuorum.stop_controller`."""
        self._of_one("stop_controller", node_id)

    def kill_controller(self, node_id: int) -> None:
        """See `EmbeddedQuorum.kill_controller`."""
        self._of_one("kill_controller", node_id)

    def start_controller(self, node_id: int) -> None:
        """See `EmbeddedQuorum.start_controller`."""
        self._of_one("start_controller", node_id)

    def wait_until_known(self) -> None:
        """See `EmbeddedQuorum.wait_until_known`."""
        if self._options.controllers > 1:
            self._ask("wait_until_known", {})

    def active_controller(self) -> int | None:
        """See `EmbeddedQuorum.active_controller`."""
        found: int | None = self._ask("active_controller", {})
        return found

    def _of_one(self, call: str, node_id: int) -> None:
        self._checked(call, {"node_id": node_id}, RuntimeError)

    def _checked(self, call: str, arguments: dict[str, Any], kind: type[Exception]) -> Any:
        """As `_ask`, with an exception of that kind as the broker raises it."""
        refused = f"{kind.__name__}: "
        try:
            return self._ask(call, arguments)
        except BrokerEnded as problem:
            if not str(problem).startswith(refused):
                raise
            raise kind(str(problem).removeprefix(refused)) from None

    def _ask(self, call: str, arguments: dict[str, Any]) -> Any:
        process = self._process
        if process is None or self._process_id != os.getpid():
            raise BrokerEnded(f"the broker on {self.bootstrap} does not run, or is another process's")
        assert process.stdin is not None and process.stdout is not None
        with self._turn:
            try:
                process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
        if not line:
            raise BrokerEnded(f"the process of the broker on {self.bootstrap or 'its way'} ended: {process.wait()}")
        answer = json.loads(line)
        if "refused" in answer:
            raise Refused(*answer["refused"])
        if "error" in answer:
            raise BrokerEnded(answer["error"])
        return answer["result"]


def _options(arguments: dict[str, Any]) -> Options:
    """The parent's options, as JSON carried them."""
    options = Options(**arguments)
    if options.guard is None:
        return options
    from pykafkad.testing.guard import Guard

    return options._replace(guard=Guard(*options.guard))


def main() -> int:
    """The child: serve until standard input ends."""
    import logging
    import signal

    # Ctrl-C at a terminal reaches the whole group of processes; the parent says when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w")
    # What anybody prints must not stand among the answers.
    os.dup2(2, 1)
    logging.basicConfig(level=logging.WARNING, format="%(name)s %(message)s")
    broker: EmbeddedBroker | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["call"] == "start":
                asked["arguments"]["options"] = _options(asked["arguments"]["options"])
                broker = embedded(asked["arguments"]["options"])(**asked["arguments"])
                broker.start()
                answer: dict[str, object] = {"result": [broker.bootstrap, broker.control]}
            else:
                assert asked["call"] in CALLS
                result = getattr(broker, asked["call"])(**asked["arguments"])
                if asked["call"] == "traced":
                    from pykafkad.testing.traces import to_json

                    result = [[to_json(each) for each in result[0]], *result[1:]]
                answer = {"result": result}
        except Refused as error:
            answer = {"refused": [error.what, error.code, error.text]}
        except Exception as error:
            answer = {"error": f"{error}" if isinstance(error, StartFailure) else f"{type(error).__name__}: {error}"}
        try:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        except BrokenPipeError:
            break
    if broker is not None:
        broker.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
