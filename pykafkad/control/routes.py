"""All routes of the control API, and the description that is made of them."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pykafkad
from pykafkad.control import (
    fault_calls,
    page_calls,
    schema_calls,
    schemas,
    state_calls,
    status_calls,
    topic_calls,
    wait_calls,
)
from pykafkad.control.api_errors import NOT_ALLOWED, NOT_FOUND, ApiError
from pykafkad.control.route import JSON, Content, Control, Route
from pykafkad.testing.options import unknown

DESCRIPTION = """What pykafkad.testing does to a broker, for programs in any language. Requests carry the header
`Authorization: Bearer TOKEN`. Names in requests that are not known are errors."""

ERROR = schemas.record(
    {
        "error": schemas.record(
            {
                "what": schemas.text("what is wrong, in words"),
                "where": schemas.text("where in the request; empty where it is not about a part of it"),
                "allowed": schemas.text("what is allowed there; empty where that is plain"),
                "kafka_error": schemas.text("the name of Kafka's error, if the broker refused; else empty"),
            }
        )
    },
)


def describe(_: Control, __: dict[str, Any]) -> Content:
    """The description of the API."""
    return _description()


@cache
def _description() -> Content:
    """Made once: anybody may ask for it."""
    return Content(JSON, json.dumps(openapi()).encode())


ROUTES: tuple[Route, ...] = (
    Route(
        "describe",
        "GET",
        "/openapi.json",
        "this description; asks for no token",
        describe,
        schemas.anything("OpenAPI 3.1"),
        is_open=True,
    ),
    *status_calls.ROUTES,
    *topic_calls.ROUTES,
    *schema_calls.ROUTES,
    *wait_calls.ROUTES,
    *fault_calls.ROUTES,
    *state_calls.ROUTES,
    *page_calls.ROUTES,
)

_PATTERNS = [
    (
        re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", re.escape(row.path).replace(r"\{", "{").replace(r"\}", "}"))),
        row,
    )
    for row in ROUTES
]


def find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of a request, and the parts of its path by their names. Raises ApiError."""
    methods = []
    for pattern, row in _PATTERNS:
        matched = pattern.fullmatch(path)
        if matched is None:
            continue
        if row.method == method:
            return row, matched.groupdict()
        methods.append(row.method)
    if methods:
        raise ApiError(NOT_ALLOWED, f"{method} is not done here", path, ", ".join(methods))
    paths = dict.fromkeys(row.path for row in ROUTES if not row.is_file)
    raise ApiError(NOT_FOUND, unknown("path", path, paths), "path", ", ".join(paths))


def openapi() -> dict[str, Any]:
    """The table as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for row in (each for each in ROUTES if not each.is_file):
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    return {
        "openapi": "3.1.0",
        "info": {"title": "pykafkad control API", "version": pykafkad.__version__, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(row: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": place, "required": place == "path", "schema": schema}
        for place, fields in (("path", row.in_path), ("query", row.query))
        for name, schema in fields.items()
    ]
    media, schema = (row.answer, {"type": "string"}) if isinstance(row.answer, str) else (JSON, row.answer)
    described: dict[str, Any] = {
        "operationId": row.name,
        "summary": row.summary,
        "responses": {
            str(row.status): {"description": "done", "content": {media: {"schema": schema}}},
            "default": {
                "description": "not done",
                "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if parameters:
        described["parameters"] = parameters
    if row.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": row.body}}}
    if row.is_open:
        described["security"] = []
    return described
