"""Server-sent events: what a broker holds, told once whole and then as it changes.

A stream looks at the broker some times a second, by one call of its loop. Of lists only the rows that have changed are
sent, of the trace and the timeline what is new."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

from pykafkad.control import fault_calls, values
from pykafkad.control.api_errors import ApiError
from pykafkad.control.route import Control
from pykafkad.testing import topics
from pykafkad.testing.broker_loop import BrokerEnded
from pykafkad.testing.groups import DEAD
from pykafkad.testing.options import unknown
from pykafkad.testing.records import Record, Wanted
from pykafkad.testing.wire_client import Refused

KEYS = {"topics": "name", "groups": "name", "connections": "id"}
"""Lists of which changes are told, with the name of what tells their rows apart."""

PARTS = ("counts", *KEYS, "faults", "trace", "timeline")

PAUSE_SECONDS = 0.25
COMMENT_EVERY = 40
"""After so many looks at which nothing was new something is said all the same: the client sees that it is alive."""

FIRST_RECORDS, MOST_RECORDS = 50, 200
MOST_REQUESTS = 200
MOST_JSON_CHARACTERS = 16_384
MOST_VALUE_BYTES = 4096
"""Of each key and value so much is shown; a look at the one record shows all."""


def begin(control: Control, given: dict[str, Any]) -> Callable[[Callable[[], bool]], Iterator[bytes]]:
    """The parts of a stream, as `Stream` has them. Raises ApiError for what can't be told, and if too many listen."""
    parts = [each for each in given["of"].split(",") if each]
    for name in parts:
        if name not in PARTS:
            raise ApiError(400, unknown("part", name, PARTS), "query of", ", ".join(PARTS))
    if given["partition"] >= 0 and not given["topic"]:
        raise ApiError(400, "there is no topic whose partition that could be", "query partition", "with a topic")
    watch = _Watch(control, parts, given)
    slot = control.streaming()
    slot.__enter__()
    return lambda is_gone: _told(control, watch, slot, is_gone)


def _told(control: Control, watch: _Watch, slot: Any, is_gone: Callable[[], bool]) -> Iterator[bytes]:
    silent = 0
    try:
        # Something at once: the client knows that it listens.
        yield b"retry: 1000\n\n"
        while not is_gone():
            found = b"".join(_event(name, value) for name, value in watch.news())
            silent = 0 if found else silent + 1
            if found:
                yield found
            elif silent >= COMMENT_EVERY:
                silent = 0
                yield b":\n\n"
            if control.closing.wait(PAUSE_SECONDS):
                break
    finally:
        slot.__exit__(None, None, None)


def _event(name: str, value: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


class _Watch:
    """What one stream has told."""

    def __init__(self, control: Control, parts: list[str], given: dict[str, Any]) -> None:
        self._operations = control.operations
        self._control = control
        self._parts = parts
        self._lists = [each for each in parts if each in KEYS or each == "counts"]
        self._topic, self._group = given["topic"], given["group"]
        self._partition = None if given["partition"] < 0 else given["partition"]
        self._told: dict[str, Any] = {}
        self._rows: dict[str, dict[Any, Any]] = {name: {} for name in KEYS}
        self._last_event = 0
        # Requests up to this number were told, but for those that had no answer yet.
        self._last_request = 0
        self._unanswered: list[int] = []
        self._positions: dict[int, int] | None = None

    def news(self) -> Iterator[tuple[str, Any]]:
        """Names and values of events; while the broker does not run, that it does not."""
        if not self._operations.is_running:
            yield from self._once("state", {"is_running": False})
            return
        try:
            yield from self._news()
        except (BrokerEnded, OSError, RuntimeError) as error:
            yield from self._once("state", {"is_running": False, "why": str(error)})

    def _news(self) -> Iterator[tuple[str, Any]]:
        operations = self._operations
        after = self._last_event if "timeline" in self._parts else None
        found = operations.look(self._lists, self._topic or None, after)
        yield from self._once("state", {"is_running": True, "bootstrap": operations.bootstrap})
        if "counts" in found:
            yield from self._once("counts", found["counts"])
        for name, key in KEYS.items():
            if name in found:
                yield from self._changed(name, {row[key]: row for row in found[name]})
        if found.get("events"):
            self._last_event = found["events"][-1]["number"]
            yield "timeline", found["events"]
        if "faults" in self._parts:
            yield from self._once("faults", fault_calls.list_faults(self._control, {})["faults"])
        if "trace" in self._parts:
            yield from self._requests()
        if self._topic:
            yield from self._once("topic", found["topic"])
            if found["topic"] is not None:
                yield from self._records()
        if self._group:
            group = operations.group(self._group)
            there = None if group.state == DEAD and not group.offsets else values.of_group(group)
            yield from self._once("group", there)

    def _once(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        if name not in self._told or self._told[name] != value:
            self._told[name] = value
            yield name, value

    def _changed(self, name: str, rows: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
        before = self._rows[name]
        is_first = name not in self._told
        changed = [row for key, row in rows.items() if before.get(key) != row]
        gone = [key for key in before if key not in rows]
        self._rows[name], self._told[name] = rows, True
        if changed or gone or is_first:
            yield name, {"rows": changed, "gone": gone}

    def _requests(self) -> Iterator[tuple[str, Any]]:
        trace = self._operations.recorded()
        after = min([self._last_request, *(number - 1 for number in self._unanswered)])
        # Those that wait long are forgotten, so that what is between is not read again and again.
        after = max(after, self._last_request - MOST_REQUESTS)
        found = trace.summaries(after, 2 * MOST_REQUESTS)
        new = [each for each in found if each["number"] > self._last_request]
        known = [each for each in found if each["number"] in self._unanswered and each["is_answered"]]
        if found:
            self._last_request = max(self._last_request, found[-1]["number"])
        self._unanswered = [each["number"] for each in found if not each["is_answered"]]
        yield from self._once("trace-state", {"is_on": trace.is_on})
        if new or known:
            yield "trace", known + new[-MOST_REQUESTS:]

    def _records(self) -> Iterator[tuple[str, Any]]:
        """The last records at first, and then new ones: of many the last."""
        try:
            yield from self._new_records()
        except (Refused, ValueError) as error:
            # It was deleted just now, or has no such partition.
            yield from self._once("records-error", str(error))

    def _new_records(self) -> Iterator[tuple[str, Any]]:
        operations, topic = self._operations, self._topic
        wanted = Wanted(self._partition, limit=FIRST_RECORDS, last=True)
        ends = {index: end for (_, index), (_, end) in operations.bounds(topic, wanted).items()}
        found: list[Record] = []
        left_out = 0
        if self._positions is None:
            found, left_out = operations.find_records(topic, wanted)
        else:
            for index, end in ends.items():
                begin = self._positions.get(index, 0)
                begin = 0 if begin > end else begin
                if end > begin:
                    first = max(begin, end - MOST_RECORDS)
                    left_out += first - begin
                    some = Wanted(index, first, MOST_RECORDS, isolation_level=topics.READ_UNCOMMITTED)
                    found += operations.find_records(topic, some).records
        is_first = self._positions is None
        self._positions = ends
        if found or is_first:
            ordered = sorted(found, key=lambda each: (each.timestamp_ms, each.partition, each.offset))
            yield "records", {"records": [self._shown(each) for each in ordered], "left_out": left_out}

    def _shown(self, record: Record) -> dict[str, Any]:
        """With what the schemas of the broker's registry say of it."""
        shown = _shown(record)
        if (registry := self._control.by_schema) is not None:
            for name, content in (("key", record.key), ("value", record.value)):
                shown[f"{name}_by_schema"] = registry.shown(content, MOST_JSON_CHARACTERS)
        return shown


def _shown(record: Record) -> dict[str, Any]:
    """A record with the beginnings of its key and value, which may have any bytes."""
    shown: dict[str, Any] = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "headers": [{"name": name, "value": _start(value)} for name, value in record.headers[:100]],
    }
    for name, content in (("key", record.key), ("value", record.value)):
        shown[name] = _start(content)
        shown[f"{name}_bytes"] = None if content is None else len(content)
    return shown


def _start(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content[:MOST_VALUE_BYTES]).decode()
