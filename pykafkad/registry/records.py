"""The records of `_schemas`, with keys and values as Confluent's registry writes them.

| key type | value |
|---|---|
| `SCHEMA` of a subject and a version | subject, version, id, type (none for Avro), references, schema, deleted; none
  (a tombstone) if the version is gone for good |
| `CONFIG` of a subject, or of none | the level of compatibility; a tombstone if there is none any more |
| `MODE` of a subject, or of none | the mode, the same |
| `DELETE_SUBJECT` of a subject | the last version that is soft deleted with it |
| `NOOP`, `CLEAR_SUBJECT` | nothing that is read here |"""

from __future__ import annotations

import json
from typing import Any

from pykafkad.registry.schema import AVRO, Schema
from pykafkad.registry.state import GLOBAL, State, Version, references_of

Pair = tuple[bytes, bytes | None]


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def version_record(version: Version) -> Pair:
    """A version that is there, or that is soft deleted."""
    schema = version.schema
    value: dict[str, Any] = {"subject": version.subject, "version": version.version, "id": version.schema_id}
    if schema.kind != AVRO:
        value["schemaType"] = schema.kind
    if schema.references:
        value["references"] = [each._asdict() for each in schema.references]
    value |= {"schema": schema.text, "deleted": version.is_deleted}
    return _version_key(version.subject, version.version), _encoded(value)


def version_tombstone(subject: str, number: int) -> Pair:
    """A version that is gone for good."""
    return _version_key(subject, number), None


def _version_key(subject: str, number: int) -> bytes:
    return _encoded({"keytype": "SCHEMA", "subject": subject, "version": number, "magic": 1})


def level_record(subject: str, level: str | None) -> Pair:
    """The level of compatibility of a subject, or of all that have none; None: there is none any more."""
    key = _encoded({"keytype": "CONFIG", "subject": subject or None, "magic": 0})
    return key, None if level is None else _encoded({"subject": subject or None, "compatibilityLevel": level})


def mode_record(subject: str, mode: str | None) -> Pair:
    """The mode, in the same way."""
    key = _encoded({"keytype": "MODE", "subject": subject or None, "magic": 0})
    return key, None if mode is None else _encoded({"subject": subject or None, "mode": mode})


def subject_deletion_record(subject: str, last: int) -> Pair:
    """All versions up to `last` are soft deleted."""
    key = _encoded({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0})
    return key, _encoded({"subject": subject, "version": last})


def apply(state: State, key: bytes | None, value: bytes | None) -> None:
    """Take a record into the state. Raises ValueError for one that no registry writes."""
    try:
        named = json.loads(key or b"null")
        content = None if value is None else json.loads(value)
        _apply(state, named["keytype"], named, content)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"a record with the key {key!r} is none of a schema registry: {error!r}") from None


def _apply(state: State, kind: str, key: dict[str, Any], value: dict[str, Any] | None) -> None:
    if kind == "SCHEMA":
        if value is None:
            state.remove(key["subject"], key["version"])
            return
        schema = Schema(value.get("schemaType") or AVRO, value["schema"], references_of(value.get("references")))
        deleted = bool(value.get("deleted"))
        state.put(Version(value["subject"], value["version"], value["id"], schema, deleted))
    elif kind == "DELETE_SUBJECT" and value is not None:
        for version in state.versions(key["subject"]):
            if version.version <= value["version"]:
                state.put(version._replace(is_deleted=True))
    elif kind in ("CONFIG", "MODE"):
        held, name = (state.levels, "compatibilityLevel") if kind == "CONFIG" else (state.modes, "mode")
        subject = key.get("subject") or GLOBAL
        if value is None or value.get(name) is None:
            held.pop(subject, None)
        else:
            held[subject] = value[name]
