"""JSON Schemas (drafts 4 to 2020-12): the library `jsonschema` says what is one; `json_differences.py` compares two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import jsonschema
from jsonschema import validators

from pykafkad.registry import json_differences
from pykafkad.registry.schema import Parsed

MOST_PARTS = 5000
"""So many objects a schema may have: the library needs up to half a millisecond for each."""


class _Value(NamedTuple):
    """A schema's JSON with that of the schemas that it refers to, by name."""

    schema: Any
    referred: dict[str, Any]


def parse(text: str, references: Sequence[tuple[str, str]]) -> Parsed:
    """See `schema.Kind`."""
    loaded = _loaded(text)
    if not isinstance(loaded, (dict, bool)):
        raise ValueError("it is no JSON Schema: an object, true or false")
    try:
        if _parts(loaded) > MOST_PARTS:
            raise ValueError(f"it is too large: more than {MOST_PARTS} objects")
        default = validators.Draft7Validator
        validators.validator_for(loaded, default=default).check_schema(loaded)
    except (jsonschema.SchemaError, RecursionError) as error:
        told = getattr(error, "message", error)
        place = "/".join(map(str, getattr(error, "absolute_path", ())))
        raise ValueError(f"it is no JSON Schema: {told}" + (f" at {place}" if place else "")) from None
    value = _Value(loaded, {name: _loaded(referred) for name, referred in references})
    return Parsed(json.dumps(loaded, separators=(",", ":"), ensure_ascii=False), value)


def _parts(value: Any) -> int:
    """How many objects there are."""
    count, left = 0, [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            count += 1
            left.extend(each.values())
        elif isinstance(each, list):
            left.extend(each)
    return count


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON Schema: {error}") from None


def normalized(parsed: Parsed) -> str:
    """See `schema.Kind`: the order of names does not count."""
    return json.dumps(parsed.value.schema, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def incompatibilities(reader: Parsed, writer: Parsed) -> list[str]:
    """See `schema.Kind`."""
    found = json_differences.differences(*writer.value, *reader.value)
    return [f"{{errorType:'{each.kind}', description:'{each.text}'}}" for each in found]
