"""The records of streams groups (KIP-1071): what is written for a group, a member, a target and a topology."""

from __future__ import annotations

from pykafkad.coordinator.streams_member import STATES, UNKNOWN_STATE, StreamsMember, Target, Tasks
from pykafkad.effects import StoredRecord
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from pykafkad.coordinator.streams_member import Epochs, Partitions
    from pykafkad.coordinator.streams_topology import Topology

    CurrentValue = messages.StreamsGroupCurrentMemberAssignmentValue


def group_epoch(
    group_id: str, epoch: int, metadata_hash: int, validated_epoch: int, assignment_configs: Mapping[str, str]
) -> StoredRecord:
    """The record of a new epoch of the group, with the hash of the topics of its topology, the epoch of the topology
    whose topics are complete (-1: none), and the settings that the assignor was given."""
    cls = messages.StreamsGroupMetadataValue
    value = cls(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_epoch,
        last_assignment_configs=[
            cls.LastAssignmentConfig(key=key, value=value) for key, value in sorted(assignment_configs.items())
        ],
    )
    return StoredRecord(messages.StreamsGroupMetadataKey(group_id=group_id), value)


def topology_record(group_id: str, topology: Topology) -> StoredRecord:
    """The record of the group's topology."""
    return StoredRecord(messages.StreamsGroupTopologyKey(group_id=group_id), topology.value)


# Members.


def member(group_id: str, member: StreamsMember) -> StoredRecord:
    """The record of what a member says of itself."""
    cls = messages.StreamsGroupMemberMetadataValue
    endpoint = member.endpoint
    value = cls(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else cls.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[cls.KeyValue(key=key, value=value) for key, value in sorted(member.client_tags.items())],
    )
    return StoredRecord(messages.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def described_member(member: StreamsMember, value: messages.StreamsGroupMemberMetadataValue) -> StreamsMember:
    """The member as its record says."""
    endpoint = value.user_endpoint
    return member.copy(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={each.key: each.value for each in value.client_tags},
    )


# Targets.


def target(group_id: str, member_id: str, target: Target) -> StoredRecord:
    """The record of the tasks that a member shall have."""
    cls = messages.StreamsGroupTargetAssignmentMemberValue

    def rows(partitions: Partitions) -> list[messages.StreamsGroupTargetAssignmentMemberValue.TaskIds]:
        return [
            cls.TaskIds(subtopology_id=each, partitions=sorted(tasks)) for each, tasks in sorted(partitions.items())
        ]

    value = cls(active_tasks=rows(target.active), standby_tasks=rows(target.standby), warmup_tasks=rows(target.warmup))
    return StoredRecord(messages.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
    """The record of the group epoch that all targets are of, and when they were computed."""
    value = messages.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return StoredRecord(messages.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def partitions(rows: Iterable[Any]) -> Partitions:
    """Subtopology id to partitions, as rows of a record or request have them."""
    return {row.subtopology_id: frozenset(row.partitions) for row in rows}


# Present tasks.


def current(group_id: str, member: StreamsMember) -> StoredRecord:
    """The record of a member's epoch, state and tasks."""
    cls = messages.StreamsGroupCurrentMemberAssignmentValue
    assigned, revoking = member.assigned, member.revoking
    value = cls(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_active_rows(assigned.active),
        standby_tasks=_rows(assigned.standby),
        warmup_tasks=_rows(assigned.warmup),
        active_tasks_pending_revocation=_active_rows(revoking.active),
        standby_tasks_pending_revocation=_rows(revoking.standby),
        warmup_tasks_pending_revocation=_rows(revoking.warmup),
    )
    key = messages.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return StoredRecord(key, value)


def _rows(partitions: Partitions) -> list[CurrentValue.TaskIds]:
    cls = messages.StreamsGroupCurrentMemberAssignmentValue
    return [cls.TaskIds(subtopology_id=each, partitions=sorted(tasks)) for each, tasks in sorted(partitions.items())]


def _active_rows(tasks: Epochs) -> list[CurrentValue.TaskIds]:
    cls = messages.StreamsGroupCurrentMemberAssignmentValue
    return [
        cls.TaskIds(
            subtopology_id=each, partitions=sorted(epochs), assignment_epochs=[epochs[task] for task in sorted(epochs)]
        )
        for each, epochs in sorted(tasks.items())
    ]


def assigned_member(member: StreamsMember, value: CurrentValue) -> StreamsMember:
    """The member as the record of its tasks says."""
    return member.copy(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state if value.state in STATES else UNKNOWN_STATE,
        assigned=Tasks(
            _epochs(value.active_tasks, value.member_epoch),
            partitions(value.standby_tasks),
            partitions(value.warmup_tasks),
        ),
        revoking=Tasks(
            _epochs(value.active_tasks_pending_revocation, value.member_epoch),
            partitions(value.standby_tasks_pending_revocation),
            partitions(value.warmup_tasks_pending_revocation),
        ),
    )


def _epochs(rows: list[CurrentValue.TaskIds], member_epoch: int) -> Epochs:
    """The epoch of each task. Records of before KIP-1251 have none: then it is the member's."""
    result = {}
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None or len(epochs) != len(row.partitions):
            epochs = [member_epoch] * len(row.partitions)
        result[row.subtopology_id] = dict(zip(row.partitions, epochs, strict=True))
    return result


# Tombstones.


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """The records that remove a member."""
    return [
        StoredRecord(messages.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(messages.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(messages.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: list[str]) -> list[StoredRecord]:
    """The records that delete a group."""
    by_member = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(records[0] for records in by_member),
        *(records[1] for records in by_member),
        StoredRecord(messages.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(records[2] for records in by_member),
        StoredRecord(messages.StreamsGroupMetadataKey(group_id=group_id), None),
        StoredRecord(messages.StreamsGroupTopologyKey(group_id=group_id), None),
    ]
