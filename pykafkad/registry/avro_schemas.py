"""Avro schemas, by the library of the Avro project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import avro.errors
import avro.name
import avro.schema
from avro.compatibility import ReaderWriterCompatibilityChecker

from pykafkad.registry.schema import Parsed


def parse(text: str, references: Sequence[tuple[str, str]]) -> Parsed:
    """See `schema.Kind`."""
    names = avro.name.Names()
    try:
        for _, referred in references:
            avro.schema.make_avsc_object(_loaded(referred), names)
        loaded = _loaded(text)
        value = avro.schema.make_avsc_object(loaded, names)
    except (avro.errors.AvroException, RecursionError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"it is no Avro schema: {error}") from None
    return Parsed(json.dumps(loaded, separators=(",", ":"), ensure_ascii=False), value)


def _loaded(text: str) -> object:
    """The JSON of a schema. A primitive type may stand there without quotes, as Java's parser takes it."""
    stripped = text.strip()
    if stripped.isalpha():
        return stripped
    try:
        return json.loads(stripped)
    except ValueError as error:
        raise ValueError(f"it is no Avro schema: {error}") from None


def normalized(parsed: Parsed) -> str:
    """See `schema.Kind`: the library has no such text that keeps defaults and documentation."""
    return parsed.text


def incompatibilities(reader: Parsed, writer: Parsed) -> list[str]:
    """See `schema.Kind`."""
    checker: Any = ReaderWriterCompatibilityChecker  # The library has no types.
    found = checker().get_compatibility(reader=reader.value, writer=writer.value)
    kinds = [each.name.upper() for each in found.incompatibilities]
    where = sorted(found.locations)
    return [
        f"{{errorType:'{kind}', description:'{text}'}}" for kind, text in _told(kinds, sorted(found.messages), where)
    ]


def _told(kinds: list[str], messages: list[str], where: list[str]) -> list[tuple[str, str]]:
    """What the library tells in three lists, of which only the first is as long as there are reasons."""
    places = f" at {', '.join(where)}" if where else ""
    return [(kind, f"{'; '.join(messages)}{places}") for kind in kinds]
