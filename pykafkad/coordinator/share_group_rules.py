"""The rules of share groups in a `GroupShard` (KIP-932; see `group_types.Rules`)."""

from __future__ import annotations

from pykafkad.coordinator import events, group_settings, share_heartbeat, share_offsets
from pykafkad.coordinator.group_records import group_itself, of_group
from pykafkad.coordinator.member import NEVER
from pykafkad.coordinator.share_group import TIMER_MEMBERS, ShareGroup, ShareMember
from pykafkad.coordinator.share_group_events import (
    AlterOffsets,
    DeleteOffsets,
    GroupStateDeleted,
    ShareGroupHeartbeat,
    StateDeleted,
    StateInitialized,
)
from pykafkad.coordinator.share_group_records import partition_states
from pykafkad.wire import messages

LATE_PER_STEP = 20
"""How many members whose sessions are over are removed in one step. Each is a batch of its own in the log."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step


def _apply_group(group: ShareGroup, key: Any, value: Any) -> None:
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _apply_member(group: ShareGroup, key: Any, value: Any) -> None:
    group.all_assigned = False
    if value is None:
        group.remove(key.member_id)
        return
    member = group.members.get(key.member_id) or ShareMember(key.member_id)
    group.put(
        member.copy(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )
    )


def _apply_target_epoch(group: ShareGroup, key: Any, value: Any) -> None:
    if value is not None:
        group.target_epoch, group.target_timestamp_ms = value.assignment_epoch, value.assignment_timestamp


def _apply_target(group: ShareGroup, key: Any, value: Any) -> None:
    group.all_assigned = False
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {
            bytes(row.topic_id): frozenset(row.partitions) for row in value.topic_partitions
        }


def _apply_current(group: ShareGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is None:
        if member is not None:
            group.put(member.copy(epoch=-1, previous_epoch=-1, assigned={}))
        return
    member = member or ShareMember(key.member_id)
    group.put(
        member.copy(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned={bytes(row.topic_id): frozenset(row.partitions) for row in value.assigned_partitions},
        )
    )


def _apply_states(group: ShareGroup, key: Any, value: Any) -> None:
    group.all_assigned = False
    initializing, initialized, deleting = (
        ((), (), ()) if value is None else (value.initializing_topics, value.initialized_topics, value.deleting_topics)
    )
    group.initializing = {bytes(row.topic_id): (row.topic_name, frozenset(row.partitions)) for row in initializing}
    group.initialized = {bytes(row.topic_id): (row.topic_name, frozenset(row.partitions)) for row in initialized}
    group.deleting = {bytes(row.topic_id): row.topic_name for row in deleting}


def _members_timer_fired(shard: GroupShard, step: Step, group: ShareGroup, key: tuple[Any, ...]) -> None:
    """Remove the members whose sessions are over, some in each step."""
    group.timer_at = NEVER
    late = [member_id for member_id, deadline in group.deadlines.items() if deadline <= step.now][:LATE_PER_STEP]
    share_heartbeat.fence(shard, step, group, [each for each in late if each in group.members])
    for member_id in late:
        group.deadlines.pop(member_id, None)
    if group.deadlines:
        group.set_timer(step, min(group.deadlines.values()))


def loaded(shard: GroupShard, step: Step, group: ShareGroup) -> None:
    """Expect heartbeats from the members."""
    timeout_ms = group_settings.number(shard, group.group_id, "share_session_timeout_ms")
    for member_id in group.members:
        group.expect(step, member_id, timeout_ms)


def resigned(step: Step, group: ShareGroup) -> None:
    """No member of a share group waits."""


def metadata_changed(shard: GroupShard, step: Step, group: ShareGroup, event: events.MetadataChanged) -> None:
    """Topics have changed: the next heartbeat looks at them. The state of deleted topics goes by itself."""
    names = set(event.topics)
    if not names.isdisjoint(group.topic_counts):
        group.topics_changed = True
    assert shard.metadata is not None
    known = (*group.initializing, *group.initialized, *group.deleting)
    gone = {topic_id for topic_id in known if shard.metadata.topic_by_id(topic_id) is None}
    if gone:
        step.append(
            [
                partition_states(
                    group.group_id,
                    {each: row for each, row in group.initializing.items() if each not in gone},
                    {each: row for each, row in group.initialized.items() if each not in gone},
                    {each: name for each, name in group.deleting.items() if each not in gone},
                )
            ]
        )


answer_again = share_heartbeat.answer_again

STEPS: dict[type, Callable[[GroupShard, Step, Any], None]] = {
    ShareGroupHeartbeat: share_heartbeat.heartbeat,
    AlterOffsets: share_offsets.alter,
    DeleteOffsets: share_offsets.delete,
    events.DeleteGroup: share_offsets.delete_group,
    GroupStateDeleted: share_offsets.group_state_deleted,
    StateInitialized: share_offsets.initialized,
    StateDeleted: share_offsets.deleted,
}

RECORDS: dict[type, Callable[[GroupShard, Any, Any], None]] = {
    messages.ShareGroupMetadataKey: group_itself(ShareGroup, _apply_group),
    messages.ShareGroupMemberMetadataKey: of_group(ShareGroup, _apply_member),
    messages.ShareGroupTargetAssignmentMetadataKey: of_group(ShareGroup, _apply_target_epoch),
    messages.ShareGroupTargetAssignmentMemberKey: of_group(ShareGroup, _apply_target),
    messages.ShareGroupCurrentMemberAssignmentKey: of_group(ShareGroup, _apply_current),
    messages.ShareGroupStatePartitionMetadataKey: of_group(ShareGroup, _apply_states),
}

TIMERS: dict[str, Callable[[GroupShard, Step, Any, tuple[Any, ...]], None]] = {TIMER_MEMBERS: _members_timer_fired}
