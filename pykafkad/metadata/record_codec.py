"""The records of the metadata log as bytes: their frame, their types, and the versions that are written.

A data record has no key. Its value is `uvarint frame version (1), uvarint type, uvarint version, flexible body` without
anything after it. A control record (leader change, voters and so on) has the key `int16 version 0, int16 type`; its
value is the body alone. The tables `RECORDS` and `CONTROL_RECORDS` have one row per type of Apache Kafka 4.3
(metadata.version 30) and, with a later level of metadata.version, of 4.4. For a cluster at an older level, `at_level`
drops newer records and fields, and `encode` writes older versions."""

from __future__ import annotations

from functools import cache, lru_cache

from pykafkad.effects import StoredRecord
from pykafkad.errors import ProtocolError
from pykafkad.metadata import features
from pykafkad.wire import messages

LOG = ("__cluster_metadata", 0)
TOPIC_ID = b"\0" * 15 + b"\1"

FRAME_VERSION = 1

# The records of one change are written as one batch. These are the most records of a change, and Kafka's limit of the
# bytes of a batch in this log.
MAX_RECORDS_PER_CHANGE = 10_000
MAX_CHANGE_BYTES = 8 * 1024 * 1024
# An upper bound for the bytes of a record without the value of a setting. Names have at most 249 characters, and
# replica lists are short.
_RECORD_BYTES = 512

# Type: (name of the message, version that is written).
RECORDS = {
    0: ("RegisterBrokerRecord", 4),
    1: ("UnregisterBrokerRecord", 0),
    2: ("TopicRecord", 0),
    3: ("PartitionRecord", 2),
    4: ("ConfigRecord", 0),
    5: ("PartitionChangeRecord", 2),
    7: ("FenceBrokerRecord", 0),
    8: ("UnfenceBrokerRecord", 0),
    9: ("RemoveTopicRecord", 0),
    10: ("DelegationTokenRecord", 0),
    11: ("UserScramCredentialRecord", 0),
    12: ("FeatureLevelRecord", 0),
    14: ("ClientQuotaRecord", 0),
    15: ("ProducerIdsRecord", 0),
    17: ("BrokerRegistrationChangeRecord", 3),
    18: ("AccessControlEntryRecord", 0),
    19: ("RemoveAccessControlEntryRecord", 0),
    20: ("NoOpRecord", 0),
    21: ("ZkMigrationStateRecord", 0),
    22: ("RemoveUserScramCredentialRecord", 0),
    23: ("BeginTransactionRecord", 0),
    24: ("EndTransactionRecord", 0),
    25: ("AbortTransactionRecord", 0),
    26: ("RemoveDelegationTokenRecord", 0),
    27: ("RegisterControllerRecord", 0),
    28: ("ClearElrRecord", 0),
    29: ("UnregisterControllerRecord", 0),
}

# Records that older levels of metadata.version write in older versions, as pairs of the first level and the version
# that is written from this level on, the highest level first.
OLDER_VERSIONS = {
    "RegisterBrokerRecord": ((30, 4), (17, 3), (8, 2), (0, 1)),
    "PartitionRecord": ((23, 2), (17, 1), (0, 0)),
    "PartitionChangeRecord": ((23, 2), (17, 1), (0, 0)),
    "BrokerRegistrationChangeRecord": ((30, 3), (17, 2), (0, 1)),
}

# Records that older levels do not have and do not need, and the first level that has them.
LATER_RECORDS = {
    "BeginTransactionRecord": features.TRANSACTIONS_SINCE,
    "EndTransactionRecord": features.TRANSACTIONS_SINCE,
    "AbortTransactionRecord": features.TRANSACTIONS_SINCE,
    "RegisterControllerRecord": features.CONTROLLERS_SINCE,
    "ClearElrRecord": features.ELR_SINCE,
}

# Type: (name of the message, version that is written).
CONTROL_RECORDS = {
    2: ("LeaderChangeMessage", 0),
    3: ("SnapshotHeaderRecord", 0),
    4: ("SnapshotFooterRecord", 0),
    5: ("KRaftVersionRecord", 0),
    6: ("VotersRecord", 0),
}

# The size of the caches of decoders. All types in all versions fit.
MAX_DECODERS = 256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Encoder = Callable[[Any, list[Any]], None]
    Decoder = Callable[[bytes | memoryview, int], tuple[Any, int]]

_TYPE_OF_NAME = {name: (number, version) for number, (name, version) in RECORDS.items()}
_CONTROL_TYPE_OF_NAME = {name: (number, version) for number, (name, version) in CONTROL_RECORDS.items()}


class ControlKey:
    """The key of a record in a control batch: a `type` of `CONTROL_RECORDS`."""

    __slots__ = ("type",)

    def __init__(self, control_type: int) -> None:
        self.type = control_type

    def __eq__(self, other: object) -> bool:
        return type(other) is ControlKey and other.type == self.type

    def __hash__(self) -> int:
        return self.type

    def __repr__(self) -> str:
        return f"ControlKey({self.type})"


class UnknownRecord:
    """A record of a type or version that this release does not know. It keeps the undecoded body, so that nothing is
    lost."""

    __slots__ = ("body", "type", "version")

    def __init__(self, record_type: int, version: int, body: bytes) -> None:
        self.type = record_type
        self.version = version
        self.body = body

    def __eq__(self, other: object) -> bool:
        return type(other) is UnknownRecord and (other.type, other.version, other.body) == (
            self.type,
            self.version,
            self.body,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"UnknownRecord(type={self.type}, version={self.version}, {len(self.body)} bytes)"


def record(value: object) -> StoredRecord:
    """The data record of the metadata log with this message."""
    return StoredRecord(None, value)


def control_record(value: object) -> StoredRecord:
    """The control record with this message. The name of the message determines its key."""
    return StoredRecord(ControlKey(_CONTROL_TYPE_OF_NAME[type(value).__name__][0]), value)


def is_control(stored: StoredRecord) -> bool:
    """Whether the record belongs into a control batch."""
    return stored.key is not None


def at_level(records: list[StoredRecord], level: int) -> list[StoredRecord]:
    """The records as a cluster with metadata.version `level` writes them: without newer records and newer fields."""
    if level >= features.LATEST_LEVEL:
        return records
    kept = [each for each in records if LATER_RECORDS.get(type(each.value).__name__, 0) <= level]
    return [_lowered(each, level) if type(each.value).__name__ in OLDER_VERSIONS else each for each in kept]


def _lowered(stored: StoredRecord, level: int) -> StoredRecord:
    """The record without the fields that came after a level."""
    message: Any = stored.value
    cls = type(message)
    version = _version(cls.__name__, level)
    kept = {
        field.name: getattr(message, field.name) for field in messages.schema(cls).root.fields if field.alive(version)
    }
    return StoredRecord(stored.key, cls(**kept))


def _version(name: str, level: int) -> int:
    return next(version for since, version in OLDER_VERSIONS[name] if since <= level)


def encode(stored: StoredRecord, level: int = features.LATEST_LEVEL) -> tuple[bytes | None, bytes]:
    """The key and the value of a record as bytes, in the versions of a level of metadata.version. The key is None
    except for control records."""
    message: Any = stored.value
    key: Any = stored.key
    encoder: Encoder
    if type(message) is UnknownRecord:
        prefix, encoder = _unknown_prefix(key, message), _copy_body
    elif level < features.LATEST_LEVEL and type(message).__name__ in OLDER_VERSIONS:
        prefix, encoder = _older_encoder_of(type(message), level)
    else:
        cls: Any = type(message)
        prefix, encoder = _encoder_of(cls)
    chunks = [bytearray(prefix)]
    encoder(message, chunks)
    return (None if key is None else b"\0\0\0%c" % key.type), bytes(chunks[0])


def fits_one_batch(records: list[StoredRecord]) -> bool:
    """Whether the records of one change fit into one batch."""
    if len(records) > MAX_RECORDS_PER_CHANGE:
        return False
    texts: list[Any] = [getattr(record.value, "value", None) for record in records]
    values = sum(len(text.encode()) for text in texts if text)
    return len(records) * _RECORD_BYTES + values <= MAX_CHANGE_BYTES


def encoded_fit_one_batch(records: list[StoredRecord]) -> bool:
    """Like `fits_one_batch`, for records with texts of any length: it encodes the records to measure them."""
    return (
        len(records) <= MAX_RECORDS_PER_CHANGE
        and sum(len(encode(record)[1]) + 32 for record in records) <= MAX_CHANGE_BYTES
    )


@cache
def _encoder_of(cls: type[Any]) -> tuple[bytes, Encoder]:
    """The bytes before the body of a message, and the function that encodes the body."""
    name = cls.__name__
    if name in _TYPE_OF_NAME:
        number, version = _TYPE_OF_NAME[name]
        return b"%c%c%c" % (FRAME_VERSION, number, version), messages.encoder(cls, version)
    _, version = _CONTROL_TYPE_OF_NAME[name]
    return b"", messages.encoder(cls, version)


def _older_encoder_of(cls: type[Any], level: int) -> tuple[bytes, Encoder]:
    version = _version(cls.__name__, level)
    return b"%c%c%c" % (FRAME_VERSION, _TYPE_OF_NAME[cls.__name__][0], version), messages.encoder(cls, version)


def _unknown_prefix(key: object, message: UnknownRecord) -> bytes:
    if key is not None:
        return b""
    return b"%c%b%b" % (FRAME_VERSION, _uvarint(message.type), _uvarint(message.version))


def _copy_body(message: UnknownRecord, chunks: list[bytearray]) -> None:
    chunks[-1] += message.body


def decode(key: bytes | memoryview | None, value: bytes | memoryview) -> StoredRecord:
    """The record that `encode` made these bytes of. Raises `ProtocolError` for a frame or body that is not complete."""
    if key is not None:
        return _decode_control(key, value)
    if len(value) >= 3 and value[0] == FRAME_VERSION and value[1] < 0x80 and value[2] < 0x80:
        record_type, version, position = value[1], value[2], 3
    else:
        record_type, version, position = _frame(value)
    decoder = _decoder_of(record_type, version)
    if decoder is None:
        return StoredRecord(None, UnknownRecord(record_type, version, bytes(value[position:])))
    message, end = decoder(value, position)
    if end != len(value):
        raise ProtocolError(f"metadata record of type {record_type}: {len(value) - end} bytes after its end")
    return StoredRecord(None, message)


def _frame(value: bytes | memoryview) -> tuple[int, int, int]:
    frame_version, position = _read_uvarint(value, 0)
    if frame_version != FRAME_VERSION:
        raise ProtocolError(f"metadata record: frame version {frame_version}, only {FRAME_VERSION} is known")
    record_type, position = _read_uvarint(value, position)
    version, position = _read_uvarint(value, position)
    return record_type, version, position


# Types and versions are read from the bytes, so damaged bytes can name any number of them. The caches are bounded.
@lru_cache(maxsize=MAX_DECODERS)
def _decoder_of(record_type: int, version: int) -> Decoder | None:
    return _decoder_in(RECORDS, record_type, version)


@lru_cache(maxsize=MAX_DECODERS)
def _control_decoder_of(control_type: int, version: int) -> Decoder | None:
    return _decoder_in(CONTROL_RECORDS, control_type, version)


def _decoder_in(table: dict[int, tuple[str, int]], number: int, version: int) -> Decoder | None:
    """The decode function of a type and version. None when this release has no schema for them."""
    if number not in table:
        return None
    cls = messages.stored_class(table[number][0])
    if version not in messages.known_versions(cls):
        return None
    return messages.decoder(cls, version)


def _decode_control(key: bytes | memoryview, value: bytes | memoryview) -> StoredRecord:
    """Decode a control record. Its body begins with its version, which the decoder reads again as the first field."""
    if len(key) < 4 or len(value) < 2:
        raise ProtocolError("metadata log: the key or the value of a control record is too short")
    control_type = key[2] << 8 | key[3]
    decoder = _control_decoder_of(control_type, value[0] << 8 | value[1])
    if decoder is None:
        return StoredRecord(ControlKey(control_type), UnknownRecord(control_type, 0, bytes(value)))
    message, end = decoder(value, 0)
    if end != len(value):
        raise ProtocolError(f"control record of type {control_type}: {len(value) - end} bytes after its end")
    return StoredRecord(ControlKey(control_type), message)


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_uvarint(value: bytes | memoryview, position: int) -> tuple[int, int]:
    result = 0
    for index in range(5):
        if position + index >= len(value):
            raise ProtocolError("metadata record: it ends inside its frame")
        byte = value[position + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return result, position + index + 1
    raise ProtocolError("metadata record: a number in its frame is longer than five bytes")
