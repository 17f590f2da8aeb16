"""`broker.trace()`: the last requests of a broker's clients with their answers.

They are values, lines of text, lines of JSON, or a capture file."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pykafkad.server import trace_formats
from pykafkad.server.exchanges import Exchange
from pykafkad.wire import frames

if TYPE_CHECKING:
    from pykafkad.testing.operations import Running

RECORDING = ".recording"

_FRAMES = ("request", "answer")

MOST_FRAME_BYTES = 16 * 1024 * 1024
"""A trace keeps no more of all requests and answers together."""


class Trace:
    """What a broker has recorded since `Broker.trace`, at most 10 000 requests and 16 MiB; the oldest go first.

    Requests of the test itself, as by `Broker.records`, are not in it, and passwords and tokens of logins are not
    either."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.is_on = False
        # The number of the first request since the trace began or was cleared.
        self._first: int | None = None

    def start(self, frame_bytes: int | None = None) -> Trace:
        """Record from now on, of each request and answer at most so many bytes; the trace itself."""
        if frame_bytes is not None and not (type(frame_bytes) is int and 0 < frame_bytes <= MOST_FRAME_BYTES):
            raise ValueError(f"frame_bytes: {frame_bytes!r} is no number from 1 to {MOST_FRAME_BYTES}")
        self._running.start_trace(frame_bytes)
        self.is_on = True
        if self._first is None:
            self._first = self._running.traced(0)[2]
        return self

    def stop(self) -> None:
        """Record no more. What was recorded can still be read."""
        self.is_on = False
        self._running.stop_trace()

    def clear(self) -> None:
        """Forget what was recorded."""
        self._running.clear_trace()
        self._first = self._running.traced(0)[2]

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def requests(self) -> list[dict[str, Any]]:
        """The requests as plain values, oldest first: `api`, `version`, `client_id`, `correlation_id`, `duration_ms`,
        `errors`, `request`, `answer` and so on. `is_answered` is false for those without an answer so far."""
        return self.last_requests(None)[0]

    def last_requests(self, limit: int | None) -> tuple[list[dict[str, Any]], int]:
        """The last ones, and how many older ones are left out; those are not decoded."""
        flexible = frames.flexible_versions()
        exchanges, left_out, _ = self._some(limit)
        return [trace_formats.fields(each, flexible) for each in exchanges], left_out

    def summaries(self, after: int, limit: int) -> list[dict[str, Any]]:
        """The last requests with larger numbers in short, oldest first; `number` is that of each."""
        exchanges, _, first = self._some(limit, after)
        flexible = frames.flexible_versions()
        return [
            {"number": number, **trace_formats.summary(each, flexible)} for number, each in enumerate(exchanges, first)
        ]

    def request(self, number: int) -> dict[str, Any] | None:
        """The request of that number, as `requests` has it; None where it is not kept (any more)."""
        exchanges, _, first = self._some(None, number - 1)
        if not exchanges or first != number:
            return None
        return {"number": number, **trace_formats.fields(exchanges[0], frames.flexible_versions())}

    def text(self) -> str:
        """A line for each request."""
        return trace_formats.text(self._exchanges())

    def last_lines(self, count: int) -> list[str]:
        """Those of the last `count` requests."""
        return trace_formats.text(self._some(count)[0]).splitlines()

    def exchanges(self) -> list[Exchange]:
        """The requests and answers as bytes."""
        return self._exchanges()

    def whole(self) -> tuple[list[Exchange], int]:
        """The same, and how many have been lost to newer ones since the trace began or was cleared. Raises RuntimeError
        if it never began."""
        if self._first is None:
            raise RuntimeError("nothing was recorded: call broker.trace() before the clients start")
        exchanges, _, first = self._some(None)
        return exchanges, first - self._first

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: `.pcap` for Wireshark, `.jsonl` with all fields, `.txt` with a line for each request,
        `.recording` for `pykafkad replay`.
        Raises ValueError for another name."""
        content = self.content(os.fspath(path))
        with open(path, "wb") as file:
            file.write(content)

    def content(self, name: str) -> bytes:
        """What a file of that name would hold. Raises ValueError for a name that tells no format."""
        if name.endswith(RECORDING):
            from pykafkad.differential import recording

            events = recording.of_trace(self._exchanges())
            return "".join([recording.head(), *map(recording.line, events)]).encode()
        return trace_formats.as_file(name, self._exchanges)

    def _exchanges(self) -> list[Exchange]:
        return self._some(None)[0]

    def _some(self, limit: int | None, after: int = 0) -> tuple[list[Exchange], int, int]:
        found, left_out, first = self._running.traced(limit, after)
        return [from_json(each) if isinstance(each, dict) else each for each in found], left_out, first


def to_json(exchange: Exchange) -> dict[str, Any]:
    """An exchange as values that JSON can hold."""
    row = exchange._asdict()
    return row | {name: None if row[name] is None else b64encode(row[name]).decode() for name in _FRAMES}


def from_json(row: dict[str, Any]) -> Exchange:
    """The exchange of `to_json`."""
    return Exchange(**row | {name: None if row[name] is None else b64decode(row[name]) for name in _FRAMES})
