"""Routes for the schemas of the broker's registry (`--registry`), and what they mean for records."""

from __future__ import annotations

import json
from typing import Any

from pykafkad.control import schemas, values
from pykafkad.control.api_errors import BAD_REQUEST, NOT_FOUND, ApiError
from pykafkad.control.route import Control, Route

_PARTS = ("key", "value")
MOST_SUBJECTS = 1000

_SCHEMA = {
    "id": schemas.integer(),
    "type": schemas.text("AVRO, JSON or PROTOBUF"),
    "name": schemas.text("what the schema calls its values; empty: it does not"),
    "schema": schemas.text(),
}


def describe_schema(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One schema."""
    if control.by_schema is None:
        raise ApiError(NOT_FOUND, "this broker has no schema registry", "path id")
    found: dict[str, Any] = control.by_schema.schema(given["id"])
    return found


def topic_schemas(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """Those that serializers use for a topic."""
    registry = control.by_schema
    if registry is None:
        return {"has_registry": False, "key": None, "value": None, "subjects": []}
    topic = given["topic"]
    found = {name: registry.latest(f"{topic}-{name}") for name in _PARTS}
    return {"has_registry": True, **found, "subjects": registry.subjects()[:MOST_SUBJECTS]}


def read(control: Control, found: dict[str, Any]) -> dict[str, Any]:
    """Records as JSON with their keys and values by schema."""
    if control.by_schema is not None:
        for record in found["records"]:
            for name in _PARTS:
                encoded = record[f"{name}_base64"]
                record[f"{name}_by_schema"] = control.by_schema.shown(values.from_base64(encoded))
    return found


def write(control: Control, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The records that a request gives, with keys and values as bytes where it names a schema for them. Raises
    ApiError."""
    records: list[dict[str, Any]] = given["records"]
    for name in _PARTS:
        wanted = given[f"{name}_schema"]
        if wanted is None:
            continue
        where = f"body.{name}_schema"
        if control.by_schema is None:
            raise ApiError(BAD_REQUEST, "this broker has no schema registry", where, "without it")
        encode = control.by_schema.encoder(wanted["subject"], wanted["message"], where)
        for index, record in enumerate(records):
            at = f"body.records[{index}].{name}"
            if record[f"{name}_base64"] is not None:
                raise ApiError(BAD_REQUEST, f"{name}_base64 is there, and {name}_schema", at, f"{name} with JSON")
            if record[name] is not None:
                try:
                    value = json.loads(record[name])
                except (ValueError, RecursionError) as error:
                    raise ApiError(BAD_REQUEST, f"it is no JSON: {error}", at, "what the schema describes") from None
                record[f"{name}_base64"], record[name] = values.to_base64(encode(value, at)), None
    return records


_LATEST = schemas.nullable(schemas.record({"subject": schemas.text(), **_SCHEMA}))

ROUTES = (
    Route(
        "topicSchemas",
        "GET",
        "/topics/{topic}/schemas",
        "the latest schemas of the subjects TOPIC-key and TOPIC-value, and the names of all subjects of the registry",
        topic_schemas,
        schemas.record(
            {
                "has_registry": schemas.boolean("serve --registry, or Broker(registry=True)"),
                "key": _LATEST,
                "value": _LATEST,
                "subjects": schemas.array(schemas.text(), maxItems=MOST_SUBJECTS),
            }
        ),
        in_path={"topic": values.NAME},
    ),
    Route(
        "describeSchema",
        "GET",
        "/schemas/{id}",
        "a schema of the broker's registry",
        describe_schema,
        schemas.record(_SCHEMA),
        in_path={"id": schemas.integer(minimum=0, maximum=2**31 - 1)},
    ),
)
