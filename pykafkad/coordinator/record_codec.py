"""The records of `__consumer_offsets` as bytes, in the versions that Kafka 4.3 writes. This broker and Kafka can load
the log of each other.

A key is the record type (int16) and a body. A value is a version (int16) and a body. A tombstone has no value. Decoded
are the records of committed offsets (type 1, and type 0 of very old clusters), of classic groups (type 2), and of the
group types of `group_types.MODULES`, in every version. Other types belong to later versions: they are ignored, and stay
in the log."""

from __future__ import annotations

from functools import cache
from struct import Struct

from pykafkad.coordinator.group_types import CLASSIC, CONSUMER, MODULES, SHARE, STREAMS
from pykafkad.effects import EncodedRecord, StoredRecord
from pykafkad.errors import ProtocolError
from pykafkad.wire import messages

TYPE_OFFSET_COMMIT_OLD = 0
TYPE_OFFSET_COMMIT = 1
TYPE_GROUP_METADATA = 2

TYPES = {
    TYPE_OFFSET_COMMIT_OLD: ("OffsetCommit", CLASSIC),
    TYPE_OFFSET_COMMIT: ("OffsetCommit", CLASSIC),
    TYPE_GROUP_METADATA: ("GroupMetadata", CLASSIC),
    3: ("ConsumerGroupMetadata", CONSUMER),
    4: ("ConsumerGroupPartitionMetadata", CONSUMER),
    5: ("ConsumerGroupMemberMetadata", CONSUMER),
    6: ("ConsumerGroupTargetAssignmentMetadata", CONSUMER),
    7: ("ConsumerGroupTargetAssignmentMember", CONSUMER),
    8: ("ConsumerGroupCurrentMemberAssignment", CONSUMER),
    10: ("ShareGroupMemberMetadata", SHARE),
    11: ("ShareGroupMetadata", SHARE),
    12: ("ShareGroupTargetAssignmentMetadata", SHARE),
    13: ("ShareGroupTargetAssignmentMember", SHARE),
    14: ("ShareGroupCurrentMemberAssignment", SHARE),
    15: ("ShareGroupStatePartitionMetadata", SHARE),
    16: ("ConsumerGroupRegularExpression", CONSUMER),
    17: ("StreamsGroupMetadata", STREAMS),
    19: ("StreamsGroupMemberMetadata", STREAMS),
    20: ("StreamsGroupTargetAssignmentMetadata", STREAMS),
    21: ("StreamsGroupTargetAssignmentMember", STREAMS),
    22: ("StreamsGroupCurrentMemberAssignment", STREAMS),
    23: ("StreamsGroupTopology", STREAMS),
}
"""Record type to the name of its messages (without `Key` and `Value`) and the type of group that it belongs to."""

_NUMBERS = {f"{name}Key": number for number, (name, _) in TYPES.items()}

OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_EXPIRING_VERSION = 1
"""The only version with an expiry time, which clients of OffsetCommit versions 2 to 4 may set."""
GROUP_METADATA_VERSION = 3
"""Version 4 holds the same in another encoding, which brokers before 3.5 cannot read."""

NO_TIMESTAMP = -1
RECORD_OVERHEAD_BYTES = 40
BATCH_HEADER_BYTES = 61

_PREFIX = Struct(">h")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.classic_group import ClassicGroup
    from pykafkad.coordinator.member import Member
    from pykafkad.coordinator.offsets import CommittedOffset


@cache
def _classes(number: int) -> tuple[type[Any], type[Any]] | None:
    """The classes of key and value of a record type; None for one that is ignored. Found on first use, so that no
    schema is parsed at start."""
    name, group_type = TYPES.get(number, ("", ""))
    if group_type != CLASSIC and group_type not in MODULES:
        return None
    return getattr(messages, f"{name}Key"), getattr(messages, f"{name}Value")


def group_type(key: object) -> str:
    """The type of group that a record's key belongs to."""
    return TYPES[_NUMBERS[type(key).__name__]][1]


# Records.


def offset_commit(group_id: str, topic: str, partition: int, committed: CommittedOffset | None) -> StoredRecord:
    """The record of a committed offset. With None it is the tombstone."""
    key = messages.OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    if committed is None:
        return StoredRecord(key, None)
    value = messages.OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return StoredRecord(key, value)


def group_metadata(
    group: ClassicGroup,
    generation: int,
    leader_id: str | None,
    timestamp_ms: int,
    members: list[tuple[Member, bytes]],
) -> StoredRecord:
    """The record of a group's generation. `members` are pairs of member and assignment. Without members the record has
    no protocol."""
    protocol_name = group.protocol_name if members else None
    value = messages.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=generation,
        protocol=protocol_name,
        leader=leader_id,
        current_state_timestamp=timestamp_ms,
        members=[
            messages.GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol_name),
                assignment=assignment,
            )
            for member, assignment in members
        ],
    )
    return StoredRecord(messages.GroupMetadataKey(group=group.group_id), value)


def new_group(group: ClassicGroup) -> StoredRecord:
    """The record of a group before its first generation. It says only that the group exists."""
    value = messages.GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=group.state_timestamp_ms
    )
    return StoredRecord(messages.GroupMetadataKey(group=group.group_id), value)


def group_tombstone(group_id: str) -> StoredRecord:
    """The record that deletes a group."""
    return StoredRecord(messages.GroupMetadataKey(group=group_id), None)


# Bytes.


def encode(record: StoredRecord) -> tuple[bytes, bytes | None]:
    """The key and the value as bytes of the log."""
    if type(record) is EncodedRecord:
        return record.encoded
    number = _NUMBERS[type(record.key).__name__]
    key = _encode(record.key, number, 0)
    value: Any = record.value
    if value is None:
        return key, None
    if number != TYPE_OFFSET_COMMIT:
        version = GROUP_METADATA_VERSION if number == TYPE_GROUP_METADATA else 0
    elif value.expire_timestamp != NO_TIMESTAMP:
        version = OFFSET_COMMIT_EXPIRING_VERSION
    else:
        version = OFFSET_COMMIT_VERSION
    return key, _encode(value, version, version)


def _encode(message: Any, prefix: int, version: int) -> bytes:
    chunks = [bytearray(_PREFIX.pack(prefix))]
    messages.encoder(type(message), version)(message, chunks)
    return bytes(chunks[0])


def decode(key: bytes | None, value: bytes | None) -> StoredRecord | None:
    """The record, or None for a record type that is ignored. Raises `ProtocolError` for bytes that are no record."""
    classes = _classes(_prefix(key))
    if classes is None or key is None:
        return None
    key_class, value_class = classes
    typed_key, _ = messages.decoder(key_class, 0)(key, _PREFIX.size)
    if value is None:
        return StoredRecord(typed_key, None)
    version = _prefix(value)
    versions = messages.valid_versions(value_class)
    if version not in versions:
        raise ProtocolError(f"{value_class.__name__} version {version}: versions 0 to {versions[-1]} can be read")
    typed_value, _ = messages.decoder(value_class, version)(value, _PREFIX.size)
    return StoredRecord(typed_key, typed_value)


def _prefix(content: bytes | None) -> int:
    if content is None or len(content) < _PREFIX.size:
        raise ProtocolError(
            f"key and value of a coordinator's record start with two bytes of type or version, not {content!r}"
        )
    prefix: int = _PREFIX.unpack_from(content)[0]
    return prefix


def fits(records: list[StoredRecord], limit_bytes: int) -> bool:
    """Whether the records fit into one batch of `limit_bytes`."""
    size = BATCH_HEADER_BYTES
    for record in records:
        key, value = encode(record)
        size += len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES
    return size <= limit_bytes
