"""The records of `__transaction_state` as bytes, in the versions that Kafka 4.3 writes. This broker and Kafka can load
the log of each other.

A key is the record type 0 (int16) and the transactional id. A value is a version (int16) and a body: version 1 from
transaction version 1 on, else 0, which has no place for the producer ids before and after. A tombstone has no value.
Records of other types, and values of later versions, are ignored and stay in the log."""

from __future__ import annotations

from struct import Struct

from pykafkad.coordinator.transaction_states import EMPTY, STATE_IDS, STATES
from pykafkad.effects import StoredRecord
from pykafkad.errors import ProtocolError
from pykafkad.wire import messages

NO_PRODUCER_ID = -1
_TYPE_TRANSACTION = 0
_LATEST_VERSION = 1
_PREFIX = Struct(">h")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def transaction_state(
    transactional_id: str,
    *,
    state: str,
    producer_id: int,
    previous_producer_id: int,
    next_producer_id: int,
    producer_epoch: int,
    timeout_ms: int,
    partitions: dict[tuple[str, int], None] | tuple[()],
    start_ms: int,
    update_ms: int,
    client_version: int,
) -> StoredRecord:
    """The record of a transactional id. In the state EMPTY it has no list of partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    schema = messages.TransactionLogValue.PartitionsSchema
    value = messages.TransactionLogValue(
        producer_id=producer_id,
        previous_producer_id=previous_producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=producer_epoch,
        transaction_timeout_ms=timeout_ms,
        transaction_status=STATE_IDS[state],
        transaction_partitions=None
        if state is EMPTY
        else [schema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()],
        transaction_last_update_timestamp_ms=update_ms,
        transaction_start_timestamp_ms=start_ms,
        client_transaction_version=client_version,
    )
    return StoredRecord(messages.TransactionLogKey(transactional_id=transactional_id), value)


def tombstone(transactional_id: str) -> StoredRecord:
    """The record that makes a transactional id forgotten."""
    return StoredRecord(messages.TransactionLogKey(transactional_id=transactional_id), None)


def partitions_of(value: messages.TransactionLogValue) -> dict[tuple[str, int], None]:
    """The partitions of a record, as keys `(topic, partition)`."""
    return {
        (row.topic, partition): None for row in value.transaction_partitions or () for partition in row.partition_ids
    }


def encode(record: StoredRecord, transaction_version: int) -> tuple[bytes, bytes | None]:
    """The key and the value as bytes of the log, in the cluster's transaction version."""
    key = _encode(record.key, _TYPE_TRANSACTION, 0)
    if record.value is None:
        return key, None
    version = min(transaction_version, _LATEST_VERSION)
    value: Any = record.value
    if version == 0:
        value = _without_later_fields(value)
    return key, _encode(value, version, version)


def _without_later_fields(value: messages.TransactionLogValue) -> messages.TransactionLogValue:
    """The value as version 0 can hold it."""
    return messages.TransactionLogValue(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        transaction_timeout_ms=value.transaction_timeout_ms,
        transaction_status=value.transaction_status,
        transaction_partitions=value.transaction_partitions,
        transaction_last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms=value.transaction_start_timestamp_ms,
    )


def _encode(message: Any, prefix: int, version: int) -> bytes:
    chunks = [bytearray(_PREFIX.pack(prefix))]
    messages.encoder(type(message), version)(message, chunks)
    return bytes(chunks[0])


def decode(key: bytes | None, value: bytes | None) -> StoredRecord | None:
    """The record, or None for one that is ignored. Raises `ProtocolError` for bytes that are no record."""
    if _prefix(key) != _TYPE_TRANSACTION or key is None:
        return None
    typed_key, _ = messages.decoder(messages.TransactionLogKey, 0)(key, _PREFIX.size)
    if value is None:
        return StoredRecord(typed_key, None)
    version = _prefix(value)
    if not 0 <= version <= _LATEST_VERSION:
        return None
    typed_value, _ = messages.decoder(messages.TransactionLogValue, version)(value, _PREFIX.size)
    if typed_value.transaction_status not in STATES:
        raise ProtocolError(
            f"a transaction has one of the states {min(STATES)} to {max(STATES)}, not {typed_value.transaction_status}"
        )
    return StoredRecord(typed_key, typed_value)


def _prefix(content: bytes | None) -> int:
    if content is None or len(content) < _PREFIX.size:
        raise ProtocolError(
            f"key and value of a coordinator's record start with two bytes of type or version, not {content!r}"
        )
    prefix: int = _PREFIX.unpack_from(content)[0]
    return prefix
