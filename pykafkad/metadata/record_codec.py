"""Records of the metadata log as bytes: frame, types and the versions that are written.

A data record has no key; its value is `uvarint frame version (1), uvarint type, uvarint version, flexible body` with
nothing left over. A control record (leader change, voters …) has the key `int16 version 0, int16 type` and the bare
body as its value. `RECORDS` and `CONTROL_RECORDS` are the tables: one row per type of Apache Kafka 4.3
(metadata.version 30). At an older level `at_level` leaves out what came later, and `encode` is told the level."""

from __future__ import annotations

from functools import cache, lru_cache

from pykafkad.effects import StoredRecord
from pykafkad.errors import ProtocolError
from pykafkad.metadata import features
from pykafkad.wire import messages

LOG = ("__cluster_metadata", 0)
TOPIC_ID = b"\0" * 15 + b"\1"

FRAME_VERSION = 1

# What belongs together goes into one batch: so many records, and at most the bytes that Kafka takes in a batch of this
# log.
MAX_RECORDS_PER_CHANGE = 10_000
MAX_CHANGE_BYTES = 8 * 1024 * 1024
# No record is longer than this without the value of a setting in it: names have 249 characters, replica lists are
# short.
_RECORD_BYTES = 512

# type: (name of the message, version written)
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
}

# Records of which older levels of metadata.version write older versions: the level from which on a version is written,
# downwards.
OLDER_VERSIONS = {
    "RegisterBrokerRecord": ((30, 4), (17, 3), (8, 2), (0, 1)),
    "PartitionRecord": ((23, 2), (17, 1), (0, 0)),
    "PartitionChangeRecord": ((23, 2), (17, 1), (0, 0)),
    "BrokerRegistrationChangeRecord": ((30, 3), (17, 2), (0, 1)),
}

# Records that older levels do not have and can do without.
LATER_RECORDS = {
    "BeginTransactionRecord": features.TRANSACTIONS_SINCE,
    "EndTransactionRecord": features.TRANSACTIONS_SINCE,
    "AbortTransactionRecord": features.TRANSACTIONS_SINCE,
    "RegisterControllerRecord": features.CONTROLLERS_SINCE,
    "ClearElrRecord": features.ELR_SINCE,
}

# type: (name of the message, version written)
CONTROL_RECORDS = {
    2: ("LeaderChangeMessage", 0),
    3: ("SnapshotHeaderRecord", 0),
    4: ("SnapshotFooterRecord", 0),
    5: ("KRaftVersionRecord", 0),
    6: ("VotersRecord", 0),
}

# Decoders that are remembered: every type in every version has room.
MAX_DECODERS = 256

_TYPE_OF_NAME = {name: (number, version) for number, (name, version) in RECORDS.items()}
_CONTROL_TYPE_OF_NAME = {name: (number, version) for number, (name, version) in CONTROL_RECORDS.items()}


class ControlKey:
    """Key of a record in a control batch: the `type` of `CONTROL_RECORDS`."""

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
    """A record of a type or version that this release does not know: carried as it is, so that nothing is lost
    silently."""

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
    """A data record of the metadata log around a typed message."""
    return StoredRecord(None, value)


def control_record(value: object) -> StoredRecord:
    """A control record around its message; its key follows from the message's name."""
    return StoredRecord(ControlKey(_CONTROL_TYPE_OF_NAME[type(value).__name__][0]), value)


def is_control(stored: StoredRecord) -> bool:
    """Whether the record belongs into a control batch."""
    return stored.key is not None


def at_level(records: list[StoredRecord], level: int) -> list[StoredRecord]:
    """Records as a cluster writes them whose metadata.version is `level`: without fields and records that came later."""
    if level >= features.LATEST_LEVEL:
        return records
    kept = [each for each in records if LATER_RECORDS.get(type(each.value).__name__, 0) <= level]
    return [_lowered(each, level) if type(each.value).__name__ in OLDER_VERSIONS else each for each in kept]


def _lowered(stored: StoredRecord, level: int) -> StoredRecord:
    message = stored.value
    cls = type(message)
    version = _version(cls.__name__, level)
    carried = {
        field.name: getattr(message, field.name) for field in messages.schema(cls).root.fields if field.alive(version)
    }
    return StoredRecord(stored.key, cls(**carried))


def _version(name: str, level: int) -> int:
    return next(version for since, version in OLDER_VERSIONS[name] if since <= level)


def encode(stored: StoredRecord, level: int = features.LATEST_LEVEL) -> tuple[bytes | None, bytes]:
    """`(key, value)` as they stand in a record of the log at a level of metadata.version; `key` is None except for
    control records."""
    message = stored.value
    if type(message) is UnknownRecord:
        prefix, encoder = _unknown_prefix(stored.key, message), _copy_body
    elif level < features.LATEST_LEVEL and type(message).__name__ in OLDER_VERSIONS:
        prefix, encoder = _older_encoder_of(type(message), level)
    else:
        prefix, encoder = _encoder_of(type(message))
    chunks = [bytearray(prefix)]
    encoder(message, chunks)
    key = stored.key
    return (None if key is None else b"\0\0\0%c" % key.type), bytes(chunks[0])


def fits_one_batch(records: list[StoredRecord]) -> bool:
    """Whether the records of one change can go into the log together."""
    if len(records) > MAX_RECORDS_PER_CHANGE:
        return False
    values = sum(len(record.value.value.encode()) for record in records if getattr(record.value, "value", None))
    return len(records) * _RECORD_BYTES + values <= MAX_CHANGE_BYTES


def encoded_fit_one_batch(records: list[StoredRecord]) -> bool:
    """As `fits_one_batch`, for records with texts of any length in them: they are encoded to see how long they are."""
    return (
        len(records) <= MAX_RECORDS_PER_CHANGE
        and sum(len(encode(record)[1]) + 32 for record in records) <= MAX_CHANGE_BYTES
    )


@cache
def _encoder_of(cls: type) -> tuple[bytes, object]:
    name = cls.__name__
    if name in _TYPE_OF_NAME:
        number, version = _TYPE_OF_NAME[name]
        return b"%c%c%c" % (FRAME_VERSION, number, version), messages.encoder(cls, version)
    _, version = _CONTROL_TYPE_OF_NAME[name]
    return b"", messages.encoder(cls, version)


def _older_encoder_of(cls: type, level: int) -> tuple[bytes, object]:
    version = _version(cls.__name__, level)
    return b"%c%c%c" % (FRAME_VERSION, _TYPE_OF_NAME[cls.__name__][0], version), messages.encoder(cls, version)


def _unknown_prefix(key: object, message: UnknownRecord) -> bytes:
    if key is not None:
        return b""
    return b"%c%b%b" % (FRAME_VERSION, _uvarint(message.type), _uvarint(message.version))


def _copy_body(message: UnknownRecord, chunks: list[bytearray]) -> None:
    chunks[-1] += message.body


def decode(key: bytes | memoryview | None, value: bytes | memoryview) -> StoredRecord:
    """The typed record; the opposite of `encode`. Raises `ProtocolError` on a frame or body that is not whole."""
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


# Types and versions come out of the bytes, so how many there are is the bytes' to say.
@lru_cache(maxsize=MAX_DECODERS)
def _decoder_of(record_type: int, version: int) -> object:
    return _decoder_in(RECORDS, record_type, version)


@lru_cache(maxsize=MAX_DECODERS)
def _control_decoder_of(control_type: int, version: int) -> object:
    return _decoder_in(CONTROL_RECORDS, control_type, version)


def _decoder_in(table: dict[int, tuple[str, int]], number: int, version: int) -> object:
    """The decode function of a type and version; None when this release has no schema for them."""
    if number not in table:
        return None
    cls = messages.stored_class(table[number][0])
    if version not in messages.valid_versions(cls):
        return None
    return messages.decoder(cls, version)


def _decode_control(key: bytes | memoryview, value: bytes | memoryview) -> StoredRecord:
    """A control record; its body opens with its own version (the decoder reads it again as the first field)."""
    if len(key) < 4 or len(value) < 2:
        raise ProtocolError("metadata log: control record with a key or value that is too short")
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
            raise ProtocolError("metadata record: ends inside its frame")
        byte = value[position + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return result, position + index + 1
    raise ProtocolError("metadata record: a number of its frame is longer than five bytes")
