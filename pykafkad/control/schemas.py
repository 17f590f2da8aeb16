"""JSON schemas, as far as the control API needs them: written in short, and checked.

A schema is a dictionary as OpenAPI 3.1 has it, so the description is made of what the checks read. Of the keywords
`KEYWORDS` are known, and no others may be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pykafkad.control.api_errors import ApiError
from pykafkad.testing.options import unknown

Schema = Mapping[str, Any]

KEYWORDS = frozenset(
    (
        "type", "description", "default", "enum", "minimum", "exclusiveMinimum", "maximum", "maxLength", "maxItems",
        "minItems", "items", "properties", "required", "additionalProperties", "maxProperties",
    )
)  # fmt: skip

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
MOST_CHARACTERS = 100_000
"""Of a text whose schema sets no limit of its own."""

MOST = 2**63 - 1
"""Of a number whose schema sets no limit of its own, and below zero as much: Kafka has none with more bits."""

MOST_ITEMS = 10_000
"""Of an array whose schema sets no limit of its own."""

MOST_NAME_CHARACTERS = 8_000
"""Of a name: Kafka's longest text has 32 767 bytes, and a character may take four."""

_FREE_NAME: Schema = {"type": "string", "maxLength": MOST_NAME_CHARACTERS}

_WHOLE = re.compile(r"-?\d+", re.ASCII)


def text(description: str = "", **more: Any) -> Schema:
    """A string."""
    return _of("string", description, more)


def integer(description: str = "", **more: Any) -> Schema:
    """A whole number."""
    return _of("integer", description, more)


def number(description: str = "", **more: Any) -> Schema:
    """A number."""
    return _of("number", description, more)


def boolean(description: str = "", **more: Any) -> Schema:
    """True or false."""
    return _of("boolean", description, more)


def array(items: Schema, description: str = "", **more: Any) -> Schema:
    """A list."""
    return _of("array", description, {"items": items, **more})


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def mapping(values: Schema, description: str = "") -> Schema:
    """An object with any names, and values of one schema."""
    return _of("object", description, {"additionalProperties": values})


def anything(description: str = "") -> Schema:
    """An object of which nothing is said."""
    return _of("object", description, {"additionalProperties": True})


def record(properties: Mapping[str, Schema], description: str = "", optional: tuple[str, ...] = ()) -> Schema:
    """An object with these properties and no others. A property with a default, or in `optional`, may be left out."""
    required = [name for name, each in properties.items() if "default" not in each and name not in optional]
    rest = {"properties": dict(properties), "additionalProperties": False}
    return _of("object", description, {**rest, **({"required": required} if required else {})})


def _of(kind: str, description: str, more: Mapping[str, Any]) -> Schema:
    assert more.keys() <= KEYWORDS
    return {"type": kind, **({"description": description} if description else {}), **_limits(kind, more), **more}


def _limits(kind: str, more: Mapping[str, Any]) -> Schema:
    """Those that hold where a schema sets none of its own."""
    if kind == "string" and "enum" not in more:
        return {"maxLength": MOST_CHARACTERS}
    if kind in ("integer", "number"):
        return {"maximum": MOST, **({} if "exclusiveMinimum" in more else {"minimum": -MOST})}
    if kind == "array":
        return {"maxItems": MOST_ITEMS}
    return {"maxProperties": MOST_ITEMS} if isinstance(more.get("additionalProperties"), Mapping) else {}


def checked(schema: Schema, value: Any, where: str) -> Any:
    """The value, with defaults for what was left out. Raises ApiError that names `where`, in the value, what is wrong
    and what is allowed."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    is_kind = any(isinstance(value, _TYPES[kind]) for kind in kinds) and not (
        isinstance(value, bool) and "boolean" not in kinds
    )
    if not is_kind:
        raise ApiError(400, f"{_shown(value)} is no {' and no '.join(kinds)}", where, " or ".join(kinds))
    if "enum" in schema and value not in schema["enum"]:
        known = [each for each in schema["enum"] if each is not None]
        raise ApiError(400, unknown("value", value, map(str, known)), where, ", ".join(map(str, known)))
    if isinstance(value, str):
        _check_text(schema, value, where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(schema, value, where)
    if isinstance(value, list):
        return _checked_list(schema, value, where)
    if isinstance(value, dict):
        return _checked_object(schema, value, where)
    return value


def _check_text(schema: Schema, value: str, where: str) -> None:
    most = schema.get("maxLength", MOST_CHARACTERS)
    if len(value) > most:
        raise ApiError(400, f"a text of {len(value)} characters", where, f"at most {most} characters")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        # JSON may name half of a pair of surrogates.
        raise ApiError(400, f"it can't be written as UTF-8: {error.reason}", where, "text") from None


def _check_number(schema: Schema, value: float, where: str) -> None:
    least, above, most = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum", MOST)
    if least is None and above is None:
        least = -MOST
    allowed = [
        *([] if least is None else [f"from {least}"]),
        *([] if above is None else [f"above {above}"]),
        f"to {most}",
    ]
    # Not a number is in no range, and JSON of Python's reads NaN.
    fits = value == value and (least is None or value >= least) and (above is None or value > above)
    if not fits or value > most:
        raise ApiError(400, f"{value} is out of range", where, " ".join(allowed))


def _checked_list(schema: Schema, value: list[Any], where: str) -> list[Any]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", MOST_ITEMS)
    if not least <= len(value) <= most:
        raise ApiError(400, f"a list of {len(value)}", where, f"{least} to {most} items")
    return [checked(schema["items"], each, f"{where}[{index}]") for index, each in enumerate(value)]


def _checked_object(schema: Schema, value: dict[str, Any], where: str) -> dict[str, Any]:
    properties, rest = schema.get("properties", {}), schema["additionalProperties"]
    found = {name: each["default"] for name, each in properties.items() if "default" in each}
    most = schema.get("maxProperties", MOST_ITEMS)
    if len(value) > most:
        raise ApiError(400, f"an object of {len(value)} names", where, f"at most {most} names")
    for name, each in value.items():
        inner = f"{where}.{name}"
        if name in properties:
            found[name] = checked(properties[name], each, inner)
        elif rest is False:
            raise ApiError(400, unknown("name", name, properties), where, ", ".join(properties) or "nothing")
        elif rest is True:
            found[name] = each
        else:
            _check_text(_FREE_NAME, name, where)
            found[name] = checked(rest, each, inner)
    for name in schema.get("required", ()):
        if name not in value:
            raise ApiError(400, f"{name} is missing", where, ", ".join(schema["required"]))
    return found


def from_text(schema: Schema, value: str, where: str) -> Any:
    """The value of a part of an address, which is a text, as its schema has it. Raises ApiError."""
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    given: Any = value
    if kind == "boolean" and value in ("true", "false"):
        given = value == "true"
    # Python reads other digits, and underscores among them, too.
    elif kind == "number" or (kind == "integer" and _WHOLE.fullmatch(value)):
        try:
            given = int(value) if kind == "integer" else float(value)
        except ValueError:
            pass
    return checked({**schema, "type": kind}, given, where)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
