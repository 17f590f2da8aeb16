"""`broker.trace()`: the last requests of a broker's clients with their answers.

They are values, lines of text, lines of JSON, or a capture file."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pykafkad.server import trace_formats
from pykafkad.server.trace import Exchange
from pykafkad.wire import frames

if TYPE_CHECKING:
    from pykafkad.testing.operations import Running

_FRAMES = ("request", "answer")


class Trace:
    """What a broker has recorded since `Broker.trace`, at most 10 000 requests and 16 MiB; the oldest go first.

    Requests of the test itself, as by `Broker.records`, are not in it, and passwords and tokens of logins are not
    either."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.is_on = False

    def start(self) -> Trace:
        """Record from now on; the trace itself."""
        self._running.start_trace()
        self.is_on = True
        return self

    def stop(self) -> None:
        """Record no more. What was recorded can still be read."""
        self.is_on = False
        self._running.stop_trace()

    def clear(self) -> None:
        """Forget what was recorded."""
        self._running.clear_trace()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def requests(self) -> list[dict[str, Any]]:
        """The requests as plain values, oldest first: `api`, `version`, `client_id`, `correlation_id`, `duration_ms`,
        `errors`, `request`, `answer` and so on. `is_answered` is false for those without an answer so far."""
        flexible = frames.flexible_versions()
        return [trace_formats.fields(each, flexible) for each in self._exchanges()]

    def text(self) -> str:
        """A line for each request."""
        return trace_formats.text(self._exchanges())

    def last_lines(self, count: int) -> list[str]:
        """Those of the last `count` requests."""
        return trace_formats.text(self._exchanges()[-count:]).splitlines()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: `.pcap` for Wireshark, `.jsonl` with all fields, `.txt` with a line for each request.
        Raises ValueError for another name."""
        content = self.content(os.fspath(path))
        with open(path, "wb") as file:
            file.write(content)

    def content(self, name: str) -> bytes:
        """What a file of that name would hold. Raises ValueError for a name that tells no format."""
        return trace_formats.as_file(name, self._exchanges)

    def _exchanges(self) -> list[Exchange]:
        return [from_json(each) if isinstance(each, dict) else each for each in self._running.traced()]


def to_json(exchange: Exchange) -> dict[str, Any]:
    """An exchange as values that JSON can hold."""
    row = exchange._asdict()
    return row | {name: None if row[name] is None else b64encode(row[name]).decode() for name in _FRAMES}


def from_json(row: dict[str, Any]) -> Exchange:
    """The exchange of `to_json`."""
    return Exchange(**row | {name: None if row[name] is None else b64decode(row[name]) for name in _FRAMES})
