"""Routes for saved states, the clock, the trace and the report."""

from __future__ import annotations

from typing import Any

from pykafkad.control import schemas
from pykafkad.control.route import Content, Control, Route
from pykafkad.control.topic_calls import DONE
from pykafkad.testing.clocks import MAX_SECONDS

SAVED = schemas.record({"name": schemas.text()})
CLOCK = schemas.record({"ahead_seconds": schemas.number("how far the broker's clock was moved")})
TRACE = schemas.record({"is_on": schemas.boolean("whether requests are recorded")})
TEXT_TYPE = "text/plain; charset=utf-8"
MOST_REQUESTS = 10_000
_NAME = schemas.text("of the saved state", maxLength=200)
_IN_SNAPSHOT = {"name": _NAME}


def save(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """The state of everything."""
    control.operations.save(given["name"])
    return {"name": given["name"]}


def rewind(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """To a saved state."""
    with control.going_back:
        control.operations.rewind(given["name"], given["topic"])
    return {"done": True}


def delete_saved(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """A saved state."""
    control.operations.delete_saved(given["name"])
    return {"done": True}


def clock(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """How far it is ahead."""
    return {"ahead_seconds": control.operations.clock.ahead_seconds}


def advance(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """Move it."""
    with control.lock:
        control.operations.clock.advance(given["seconds"])
    return clock(control, {})


def start_trace(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """From now on."""
    return {"is_on": control.operations.trace().is_on}


def stop_trace(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """Record no more."""
    control.operations.recorded().stop()
    return {"is_on": False}


def clear_trace(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """Forget what was recorded."""
    trace = control.operations.recorded()
    trace.clear()
    return {"is_on": trace.is_on}


def read_trace(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """The last requests, decoded."""
    trace = control.operations.recorded()
    found, left_out = trace.last_requests(given["limit"])
    return {"is_on": trace.is_on, "requests": found, "left_out": left_out}


def report(control: Control, _: dict[str, Any]) -> Content:
    """For people."""
    return Content(TEXT_TYPE, f"{control.operations.report()}\n".encode("utf-8", "backslashreplace"))


def _trace_file(suffix: str, kind: str, summary: str) -> Route:
    def call(control: Control, _: dict[str, Any]) -> Content:
        return Content(kind, control.operations.recorded().content(f"trace.{suffix}"))

    return Route(f"readTraceAs{suffix.capitalize()}", "GET", f"/trace.{suffix}", summary, call, kind)


ROUTES = (
    Route(
        "save",
        "POST",
        "/snapshots",
        "saves the state of everything under a name",
        save,
        SAVED,
        body=schemas.record({"name": _NAME}),
        status=201,
    ),
    Route(
        "rewind",
        "POST",
        "/snapshots/{name}/restore",
        "goes back to a saved state: everything (faults are released), or one topic",
        rewind,
        DONE,
        in_path=_IN_SNAPSHOT,
        body=schemas.record({"topic": schemas.nullable(schemas.text("null: everything", default=None))}),
    ),
    Route(
        "deleteSaved",
        "DELETE",
        "/snapshots/{name}",
        "forgets a saved state",
        delete_saved,
        DONE,
        in_path=_IN_SNAPSHOT,
    ),
    Route("getClock", "GET", "/clock", "how far the broker's clock is ahead of real time", clock, CLOCK),
    Route(
        "advanceClock",
        "POST",
        "/clock/advance",
        "lets time pass for the broker: sessions and transactions time out, retention is done",
        advance,
        CLOCK,
        body=schemas.record({"seconds": schemas.number(exclusiveMinimum=0, maximum=MAX_SECONDS)}),
    ),
    Route(
        "startTrace",
        "POST",
        "/trace/start",
        "records the requests of clients and their answers from now on",
        start_trace,
        TRACE,
    ),
    Route("stopTrace", "POST", "/trace/stop", "records no more; what was recorded stays", stop_trace, TRACE),
    Route("clearTrace", "DELETE", "/trace", "forgets what was recorded", clear_trace, TRACE),
    Route(
        "readTrace",
        "GET",
        "/trace",
        "the last requests that were recorded, decoded, oldest first",
        read_trace,
        schemas.record(
            {
                "is_on": schemas.boolean("whether requests are recorded"),
                "requests": schemas.array(schemas.anything("as in Python's `trace.requests()`")),
                "left_out": schemas.integer("older ones beyond the limit"),
            }
        ),
        query={"limit": schemas.integer("so many at most", default=1000, minimum=1, maximum=MOST_REQUESTS)},
    ),
    _trace_file("txt", TEXT_TYPE, "the same, a line for each"),
    _trace_file("jsonl", "application/jsonl", "the same, an object in a line"),
    _trace_file("pcap", "application/vnd.tcpdump.pcap", "the same, packets for Wireshark"),
    Route(
        "report",
        "GET",
        "/report",
        "what there is, for people: topics, groups, faults, last requests, hints",
        report,
        TEXT_TYPE,
    ),
)
