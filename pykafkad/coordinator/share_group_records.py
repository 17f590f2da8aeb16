"""The records of share groups (KIP-932): what is written for a group, a member, a target, and the delivery state of its
partitions."""

from __future__ import annotations

from pykafkad.coordinator.target_records import TargetRecords
from pykafkad.effects import StoredRecord
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.coordinator.share_group import ShareMember, Topics


_TARGETS = TargetRecords("ShareGroup")
target = _TARGETS.target
target_epoch = _TARGETS.target_epoch


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    """The record of a new epoch of the group, with the hash of the topics that it subscribes to."""
    value = messages.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return StoredRecord(messages.ShareGroupMetadataKey(group_id=group_id), value)


def member(group_id: str, member: ShareMember) -> StoredRecord:
    """The record of what a member says of itself."""
    value = messages.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )
    return StoredRecord(messages.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def current(group_id: str, member: ShareMember) -> StoredRecord:
    """The record of a member's epoch and partitions. Its state is always 0, stable."""
    value = messages.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=0,
        assigned_partitions=[
            messages.ShareGroupCurrentMemberAssignmentValue.TopicPartitions(
                topic_id=topic_id, partitions=sorted(partitions)
            )
            for topic_id, partitions in member.assigned.items()
        ],
    )
    return StoredRecord(
        messages.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value
    )


def partition_states(
    group_id: str, initializing: Topics, initialized: Topics, deleting: Mapping[bytes, str]
) -> StoredRecord:
    """The record of the share partitions that have delivery state, or are about to get or lose it."""
    cls = messages.ShareGroupStatePartitionMetadataValue

    def rows(topics: Topics) -> list[messages.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
        return [
            cls.TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
            for topic_id, (name, partitions) in topics.items()
        ]

    value = cls(
        initializing_topics=rows(initializing),
        initialized_topics=rows(initialized),
        deleting_topics=[cls.TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in deleting.items()],
    )
    return StoredRecord(messages.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """The records that remove a member."""
    return [
        StoredRecord(messages.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(messages.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(messages.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: list[str]) -> list[StoredRecord]:
    """The records that delete a group."""
    return [
        *(record for member_id in member_ids for record in member_tombstones(group_id, member_id)),
        StoredRecord(messages.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        StoredRecord(messages.ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        StoredRecord(messages.ShareGroupMetadataKey(group_id=group_id), None),
    ]
