"""A wire trace as text for people, and as JSON lines for programs."""

from __future__ import annotations

from pykafkad import errors, uuids
from pykafkad.handlers import table
from pykafkad.server.exchanges import read_frame
from pykafkad.server.logs import timestamp
from pykafkad.wire import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.server.exchanges import Exchange

MOST_ITEMS = 100
"""So many items of one list are shown, and how many more there are."""
MOST_CODES = 10_000
"""In so many values of an answer error codes are looked for."""
_UUID_BYTES = 16


SUFFIXES = (".pcap", ".jsonl", ".txt")


def check_path(path: str) -> None:
    """Raises ValueError for a file whose name does not tell the format."""
    if not path.endswith(SUFFIXES):
        raise ValueError(f"{path}: the name of a trace ends with one of {', '.join(SUFFIXES)}")


def as_file(path: str, exchanges: Callable[[], list[Exchange]]) -> bytes:
    """The content of a file in the format that its name tells. Raises ValueError."""
    check_path(path)
    if path.endswith(".pcap"):
        from pykafkad.server import pcap

        return pcap.write(exchanges())
    return (text if path.endswith(".txt") else json_lines)(exchanges()).encode("utf-8", "backslashreplace")


def text(exchanges: Iterable[Exchange]) -> str:
    """A line for each exchange."""
    flexible = frames.flexible_versions()
    return "".join(f"{line(each, flexible)}\n" for each in exchanges)


def line(exchange: Exchange, flexible: dict[int, int]) -> str:
    """Time, API, client, what was asked for in short, how it ended."""
    client_id, request, answer = read_frame(exchange, flexible)
    took = "no answer" if exchange.duration_ms is None else f"{exchange.duration_ms:.3f} ms"
    found = error_names(answer)
    about = _about(request)
    what = f"{_name(exchange.key)} v{exchange.version} #{exchange.correlation_id}"
    who = f"{client_id if client_id.isprintable() else ascii(client_id)} {exchange.peer}"
    return f"{timestamp(int(exchange.time_ms))} {who} {what}: {', '.join(filter(None, (about, took, ' '.join(found))))}"


def json_lines(exchanges: Iterable[Exchange]) -> str:
    """A JSON object in a line for each exchange, with the decoded messages."""
    import json

    flexible = frames.flexible_versions()
    return "".join(f"{json.dumps(fields(each, flexible))}\n" for each in exchanges)


def fields(exchange: Exchange, flexible: dict[int, int]) -> dict[str, Any]:
    """An exchange as plain values. `request` and `answer` are null where they are not there or were not kept whole."""
    client_id, request, answer = read_frame(exchange, flexible)
    return {
        "time": timestamp(int(exchange.time_ms)),
        "connection": exchange.connection_id,
        "peer": exchange.peer,
        "client_id": client_id,
        "api": _name(exchange.key),
        "key": exchange.key,
        "version": exchange.version,
        "correlation_id": exchange.correlation_id,
        "is_answered": exchange.answer is not None,
        "duration_ms": None if exchange.duration_ms is None else round(exchange.duration_ms, 3),
        "request_bytes": exchange.request_bytes,
        "answer_bytes": exchange.answer_bytes,
        "errors": error_names(answer),
        "request": _plain(request),
        "answer": _plain(answer),
    }


def summary(exchange: Exchange, flexible: dict[int, int]) -> dict[str, Any]:
    """An exchange in short, as plain values: what `line` tells."""
    client_id, request, answer = read_frame(exchange, flexible)
    return {
        "time_ms": int(exchange.time_ms),
        "client_id": client_id,
        "peer": exchange.peer,
        "api": _name(exchange.key),
        "version": exchange.version,
        "about": _about(request),
        "errors": error_names(answer),
        "is_answered": exchange.answer is not None,
        "duration_ms": None if exchange.duration_ms is None else round(exchange.duration_ms, 3),
        "request_bytes": exchange.request_bytes,
        "answer_bytes": exchange.answer_bytes,
    }


def error_names(answer: Any) -> list[str]:
    """The names of the errors in an answer, each once."""
    found: dict[str, None] = {}
    looked_at = 0
    stack = [answer]
    while stack and looked_at < MOST_CODES:
        each = stack.pop()
        looked_at += 1
        if isinstance(each, list):
            stack.extend(reversed(each))
        elif hasattr(each, "_root"):
            for name in each._root.__slots__:
                value = getattr(each, name)
                if name.endswith("error_code") and value:
                    found[errors.name(value)] = None
                elif isinstance(value, list) or hasattr(value, "_root"):
                    stack.append(value)
    return list(found)


def _name(key: int) -> str:
    row = table.by_key(key)
    return f"API {key}" if row is None else row.name


def _about(request: Any) -> str:
    """The names of what a request is about: groups, transactions, topics."""
    parts: list[str] = []
    for name in ("group_id", "transactional_id", "member_id"):
        value = getattr(request, name, None)
        if isinstance(value, str) and value:
            parts.append(value)
    for name in ("topics", "topic_data", "responses"):
        rows = getattr(request, name, None)
        if isinstance(rows, list):
            names = [getattr(row, "name", None) or getattr(row, "topic", None) or row for row in rows[:MOST_ITEMS]]
            parts += dict.fromkeys(each for each in names if isinstance(each, str))
    return " ".join(part if part.isprintable() else ascii(part) for part in parts)


def _plain(value: Any) -> Any:
    if hasattr(value, "_root"):
        return {name: _plain(getattr(value, name)) for name in value._root.__slots__}
    if isinstance(value, list):
        shown = [_plain(each) for each in value[:MOST_ITEMS]]
        return shown if len(value) <= MOST_ITEMS else [*shown, f"and {len(value) - MOST_ITEMS} more"]
    if isinstance(value, bytes | bytearray | memoryview):
        # Ids have sixteen bytes; anything else is somebody's content.
        return uuids.to_text(bytes(value)) if len(value) == _UUID_BYTES else f"{len(value)} bytes"
    return value
