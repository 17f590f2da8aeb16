"""Routes of the web page: its files, what it asks for, and the events that it listens to."""

from __future__ import annotations

import os
from functools import cache, partial
from typing import Any

from pykafkad.control import events, schemas, values
from pykafkad.control.api_errors import NOT_FOUND, ApiError
from pykafkad.control.route import Content, Control, Route, Stream
from pykafkad.control.schemas import Schema

EVENTS_TYPE = "text/event-stream"
_HTML = "text/html; charset=utf-8"
_SCRIPT = "text/javascript; charset=utf-8"
_STYLE = "text/css; charset=utf-8"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Of the page: nothing but its own files and this API, and no markup that is made of texts."""

FILES = {
    "style.css": _STYLE,
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(
        ("app.js", "api.js", "dom.js", "format.js", "list.js", "overview.js", "topics.js", "groups.js", "trace.js",
         "faults.js", "tables.js", "schemas.js"),
        _SCRIPT,
    ),
}  # fmt: skip
"""The files of the page, in the folder `page`, with their media types."""

_MANY = 1_000_000


@cache
def _file(name: str) -> bytes:
    with open(os.path.join(os.path.dirname(__file__), "page", name), "rb") as file:
        return file.read()


def _page_file(_: Control, __: dict[str, Any], name: str, kind: str) -> Content:
    return Content(kind, _file(name), (("Content-Security-Policy", POLICY), ("X-Frame-Options", "DENY")))


def describe_topic(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One topic."""
    found: dict[str, Any] | None = control.operations.look([], topic=given["topic"])["topic"]
    if found is None:
        raise ApiError(NOT_FOUND, f"there is no topic {given['topic']}", "path topic", "GET /topics lists them")
    return found


def topic_settings(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """Of one topic."""
    return {"settings": control.operations.settings(given["topic"])}


def broker_settings(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """Of the broker."""
    return {"settings": control.operations.settings()}


def connections(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """Who is connected."""
    return control.operations.look(["connections"])


def timeline(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """What happened."""
    return control.operations.look([], events_after=given["after"])


def read_request(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One traced request."""
    found = control.operations.recorded().request(given["number"])
    if found is None:
        raise ApiError(
            NOT_FOUND, f"request {given['number']} is not kept", "path number", "GET /trace has those that are"
        )
    return found


def lint(control: Control, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the trace shows of clients."""
    return {"findings": [each._asdict() for each in control.operations.lint(upgrade=arguments["upgrade"])]}


def read_events(control: Control, given: dict[str, Any]) -> Stream:
    """Until the client or the API goes."""
    return Stream(EVENTS_TYPE, events.begin(control, given))


SETTINGS = schemas.record(
    {
        "settings": schemas.array(
            schemas.record(
                {
                    "name": schemas.text(),
                    "value": schemas.nullable(schemas.text("null: a secret, or none")),
                    "source": schemas.text("where it comes from, in Kafka's words, such as default"),
                    "is_read_only": schemas.boolean(),
                    "is_sensitive": schemas.boolean(),
                }
            )
        )
    }
)
_OFFSET = schemas.nullable(schemas.integer())
PARTITION = schemas.record(
    {
        "partition": schemas.integer(),
        "leader": schemas.integer("a broker's id; -1: none"),
        "replicas": schemas.array(schemas.integer()),
        "isr": schemas.array(schemas.integer()),
        "start_offset": _OFFSET,
        "end_offset": _OFFSET,
        "high_watermark": _OFFSET,
        "bytes": _OFFSET,
    }
)
CONNECTION = schemas.record(
    {
        "id": schemas.integer(),
        "broker": schemas.integer("the node id of the one that it is a client of"),
        "peer": schemas.text(),
        "listener": schemas.text(),
        "principal": schemas.text(),
        "software": schemas.text("name and version, as far as the client has told"),
        "client_id": schemas.text("of the request in service; empty while there is none"),
        "waits_in": schemas.text("the API of that request"),
        "idle_seconds": schemas.integer(),
        "outbox_bytes": schemas.integer("of answers that the client has not taken"),
    }
)
EVENT = schemas.record(
    {
        "number": schemas.integer(),
        "time_ms": schemas.integer(),
        "level": schemas.text(),
        "part": schemas.text("of the broker"),
        "event": schemas.text("such as topic-created, group-rebalancing, fault-fired"),
        "fields": schemas.mapping(schemas.text()),
    }
)


def _file_route(name: str, path: str, file: str, kind: str) -> Route:
    summary = "the web page; it asks for the token itself"
    call = partial(_page_file, name=file, kind=kind)
    return Route(name, "GET", path, summary, call, kind, is_open=True, is_file=path != "/")


_PARTS = f"some of {', '.join(events.PARTS)}, with commas between them"
_IN_TOPIC: dict[str, Schema] = {"topic": values.NAME}

ROUTES = (
    _file_route("page", "/", "index.html", _HTML),
    *(_file_route(name, f"/page/{name}", name, kind) for name, kind in FILES.items()),
    Route(
        "readEvents",
        "GET",
        "/events",
        "server-sent events: what there is and each change of it, for as long as the connection lasts",
        read_events,
        EVENTS_TYPE,
        query={
            "of": schemas.text(_PARTS, default="counts,timeline"),
            "topic": schemas.text("whose partitions and new records are told; empty: none", default="", maxLength=1000),
            "partition": schemas.integer("of the topic, whose records are told; -1: all", default=-1, minimum=-1),
            "group": schemas.text("whose members and offsets are told; empty: none", default="", maxLength=8000),
        },
    ),
    Route(
        "describeTopic",
        "GET",
        "/topics/{topic}",
        "partitions of a topic with their offsets, and the settings that it has of its own",
        describe_topic,
        schemas.record(
            {
                "name": schemas.text(),
                "partitions": schemas.array(PARTITION, maxItems=_MANY),
                "settings": schemas.mapping(schemas.text()),
            }
        ),
        in_path=_IN_TOPIC,
    ),
    Route(
        "topicSettings", "GET", "/topics/{topic}/config", "all settings of a topic", topic_settings, SETTINGS,
        in_path=_IN_TOPIC,
    ),
    Route("settings", "GET", "/config", "all settings of the broker", broker_settings, SETTINGS),
    Route(
        "connections",
        "GET",
        "/connections",
        "who is connected, and what is under way",
        connections,
        schemas.record({"connections": schemas.array(CONNECTION)}),
    ),
    Route(
        "timeline",
        "GET",
        "/timeline",
        "what happened lately: topics, groups, rebalances, faults that fired, what was refused, calls of this API",
        timeline,
        schemas.record({"events": schemas.array(EVENT)}),
        query={"after": schemas.integer("the number of an event: only later ones", default=0, minimum=0)},
    ),
    Route(
        "lint",
        "GET",
        "/lint",
        "what the trace shows of clients that cost, or that will not work for long, with what to do",
        lint,
        schemas.record(
            {
                "findings": schemas.array(
                    schemas.record(
                        {
                            "rule": schemas.text("such as tiny-batches"),
                            "client_id": schemas.text(),
                            "seen": schemas.text(),
                            "advice": schemas.text(),
                        }
                    )
                )
            }
        ),
        query={"upgrade": schemas.boolean("also what would change with Kafka 4.x and its clients", default=False)},
    ),
    Route(
        "readRequest",
        "GET",
        "/trace/{number}",
        "one recorded request with its answer, decoded",
        read_request,
        schemas.anything("as in Python's `trace.requests()`"),
        in_path={"number": schemas.integer(minimum=1)},
    ),
)  # fmt: skip
