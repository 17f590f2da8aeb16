"""The phases of a rebalance: everybody joins (or is left out), a generation begins, everybody syncs (or is left out)."""

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


def begin_or_complete_join(step: Step, group: ClassicGroup) -> None:
    """Start a rebalance if none is under way, else see whether the one under way has now everybody."""
    if can_rebalance(group.state):
        begin(step, group)
    else:
        complete_join_if_all(step, group)


def begin(step: Step, group: ClassicGroup) -> None:
    """Ask everybody to join again. A group that was empty first waits a while, so that members which start together
    meet in one generation (`group.initial.rebalance.delay.ms`, KIP-134)."""
    if group.state is COMPLETING_REBALANCE:
        refuse_sync(step, group, errors.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    step.cancel_sync_timer(group)
    initial = group.state is EMPTY
    group.transition(PREPARING_REBALANCE, step.now_ms)
    if initial:
        delay_ms = step.settings.group_initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.remaining_delay_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        step.set_join_timer(group, delay_ms)
    elif group.has_all_joined():
        complete_join(step, group)
    else:
        step.set_join_timer(group, group.rebalance_timeout_ms())


def complete_join_if_all(step: Step, group: ClassicGroup) -> None:
    """End the join phase when nobody is missing; the initial delay is always waited for."""
    if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.has_all_joined():
        complete_join(step, group)


def join_timer_fired(step: Step, group: ClassicGroup) -> None:
    """The initial delay or the rebalance timeout is over. The initial delay is extended while members keep arriving, as
    long as the rebalance timeout allows."""
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
    """Begin the next generation with those who joined, and with static members, who are missed only by their session."""
    step.cancel_join_timer(group)
    for member in list(group.members.values()):
        if member.join_token is None and member.instance_id is None:
            group.remove(member.member_id)
    if not group.members:
        step.append([record_codec.group_metadata(group, group.generation + 1, None, step.now_ms, [])])
        return
    if not group.elect_joined_leader():
        # Only silent static members are left: wait until they return or their sessions end.
        step.set_join_timer(group, group.rebalance_timeout_ms())
        return
    group.generation += 1
    group.protocol_name = group.select_protocol()
    group.subscribed_topics = group.find_subscribed_topics()
    group.transition(COMPLETING_REBALANCE, step.now_ms)
    group.new_member_added = False
    group.pending_syncs = set(group.members)
    for member in group.members.values():
        answer_join(step, member, joined(group, member))
        step.expect_heartbeat(group, member)
        member.is_new = False
    step.set_sync_timer(group, group.rebalance_timeout_ms())


def sync_timer_fired(step: Step, group: ClassicGroup) -> None:
    """Members that joined and never fetched their assignment are left out, and the rest starts over."""
    if group.sync_deadline > step.now:
        return
    group.sync_deadline = NEVER
    if group.pending_syncs and group.state in (COMPLETING_REBALANCE, STABLE):
        for member_id in list(group.pending_syncs):
            group.remove(member_id)
        begin(step, group)


def joined(group: ClassicGroup, member: Member, *, skip_assignment: bool = False) -> object:
    """What a member of the current generation is told: the leader alone learns who is in it."""
    leads = group.leader_id == member.member_id
    return messages.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name or None,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=[listed(group, each) for each in group.members.values()] if leads else [],
    )


def listed(group: ClassicGroup, member: Member) -> object:
    """A member as the leader sees it in its JoinGroup answer."""
    return messages.JoinGroupResponse.JoinGroupResponseMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        metadata=member.metadata(group.protocol_name),
    )


def answer_join(step: Step, member: Member, response: object) -> None:
    """Answer the member's parked JoinGroup, if there is one."""
    if member.join_token is not None:
        step.reply(member.join_token, response)
        member.join_token = None


def answer_sync(step: Step, group: ClassicGroup, member: Member, response: object) -> None:
    """Answer the member's parked SyncGroup, if there is one. Its session starts anew: it could not send heartbeats."""
    if member.sync_token is not None:
        step.reply(member.sync_token, response)
        member.sync_token = None
        step.expect_heartbeat(group, member)


def refuse_sync(step: Step, group: ClassicGroup, error_code: int) -> None:
    """Send everybody who waits for an assignment away, and forget the assignments of the generation before."""
    for member in group.members.values():
        member.assignment = b""
        answer_sync(step, group, member, messages.SyncGroupResponse(error_code=error_code))


def join_error(error_code: int, member_id: str = "") -> object:
    """A JoinGroup answer that is only an error."""
    return messages.JoinGroupResponse(error_code=error_code, member_id=member_id, protocol_name=None)
