"""Records, offsets and groups as JSON, with their schemas.

Keys and values are bytes: `value` is their text where they are UTF-8 (else null), `value_base64` always has them; both
are null for a tombstone. Who writes a record gives one of the two."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from pykafkad.control import schemas
from pykafkad.control.api_errors import ApiError
from pykafkad.testing.groups import Group
from pykafkad.testing.records import Found, NewRecord, Record
from pykafkad.testing.waits import TIMEOUT_SECONDS

MOST_BASE64 = 6 << 20
LONGEST_WAIT_SECONDS = 600.0

TIMEOUT = schemas.number(
    "the limit in seconds; then the answer is an error with status 504 that says what there is",
    default=TIMEOUT_SECONDS, exclusiveMinimum=0, maximum=LONGEST_WAIT_SECONDS,
)  # fmt: skip

NAME = schemas.text(maxLength=schemas.MOST_NAME_CHARACTERS)
"""Of a topic, group or transactional id."""

_INDEX = schemas.integer(minimum=0, maximum=2**31 - 1)

_TEXT = schemas.nullable(schemas.text(maxLength=MOST_BASE64))
_PAIRS = ("key", "value")

BY_SCHEMA = schemas.nullable(
    schemas.record(
        {
            "id": schemas.integer("of the schema"),
            "type": schemas.text("AVRO, JSON or PROTOBUF; empty with a problem"),
            "name": schemas.text("what the schema calls its values"),
            "json": schemas.nullable(schemas.text("the key or value; null with a problem, or where it is too long")),
            "is_cut": schemas.boolean("too long to be shown here"),
            "problem": schemas.nullable(schemas.text("why it can't be read by the schema")),
        },
        "null: no serializer with a schema has written it, or the broker has no registry",
    )
)

RECORD = schemas.record(
    {
        "topic": schemas.text(),
        "partition": schemas.integer(),
        "offset": schemas.integer(),
        "timestamp_ms": schemas.integer("milliseconds since 1970-01-01 UTC"),
        **{f"{name}{suffix}": _TEXT for name in _PAIRS for suffix in ("", "_base64")},
        **{f"{name}_by_schema": BY_SCHEMA for name in _PAIRS},
        "headers": schemas.array(
            schemas.record({"name": schemas.text(), "value": _TEXT, "value_base64": _TEXT}), maxItems=1_000_000
        ),
    },
)

_GIVEN = {**_TEXT, "default": None}

NEW_RECORD = schemas.record(
    {
        **{f"{name}{suffix}": _GIVEN for name in _PAIRS for suffix in ("", "_base64")},
        "headers": schemas.array(
            schemas.record({"name": schemas.text(), "value": _GIVEN, "value_base64": _GIVEN}), default=[]
        ),
        "partition": schemas.nullable(
            schemas.integer("else the key chooses it as in a Java client", default=None, minimum=0)
        ),
        "timestamp_ms": schemas.nullable(schemas.integer("else the time of now", default=None, minimum=0)),
    },
)

OFFSET = schemas.record({"topic": NAME, "partition": _INDEX, "offset": schemas.integer(minimum=0)})

_PARTITION = schemas.record({"topic": schemas.text(), "partition": schemas.integer()})

GROUP = schemas.record(
    {
        "name": schemas.text(),
        "type": schemas.text("classic, consumer, share or streams; empty where there is no such group"),
        "state": schemas.text("Kafka's word, such as Stable or Empty; Dead where there is no such group"),
        "members": schemas.array(
            schemas.record(
                {
                    "member_id": schemas.text(),
                    "client_id": schemas.text(),
                    "assigned": schemas.array(_PARTITION, maxItems=1_000_000),
                }
            )
        ),
        "offsets": schemas.array(OFFSET, "that it has committed", maxItems=1_000_000),
        "lag": schemas.array(
            schemas.record({"topic": schemas.text(), "partition": schemas.integer(), "records": schemas.integer()}),
            "how far it is behind, where it has committed an offset",
            maxItems=1_000_000,
        ),
    }
)

LIMIT = 10_000
RECORDS = schemas.record(
    {
        "records": schemas.array(RECORD, "by partition and offset", maxItems=LIMIT),
        "left_out": schemas.integer("offsets beyond the limit: so many records at most"),
    }
)


def of_record(record: Record) -> dict[str, Any]:
    """As `RECORD`."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_bytes("key", record.key),
        **_bytes("value", record.value),
        "key_by_schema": None,
        "value_by_schema": None,
        "headers": [{"name": name, **_bytes("value", value)} for name, value in record.headers],
    }


def of_records(found: Found) -> dict[str, Any]:
    """As `RECORDS`."""
    beyond = max(0, len(found.records) - LIMIT)
    return {"records": [of_record(each) for each in found.records[:LIMIT]], "left_out": found.left_out + beyond}


def _bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None, f"{name}_base64": None}
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = None
    return {name: text, f"{name}_base64": to_base64(value)}


def to_base64(value: bytes) -> str:
    """Bytes as JSON has them."""
    return b64encode(value).decode()


def from_base64(encoded: str | None) -> bytes | None:
    """The way back, for what `to_base64` has made."""
    return None if encoded is None else b64decode(encoded)


def to_record(given: dict[str, Any], where: str) -> NewRecord:
    """Of `NEW_RECORD`. Raises ApiError."""
    return NewRecord(
        _given(given, "value", where),
        _given(given, "key", where),
        [
            (each["name"], _given(each, "value", f"{where}.headers[{index}]"))
            for index, each in enumerate(given["headers"])
        ],
        given["partition"],
        given["timestamp_ms"],
    )


def _given(given: dict[str, Any], name: str, where: str) -> bytes | None:
    text, encoded = given[name], given[f"{name}_base64"]
    if text is not None and encoded is not None:
        raise ApiError(400, f"{name} and {name}_base64 are both there", where, "one of them")
    if encoded is not None:
        try:
            return b64decode(encoded, validate=True)
        except ValueError as error:
            raise ApiError(400, f"it is not base64: {error}", f"{where}.{name}_base64", "base64") from None
    return None if text is None else text.encode()


def of_group(group: Group) -> dict[str, Any]:
    """As `GROUP`."""
    return {
        "name": group.name,
        "type": group.type,
        "state": group.state,
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "assigned": [{"topic": topic, "partition": index} for topic, index in sorted(member.assigned)],
            }
            for member in group.members
        ],
        "offsets": [
            {"topic": topic, "partition": index, "offset": offset}
            for (topic, index), offset in sorted(group.offsets.items())
        ],
        "lag": [
            {"topic": topic, "partition": index, "records": lag} for (topic, index), lag in sorted(group.lag.items())
        ],
    }
