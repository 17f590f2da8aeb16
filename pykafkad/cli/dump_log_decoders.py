"""How `pykafkad dump-log` reads keys and values: as bytes, or as the records of one of Kafka's internal logs."""

from __future__ import annotations

import contextlib
import os
from struct import Struct

from pykafkad.cli.dump_log_lines import Rendered
from pykafkad.cli.output import json_bytes
from pykafkad.errors import ProtocolError
from pykafkad.log.checkpoints import encode_uuid
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.wire.notation import Struct as Layout

    # (key, value, whether the batch is a control batch, whether for JSON) to the fields of the record's line.
    Decode = Callable[[bytes | None, bytes | None, bool, bool], dict[str, object]]

# Kafka's first metadata records, written when a directory is formatted: batches, unlike the other checkpoints beside
# it.
BOOTSTRAP = "bootstrap.checkpoint"

# Decoder: the internal topic that it reads, and the schemas of its records.
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
    """How keys and values of this file are read; with `auto` its directory's name tells."""
    if wanted == "auto":
        directory, name = os.path.abspath(path).split(os.sep)[-2:]
        # The directory of a deleted topic is named `topic-partition.id-delete`, that of a moved one
        # `topic-partition.id-future`.
        topic = METADATA_TOPIC if name == BOOTSTRAP else directory.partition(".")[0].rpartition("-")[0]
        topics = {topic: each for each, (topic, _) in COORDINATORS.items()} | {METADATA_TOPIC: METADATA}
        wanted = topics.get(topic, "none")
    if wanted == "none":
        return _plain
    schemas = None if wanted == METADATA else COORDINATORS[wanted][1]

    def typed(key: bytes | None, value: bytes | None, is_control: bool, as_json: bool) -> dict[str, object]:
        try:
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


def _for_reader(content: dict | None, as_json: bool) -> object:
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


def _metadata_record(key: bytes | None, value: bytes) -> dict[str, object]:
    """The typed record of the metadata log, of its snapshots, and what Raft writes between them."""
    from pykafkad.metadata import record_codec

    record = record_codec.decode(key, value)
    if isinstance(record.value, record_codec.UnknownRecord):
        raise ProtocolError(f"type {record.value.type} in version {record.value.version} is not known")
    version = value[2] if key is None else _SHORT.unpack_from(value)[0]
    return {"value": plain(record.value, version)}


def _coordinator_record(schemas: str, key: bytes | None, value: bytes | None) -> dict[str, object] | None:
    """Key and value of a coordinator's log; None for a type that Kafka 4.3 does not know."""
    if key is None or len(key) < _SHORT.size:
        raise ProtocolError("a key that does not begin with its type")
    classes = messages.stored_types(schemas).get(_SHORT.unpack_from(key)[0])
    if classes is None:
        return None
    fields: dict[str, object] = {"key": plain(_body(classes["Key"], _KEY_VERSION, key), _KEY_VERSION), "value": None}
    if value is not None:
        version = _SHORT.unpack_from(value)[0] if len(value) >= _SHORT.size else -1
        fields["value"] = plain(_body(classes["Value"], version, value), version)
        if classes["Value"] is messages.GroupMetadataValue and fields["value"]["data"]["protocol_type"] == _CONSUMERS:
            _open_members(fields["value"]["data"]["members"], _body(classes["Value"], version, value).members)
    return fields


def _open_members(shown: list[dict[str, object]], members: list) -> None:
    """What consumers of a classic group said of themselves, and what their leader gave each, in the place of its bytes."""
    for row, member in zip(shown, members, strict=True):
        for name, cls in (
            ("subscription", messages.ConsumerProtocolSubscription),
            ("assignment", messages.ConsumerProtocolAssignment),
        ):
            content = bytes(getattr(member, name))
            version = _SHORT.unpack_from(content)[0] if len(content) >= _SHORT.size else -1
            if version in messages.valid_versions(cls):
                # A client may add what only it understands behind the fields.
                with contextlib.suppress(ProtocolError):
                    row[name] = plain(messages.decoder(cls, version)(content, _SHORT.size)[0], version)


def _body(cls: type, version: int, content: bytes) -> object:
    if version not in messages.valid_versions(cls):
        raise ProtocolError(f"{cls.__name__} version {version} is not known")
    message, end = messages.decoder(cls, version)(content, _SHORT.size)
    if end != len(content):
        raise ProtocolError(f"{cls.__name__}: {len(content) - end} bytes after its end")
    return message


def plain(message: object, version: int) -> dict[str, object]:
    """A message as JSON shows it: `type`, `version`, and in `data` the fields of that version."""
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


def _field(field: object, value: object, version: int) -> object:
    if value is None:
        return None
    if field.is_array:
        return [
            _struct(item, field.struct, version) if field.struct is not None else _scalar(item, field.type)
            for item in value
        ]
    return _struct(value, field.struct, version) if field.struct is not None else _scalar(value, field.type)


def _scalar(value: object, type_name: str) -> object:
    if type_name == "uuid":
        return encode_uuid(bytes(value))
    return json_bytes(bytes(value)) if isinstance(value, bytes | bytearray | memoryview) else value
