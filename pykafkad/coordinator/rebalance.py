"""The phases of a rebalance: all members join, a new generation begins, all members fetch their assignment.

Each phase has a time limit. Members that miss it are removed from the group."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import record_codec
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.group_states import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    can_rebalance,
)
from pykafkad.coordinator.member import NEVER, Member
from pykafkad.coordinator.step import Step
from pykafkad.wire import messages


def begin_or_complete_join(step: Step, group: ClassicGroup, reason: str) -> None:
    """Start a rebalance, or, if one is under way, end its join phase when all members have joined."""
    if can_rebalance(group.state):
        begin(step, group, reason)
    else:
        complete_join_if_all(step, group)


def begin(step: Step, group: ClassicGroup, reason: str) -> None:
    """Start a rebalance: all members have to join again. `reason` is for people.

    The join phase of a group that was empty lasts at least `group.initial.rebalance.delay.ms` (KIP-134), so that
    members which start at about the same time are in the same generation.
    """
    if group.state is COMPLETING_REBALANCE:
        refuse_sync(step, group, errors.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    step.cancel_sync_timer(group)
    was_empty = group.state is EMPTY
    group.transition(PREPARING_REBALANCE, step.now_ms)
    if group.rebalance_began == NEVER:
        group.rebalance_began = step.now
    step.tell("rebalance-began", group=group.group_id, type=group.type, generation=group.generation, reason=reason)
    if was_empty:
        delay_ms = step.settings.group_initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.remaining_delay_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        step.set_join_timer(group, delay_ms)
    elif group.has_all_joined():
        complete_join(step, group)
    else:
        step.set_join_timer(group, group.rebalance_timeout_ms())


def complete_join_if_all(step: Step, group: ClassicGroup) -> None:
    """End the join phase when all members have joined, but not before the end of an initial delay."""
    if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.has_all_joined():
        complete_join(step, group)


def join_timer_fired(step: Step, group: ClassicGroup) -> None:
    """End the join phase at the end of the initial delay or of the rebalance timeout.

    The initial delay is extended as long as new members join, up to the rebalance timeout.
    """
    if group.join_deadline > step.now:
        return
    group.join_deadline = NEVER
    if group.state is not PREPARING_REBALANCE:
        return
    if group.previous_state is EMPTY and group.new_member_added and group.remaining_delay_ms:
        group.new_member_added = False
        delay_ms = min(step.settings.group_initial_rebalance_delay_ms, group.remaining_delay_ms)
        group.remaining_delay_ms = max(group.remaining_delay_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        step.set_join_timer(group, delay_ms)
    else:
        complete_join(step, group)


def complete_join(step: Step, group: ClassicGroup) -> None:
    """Start the next generation with the members that have joined. Static members that have not joined stay: only the
    end of their session removes them."""
    step.cancel_join_timer(group)
    for member in list(group.members.values()):
        if member.join_token is None and member.instance_id is None:
            group.remove(member.member_id)
            expired(step, group, member, "it has not joined the rebalance in time")
    if not group.members:
        step.append([record_codec.group_metadata(group, group.generation + 1, None, step.now_ms, [])])
        group.rebalance_began = NEVER
        step.tell("group-empty", group=group.group_id, generation=group.generation + 1)
        return
    if not group.elect_joined_leader():
        # Only static members that have not joined are left. The group waits until they join or their sessions end.
        step.set_join_timer(group, group.rebalance_timeout_ms())
        return
    group.generation += 1
    group.protocol_name = group.select_protocol()
    group.subscribed_topics = group.find_subscribed_topics()
    group.transition(COMPLETING_REBALANCE, step.now_ms)
    group.new_member_added = False
    group.pending_syncs = set(group.members)
    for member in group.members.values():
        answer_join(step, member, join_response(group, member))
        step.expect_heartbeat(group, member)
        member.is_new = False
    step.set_sync_timer(group, group.rebalance_timeout_ms())


def sync_timer_fired(step: Step, group: ClassicGroup) -> None:
    """Remove the members that have joined and did not fetch their assignment, and start a new rebalance."""
    if group.sync_deadline > step.now:
        return
    group.sync_deadline = NEVER
    if group.pending_syncs and group.state in (COMPLETING_REBALANCE, STABLE):
        for member_id in [member_id for member_id in group.members if member_id in group.pending_syncs]:
            expired(step, group, group.members[member_id], "it has not fetched its assignment in time")
            group.remove(member_id)
        begin(step, group, "members have not fetched their assignments")


def expired(step: Step, group: ClassicGroup, member: Member, reason: str) -> None:
    """Tell people of a member that is removed because it sent nothing in time."""
    step.tell(
        "member-expired", group=group.group_id, member=member.member_id, instance=member.instance_id, reason=reason
    )


def join_response(group: ClassicGroup, member: Member) -> messages.JoinGroupResponse:
    """The JoinGroup response for a member of the current generation. Only the leader's lists the members."""
    is_leader = group.leader_id == member.member_id
    return messages.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name or None,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=[member_row(group, each) for each in group.members.values()] if is_leader else [],
    )


def member_row(group: ClassicGroup, member: Member) -> messages.JoinGroupResponse.JoinGroupResponseMember:
    """A member's row in the leader's JoinGroup response."""
    return messages.JoinGroupResponse.JoinGroupResponseMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        metadata=member.metadata(group.protocol_name),
    )


def answer_join(step: Step, member: Member, response: messages.JoinGroupResponse) -> None:
    """Answer the member's delayed JoinGroup, if there is one."""
    if member.join_token is not None:
        step.reply(member.join_token, response)
        member.join_token = None


def answer_sync(step: Step, group: ClassicGroup, member: Member, response: messages.SyncGroupResponse) -> None:
    """Answer the member's delayed SyncGroup, if there is one, and restart its session: a member sends no heartbeats
    while it waits."""
    if member.sync_token is not None:
        step.reply(member.sync_token, response)
        member.sync_token = None
        step.expect_heartbeat(group, member)


def refuse_sync(step: Step, group: ClassicGroup, error_code: int) -> None:
    """Answer all delayed SyncGroup requests with an error, and drop the assignments of the last generation."""
    for member in group.members.values():
        member.assignment = b""
        answer_sync(step, group, member, messages.SyncGroupResponse(error_code=error_code))


def join_error(error_code: int, member_id: str = "") -> messages.JoinGroupResponse:
    """A JoinGroup response with an error."""
    return messages.JoinGroupResponse(error_code=error_code, member_id=member_id, protocol_name=None)
