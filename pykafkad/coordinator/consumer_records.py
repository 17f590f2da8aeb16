"""The records of consumer groups (KIP-848): what is written for a group, a member, a target and a pattern."""

from __future__ import annotations

from pykafkad.coordinator.consumer_member import LEAVE_EPOCH, STATES, UNKNOWN_STATE, ConsumerMember
from pykafkad.coordinator.target_records import TargetRecords
from pykafkad.effects import StoredRecord
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.coordinator.assignors import Assignment
    from pykafkad.coordinator.consumer_member import ClassicMetadata, Partitions

    CurrentValue = messages.ConsumerGroupCurrentMemberAssignmentValue
    MemberValue = messages.ConsumerGroupMemberMetadataValue


# Writing.

_TARGETS = TargetRecords("ConsumerGroup")
target = _TARGETS.target
target_epoch = _TARGETS.target_epoch


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    """The record of a new epoch of the group, with the hash of the topics that it subscribes to."""
    value = messages.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return StoredRecord(messages.ConsumerGroupMetadataKey(group_id=group_id), value)


def member(group_id: str, member: ConsumerMember) -> StoredRecord:
    """The record of what a member says of itself."""
    classic = None
    if member.classic is not None:
        classic = messages.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
            session_timeout_ms=member.classic[0],
            supported_protocols=[
                messages.ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic[1]
            ],
        )
    value = messages.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return StoredRecord(messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def current(group_id: str, member: ConsumerMember) -> StoredRecord:
    """The record of a member's epoch, state and partitions."""
    value = messages.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.revoking),
    )
    return StoredRecord(
        messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value
    )


def _with_epochs(
    partitions: Partitions,
) -> list[messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    return [
        messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values())
        )
        for topic_id, epochs in partitions.items()
    ]


def pattern(group_id: str, regex: str, topics: Iterable[str], version: int, timestamp_ms: int) -> StoredRecord:
    """The record of the topics that a pattern matches in a version of the metadata."""
    value = messages.ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms)
    return StoredRecord(messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


# Tombstones.


def pattern_tombstone(group_id: str, regex: str) -> StoredRecord:
    """The record that forgets a pattern."""
    return StoredRecord(messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def partition_metadata_tombstone(group_id: str) -> StoredRecord:
    """The record that deletes the topics of a group as Kafka 4.0 wrote them. Now their hash is enough."""
    return StoredRecord(messages.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """The records that remove a member. Their order matters: a member without partitions has no target either."""
    return [
        StoredRecord(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: list[str], regexes: Iterable[str]) -> list[StoredRecord]:
    """The records that delete a group, in Kafka's order."""
    by_kind = list(zip(*(member_tombstones(group_id, member_id) for member_id in member_ids), strict=True))
    currents, targets, members = by_kind if by_kind else ((), (), ())
    return [
        *currents,
        *targets,
        StoredRecord(messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *members,
        *(pattern_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        StoredRecord(messages.ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


# Reading.


def with_metadata(member: ConsumerMember, value: MemberValue) -> ConsumerMember:
    """The member with what its record says of it."""
    stored: Any = value.classic_member_metadata
    classic: ClassicMetadata | None = None
    if stored is not None:
        classic = (
            stored.session_timeout_ms,
            tuple((each.name, bytes(each.metadata)) for each in stored.supported_protocols),
        )
    return member.copy(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=classic,
    )


def with_current(member: ConsumerMember, value: CurrentValue | None) -> ConsumerMember:
    """The member in the epoch and with the partitions that its record says. Without one it is on its way out."""
    if value is None:
        return member.copy(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={})
    return member.copy(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state if value.state in STATES else UNKNOWN_STATE,
        assigned=_epochs(value.assigned_partitions, value.member_epoch),
        revoking=_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def _epochs(rows: list[CurrentValue.TopicPartitions], member_epoch: int) -> Partitions:
    """Records from before KIP-1251 do not say in which epoch a partition was assigned: that of the member counts."""
    found: Partitions = {}
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is not None and len(epochs) == len(row.partitions):
            found[row.topic_id] = dict(zip(row.partitions, epochs, strict=True))
        else:
            found[row.topic_id] = dict.fromkeys(row.partitions, max(member_epoch, 0))
    return found


def targets_of(value: messages.ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    """What a member shall have, from its record."""
    return {row.topic_id: frozenset(row.partitions) for row in value.topic_partitions}
