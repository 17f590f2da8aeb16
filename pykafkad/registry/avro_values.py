"""Values of an Avro schema as JSON, by the library of the Avro project."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import avro.errors
import avro.io

from pykafkad.cli.output import json_bytes
from pykafkad.registry import avro_schemas

_REFUSED = (
    *(avro.errors.AvroException, struct.error, ArithmeticError, AssertionError, AttributeError, LookupError),
    *(MemoryError, TypeError),
)
"""What the library raises for bytes and values that are none of a schema, besides ValueError."""

_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    "timestamp-millis": datetime.fromisoformat,
    "timestamp-micros": datetime.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
}
"""Logical types whose values are text in JSON."""


def codec(text: str, references: Sequence[tuple[str, str]]) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """What reads and what writes values by a schema; both raise ValueError, as does this."""
    schema = avro_schemas.parse(text, references).value

    def decode(data: bytes) -> Any:
        stream = io.BytesIO(data)
        try:
            value = avro.io.DatumReader(schema).read(avro.io.BinaryDecoder(stream))
        except _REFUSED as error:
            raise ValueError(str(error) or type(error).__name__) from None
        if left := len(data) - stream.tell():
            raise ValueError(f"{left} bytes are left")
        return _as_json(value)

    def encode(value: Any) -> bytes:
        stream = io.BytesIO()
        try:
            avro.io.DatumWriter(schema).write(_datum(schema, value), avro.io.BinaryEncoder(stream))
        except _REFUSED as error:
            raise ValueError(str(error) or type(error).__name__) from None
        return stream.getvalue()

    return decode, encode


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    if isinstance(value, bytes):
        return json_bytes(value)
    if isinstance(value, (date, time, datetime)):
        return value.isoformat()
    return str(value) if isinstance(value, (Decimal, UUID)) else value


def _datum(schema: Any, value: Any) -> Any:
    """A value of JSON as the library takes it. What does not fit stays, and is refused by the library."""
    kind = schema.type
    if kind in ("union", "error_union"):
        return _of_union(schema, value)
    logical = getattr(schema, "logical_type", None)
    if logical in _FROM_TEXT and isinstance(value, str):
        return _FROM_TEXT[logical](value)
    if kind in ("bytes", "fixed"):
        if isinstance(value, dict) and value.keys() == {"hex"} and isinstance(value["hex"], str):
            return bytes.fromhex(value["hex"])
        return value.encode() if isinstance(value, str) else value
    if kind in ("float", "double") and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in ("record", "error", "request") and isinstance(value, dict):
        known = {each.name: each for each in schema.fields}
        if unknown := sorted(value.keys() - known.keys()):
            raise ValueError(f"{schema.name} has no field {', '.join(map(str, unknown))}")
        return {
            name: _datum(each.type, value.get(name, each.default if each.has_default else None))
            for name, each in known.items()
        }
    if kind == "array" and isinstance(value, list):
        return [_datum(schema.items, each) for each in value]
    if kind == "map" and isinstance(value, dict):
        return {name: _datum(schema.values, each) for name, each in value.items()}
    return value


def _of_union(schema: Any, value: Any) -> Any:
    """By the first of the types that takes it."""
    for each in schema.schemas:
        try:
            datum = _datum(each, value)
        except (ValueError, InvalidOperation):
            continue
        if each.validate(datum) is not None:
            return datum
    return value
