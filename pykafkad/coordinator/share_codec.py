"""The records of `__share_group_state` as bytes, in the versions that Kafka 4.3 writes (KIP-932).

A key is the record type (int16) and a body: 0 for a snapshot of a share partition's state, 1 for an update of it. A
value is a version (int16) and a body. A tombstone has the type of a snapshot. Unknown types are ignored."""

from __future__ import annotations

from functools import cache
from struct import Struct

from pykafkad.effects import StoredRecord
from pykafkad.errors import ProtocolError
from pykafkad.wire import messages

TYPE_SNAPSHOT = 0
TYPE_UPDATE = 1

_VERSION = 0
_PREFIX = Struct(">h")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@cache
def _classes() -> dict[int, tuple[type[Any], type[Any]]]:
    """Record type to the classes of key and value. Made on first use, so that no schema is parsed at start."""
    return {
        TYPE_SNAPSHOT: (messages.ShareSnapshotKey, messages.ShareSnapshotValue),
        TYPE_UPDATE: (messages.ShareUpdateKey, messages.ShareUpdateValue),
    }


def encode(record: StoredRecord) -> tuple[bytes, bytes | None]:
    """The key and the value as bytes of the log."""
    record_type = TYPE_SNAPSHOT if type(record.key) is messages.ShareSnapshotKey else TYPE_UPDATE
    key = _encode(record.key, record_type)
    return key, None if record.value is None else _encode(record.value, _VERSION)


def _encode(message: Any, prefix: int) -> bytes:
    chunks = [bytearray(_PREFIX.pack(prefix))]
    messages.encoder(type(message), _VERSION)(message, chunks)
    return bytes(chunks[0])


def decode(key: bytes | None, value: bytes | None) -> StoredRecord | None:
    """The record, or None for a record type that is ignored. Raises `ProtocolError` for bytes that are no record."""
    classes = _classes().get(_prefix(key))
    if classes is None or key is None:
        return None
    typed_key, _ = messages.decoder(classes[0], _VERSION)(key, _PREFIX.size)
    if value is None:
        return StoredRecord(typed_key, None)
    version = _prefix(value)
    if version != _VERSION:
        raise ProtocolError(f"{classes[1].__name__} version {version}: only version {_VERSION} can be read")
    typed_value, _ = messages.decoder(classes[1], _VERSION)(value, _PREFIX.size)
    return StoredRecord(typed_key, typed_value)


def _prefix(content: bytes | None) -> int:
    if content is None or len(content) < _PREFIX.size:
        raise ProtocolError(
            f"key and value of a coordinator's record start with two bytes of type or version, not {content!r}"
        )
    prefix: int = _PREFIX.unpack_from(content)[0]
    return prefix
