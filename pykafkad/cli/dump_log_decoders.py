"""The decoders of `pykafkad dump-log`: keys and values as bytes, or as records of one of Kafka's internal logs."""

from __future__ import annotations

import contextlib
import os
from struct import Struct

from pykafkad.cli.dump_log_lines import Rendered
from pykafkad.cli.output import json_bytes
from pykafkad.errors import ProtocolError
from pykafkad.uuids import to_text
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.wire.notation import Field, Struct as Layout

    # (key, value, whether the batch is a control batch, whether for JSON) to the fields of the record's line.
    Decode = Callable[[bytes | None, bytes | None, bool, bool], dict[str, object]]

# The first metadata records, which Kafka writes when it formats a directory. The file holds record batches, unlike the
# other checkpoint files of the directory.
BOOTSTRAP = "bootstrap.checkpoint"

# Decoder name to the internal topic that it reads and the schema file of the records.
COORDINATORS = {
    "offsets": ("__consumer_offsets", "stored_groups.txt"),
    "transactions": ("__transaction_state", "stored_transactions.txt"),
    "share": ("__share_group_state", "stored_share.txt"),
}
METADATA = "metadata"
METADATA_TOPIC = "__cluster_metadata"
NAMES = ("auto", "none", *COORDINATORS, METADATA)

_MARKERS = {0: "abort", 1: "commit"}
_SHORT = Struct(">h")
_KEY_VERSION = 0
_CONSUMERS = "consumer"


def decoder(path: str, wanted: str) -> Decode:
    """The function that decodes keys and values of a file. `auto` chooses it by the name of the file's directory."""
    if wanted == "auto":
        directory, name = os.path.abspath(path).split(os.sep)[-2:]
        # A directory of a deleted topic is named `topic-partition.id-delete`, one of a moving partition
        # `topic-partition.id-future`.
        topic = METADATA_TOPIC if name == BOOTSTRAP else directory.partition(".")[0].rpartition("-")[0]
        topics = {topic: each for each, (topic, _) in COORDINATORS.items()} | {METADATA_TOPIC: METADATA}
        wanted = topics.get(topic, "none")
    if wanted == "none":
        return _plain
    schemas = None if wanted == METADATA else COORDINATORS[wanted][1]

    def typed(key: bytes | None, value: bytes | None, is_control: bool, as_json: bool) -> dict[str, object]:
        try:
            fields: dict[str, Any] | None
            if schemas is None:
                fields = _metadata_record(key, value)
            else:
                fields = None if is_control else _coordinator_record(schemas, key, value)
        except (ProtocolError, TypeError, IndexError, KeyError) as error:
            return {**_plain(key, value, is_control, as_json), "undecoded": str(error) or type(error).__name__}
        if fields is None:
            return _plain(key, value, is_control, as_json)
        return {name: _for_reader(content, as_json) for name, content in fields.items()}

    return typed


def _for_reader(content: dict[str, Any] | None, as_json: bool) -> object:
    if as_json:
        return content
    if content is None:
        return "null"
    import json

    data = json.dumps(content["data"], ensure_ascii=False, separators=(",", ":"))
    return Rendered(f"{content['type']}/{content['version']}{data}")


def _plain(key: bytes | None, value: bytes | None, is_control: bool, as_json: bool) -> dict[str, object]:
    if is_control and key is not None and len(key) >= 4:
        number = _SHORT.unpack_from(key, 2)[0]
        if number in _MARKERS and value is not None:
            marker, _ = messages.decoder(messages.EndTxnMarker, 0)(value, _SHORT.size)
            return {"control": _MARKERS[number], "coordinator_epoch": marker.coordinator_epoch}
        return {"control": _MARKERS.get(number, number)}
    return {"key": key, "value": value}


def _metadata_record(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """A record of the metadata log or of its snapshots, typed. Control records of Raft are included."""
    from pykafkad.metadata import record_codec

    if value is None:
        raise ProtocolError("a record without a value")
    record = record_codec.decode(key, value)
    if isinstance(record.value, record_codec.UnknownRecord):
        raise ProtocolError(f"unknown record type {record.value.type} version {record.value.version}")
    version = value[2] if key is None else _SHORT.unpack_from(value)[0]
    message: Any = record.value
    return {"value": plain(message, version)}


def _coordinator_record(schemas: str, key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    """A record of a coordinator's log, typed; None for a record type that Kafka 4.3 does not know."""
    if key is None or len(key) < _SHORT.size:
        raise ProtocolError("the key is too short for its record type")
    classes = messages.stored_types(schemas).get(_SHORT.unpack_from(key)[0])
    if classes is None:
        return None
    fields: dict[str, Any] = {"key": plain(_body(classes["Key"], _KEY_VERSION, key), _KEY_VERSION), "value": None}
    if value is not None:
        version = _SHORT.unpack_from(value)[0] if len(value) >= _SHORT.size else -1
        fields["value"] = plain(_body(classes["Value"], version, value), version)
        if classes["Value"] is messages.GroupMetadataValue and fields["value"]["data"]["protocol_type"] == _CONSUMERS:
            _decode_members(fields["value"]["data"]["members"], _body(classes["Value"], version, value).members)
    return fields


def _decode_members(shown: list[dict[str, Any]], members: list[messages.GroupMetadataValue.MemberMetadata]) -> None:
    """Replaces each member's subscription and assignment, which are stored as bytes, by their decoded fields.

    Only members of a classic consumer group have them in this form.
    """
    for row, member in zip(shown, members, strict=True):
        pairs: tuple[tuple[str, type[messages.Struct]], ...] = (
            ("subscription", messages.ConsumerProtocolSubscription),
            ("assignment", messages.ConsumerProtocolAssignment),
        )
        for name, cls in pairs:
            content = bytes(getattr(member, name))
            version = _SHORT.unpack_from(content)[0] if len(content) >= _SHORT.size else -1
            if version in messages.valid_versions(cls):
                # A client may append data of its own after the fields: the end position is not checked.
                with contextlib.suppress(ProtocolError):
                    row[name] = plain(messages.decoder(cls, version)(content, _SHORT.size)[0], version)


def _body(cls: type[messages.Struct], version: int, content: bytes) -> Any:
    if version not in messages.valid_versions(cls):
        raise ProtocolError(f"unknown version {version} of {cls.__name__}")
    message, end = messages.decoder(cls, version)(content, _SHORT.size)
    if end != len(content):
        raise ProtocolError(f"{cls.__name__}: {len(content) - end} extra bytes after the last field")
    return message


def plain(message: messages.Struct, version: int) -> dict[str, object]:
    """A message as a JSON object with `type`, `version` and `data`, the fields of that version."""
    return {
        "type": type(message).__name__,
        "version": version,
        "data": _struct(message, messages.schema(type(message)).root, version),
    }


def _struct(value: object, layout: Layout, version: int) -> dict[str, object]:
    return {
        field.name: _field(field, getattr(value, field.name), version)
        for field in layout.fields
        if field.alive(version)
    }


def _field(field: Field, value: Any, version: int) -> object:
    if value is None:
        return None
    if field.is_array:
        return [
            _struct(item, field.struct, version) if field.struct is not None else _scalar(item, field.type)
            for item in value
        ]
    return _struct(value, field.struct, version) if field.struct is not None else _scalar(value, field.type)


def _scalar(value: Any, type_name: str | None) -> object:
    if type_name == "uuid":
        return to_text(bytes(value))
    return json_bytes(bytes(value)) if isinstance(value, bytes | bytearray | memoryview) else value
