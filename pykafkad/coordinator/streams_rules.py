"""The rules of streams groups in a `GroupShard` (KIP-1071; see `group_types.Rules`)."""

from __future__ import annotations

from pykafkad.coordinator import (
    group_settings,
    streams_assignment,
    streams_heartbeat,
    streams_records,
    target_computation,
)
from pykafkad.coordinator.group_records import group_itself, of_group
from pykafkad.coordinator.in_steps import at_once
from pykafkad.coordinator.reconciled_group import NO_TARGET_EPOCH, REVOCATION, SESSION, TIMER_MEMBERS
from pykafkad.coordinator.streams_events import StreamsGroupHeartbeat
from pykafkad.coordinator.streams_group import TIMER_INITIAL, StreamsGroup
from pykafkad.coordinator.streams_member import UNREVOKED_TASKS, StreamsMember, Target, Tasks
from pykafkad.coordinator.streams_request import LEAVE_EPOCH
from pykafkad.coordinator.streams_topology import Topology
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.coordinator.events import MetadataChanged
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step


# Records.


def _apply_group(group: StreamsGroup, key: Any, value: Any) -> None:
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    group.validated_epoch = value.validated_topology_epoch
    group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}


def _apply_topology(group: StreamsGroup, key: Any, value: Any) -> None:
    group.topology = None if value is None else Topology(value)


def _apply_member(group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove(key.member_id)
    else:
        member = group.members.get(key.member_id) or StreamsMember(key.member_id)
        group.put(streams_records.described_member(member, value))


def _apply_target_epoch(group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        group.target_epoch, group.target_timestamp_ms = NO_TARGET_EPOCH, 0
    else:
        group.target_epoch, group.target_timestamp_ms = value.assignment_epoch, value.assignment_timestamp


def _apply_target(group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = Target(
            streams_records.partitions(value.active_tasks),
            streams_records.partitions(value.standby_tasks),
            streams_records.partitions(value.warmup_tasks),
        )


def _apply_current(group: StreamsGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put(streams_records.assigned_member(member or StreamsMember(key.member_id), value))
    elif member is not None:
        group.put(member.copy(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=Tasks(), revoking=Tasks()))


RECORDS: dict[type, Callable[[GroupShard, Any, Any], None]] = {
    messages.StreamsGroupMetadataKey: group_itself(StreamsGroup, _apply_group),
    messages.StreamsGroupMemberMetadataKey: of_group(StreamsGroup, _apply_member),
    messages.StreamsGroupTargetAssignmentMetadataKey: of_group(StreamsGroup, _apply_target_epoch),
    messages.StreamsGroupTargetAssignmentMemberKey: of_group(StreamsGroup, _apply_target),
    messages.StreamsGroupCurrentMemberAssignmentKey: of_group(StreamsGroup, _apply_current),
    messages.StreamsGroupTopologyKey: of_group(StreamsGroup, _apply_topology),
}

# Events.

answer_again = streams_heartbeat.answer_again

STEPS: dict[type, Callable[[GroupShard, Step, Any], None]] = {StreamsGroupHeartbeat: streams_heartbeat.heartbeat}


def loaded(shard: GroupShard, step: Step, group: StreamsGroup) -> None:
    """All members get a whole session, and those that must give up tasks the whole time for it."""
    session_ms = group_settings.number(shard, group.group_id, "streams_session_timeout_ms")
    for member in group.members.values():
        group.expect(step, SESSION, member.member_id, session_ms)
        if member.state == UNREVOKED_TASKS:
            group.expect(step, REVOCATION, member.member_id, member.rebalance_timeout_ms)


def resigned(step: Step, group: StreamsGroup) -> None:
    """No request of a streams group waits."""


def metadata_changed(shard: GroupShard, step: Step, group: StreamsGroup, event: MetadataChanged) -> None:
    """Remember that the topics must be looked at again: the next heartbeat of a member does it."""
    if group.topology is not None and any(name in group.topology.required_topics for name in event.topics):
        group.topics_changed = True


def _members_timer(shard: GroupShard, step: Step, group: StreamsGroup, key: tuple[Any, ...]) -> None:
    """Remove a member whose deadline has passed. Each step removes one: the next one builds on its records."""
    member = group.pop_late_member(step.now)
    if member is not None:
        streams_heartbeat.fence(step, group, member)
    group.expect_the_rest(step)


def _initial_timer(shard: GroupShard, step: Step, group: StreamsGroup, key: tuple[Any, ...]) -> None:
    """A new group has waited for its first members: compute its first target. A group that only one heartbeat has
    reached is assigned with the next one, as in Kafka."""
    group.is_delayed = False
    if (
        group.is_empty
        or group.configured is None
        or group.epoch <= group.target_epoch
        or not streams_assignment.may_assign(shard, step, group)
        or target_computation.is_under_way(shard, group)
    ):
        return
    work = streams_assignment.TargetWork(group, group.configured, group.assignment_configs, None)
    if work.size > target_computation.LARGE_WORK:
        streams_assignment.request(step, group, group.epoch, work)
        target_computation.start(shard, step)
    else:
        _, records = at_once(work.steps())
        epoch_record = streams_records.target_epoch(group.group_id, group.epoch, step.now_ms)
        step.append([*records.values(), epoch_record])


TIMERS: dict[str, Callable[[GroupShard, Step, Any, tuple[Any, ...]], None]] = {
    TIMER_MEMBERS: _members_timer,
    TIMER_INITIAL: _initial_timer,
}
