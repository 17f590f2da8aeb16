"""Recordings: what clients have asked a broker and what it has answered, with all bytes, in the order of events.

A file of JSON lines. The first names the format; every other one is a request or an answer of a connection, as a frame
without its size: `{"connection": 1, "request": "…"}`, `{"connection": 1, "answer": "…"}` in base64. An answer that is
null is a connection that the broker has closed."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pykafkad import __version__
from pykafkad.server.exchanges import Exchange

FORMAT = 1
SUFFIX = ".recording"
MOST_CONNECTIONS = 10_000


class Event(NamedTuple):
    """A request that came on a connection, or the answer to the last one; None where the broker closed it."""

    connection: int
    is_request: bool
    frame: bytes | None


class BadRecording(ValueError):
    """A file that is no recording, or not one that this version reads. The text names file and line."""


def head() -> str:
    """The first line."""
    return json.dumps({"recording": FORMAT, "by": f"pykafkad {__version__}"}) + "\n"


def line(event: Event) -> str:
    """The line of an event."""
    frame = None if event.frame is None else b64encode(event.frame).decode()
    return json.dumps({"connection": event.connection, "request" if event.is_request else "answer": frame}) + "\n"


def of_trace(exchanges: Iterable[Exchange]) -> Iterator[Event]:
    """The events of a wire trace. Raises ValueError for a request or answer that was not kept whole."""
    found: list[tuple[float, int, Event]] = []
    for number, each in enumerate(exchanges):
        if len(each.request) < each.request_bytes or len(each.answer or b"") < each.answer_bytes:
            most = max(each.request_bytes, each.answer_bytes)
            raise ValueError(
                f"the trace has only a part of a request of {most} bytes; keep more of each: "
                f"broker.trace(frame_bytes={2 * most})"
            )
        found.append((each.time_ms, number, Event(each.connection_id, True, each.request)))
        if each.answer is not None:
            found.append(
                (each.time_ms + (each.duration_ms or 0.0), number, Event(each.connection_id, False, each.answer))
            )
    # At the same moment a request stands before its answer, as it did in the list.
    for _, _, event in sorted(found, key=lambda row: row[0]):
        yield event


def read(name: str, lines: Iterable[str]) -> Iterator[Event]:
    """The events of a file. Raises BadRecording."""
    has_head = False
    connections: set[int] = set()
    for number, text in enumerate(lines, 1):
        where = f"{name}: line {number}"
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            raise BadRecording(f"{where} is no JSON; `pykafkad record` writes recordings") from None
        if not has_head:
            _check_head(where, row)
            has_head = True
            continue
        event = _event(where, row)
        connections.add(event.connection)
        if len(connections) > MOST_CONNECTIONS:
            raise BadRecording(f"{where}: more than {MOST_CONNECTIONS} connections")
        yield event
    if not has_head:
        raise BadRecording(f"{name} is empty; a recording begins with a line that names its format")


def _check_head(where: str, row: Any) -> None:
    found = row.get("recording") if isinstance(row, dict) else None
    if found is None:
        raise BadRecording(
            f"{where} names no format: this is no recording (a trace of .jsonl is for people and programs, and lacks "
            "the bytes); `pykafkad record` writes one"
        )
    if found != FORMAT:
        raise BadRecording(
            f"{where} names format {found!r} of {row.get('by', 'an unknown version')}; this is pykafkad {__version__}, "
            f"which reads format {FORMAT}"
        )


def _event(where: str, row: Any) -> Event:
    try:
        is_request = "request" in row
        text = row["request" if is_request else "answer"]
        frame = None if text is None and not is_request else b64decode(text, validate=True)
        connection = row["connection"]
        if type(connection) is not int:
            raise TypeError
    except (TypeError, KeyError, ValueError):
        raise BadRecording(
            f"{where} is neither a request nor an answer of a connection, such as "
            '{"connection": 1, "request": "AAM…"}'
        ) from None
    return Event(connection, is_request, frame)
