"""Who belongs to a group: joining, heartbeats, leaving, being given up.

The order of the checks is Kafka's, since it decides which of several applicable errors a client sees.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import rebalance, record_codec
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.events import JoinGroup
from pykafkad.coordinator.group_states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from pykafkad.coordinator.member import NEVER, Member
from pykafkad.coordinator.rebalance import answer_join, join_error
from pykafkad.coordinator.step import Step
from pykafkad.wire import messages

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a newcomer's JoinGroup may be parked. It cannot send heartbeats, since it does not know its id, and while
its request is parked nobody notices that it hung up; clients that retry would fill the group with ghosts."""

MAX_PENDING_JOINS = 10_000
"""Ids given out by one group and not yet used. Kafka has no such limit; it bounds what a client that never comes back
with its id can make a broker remember."""


# Joining.


def join(step: Step, group: ClassicGroup, event: JoinGroup) -> None:
    """A JoinGroup: a full group and protocols nobody shares are refused, then the member is new, static or known."""
    request = event.request
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)
    member_id = request.member_id
    if not has_room(step, group, member_id):
        group.remove(member_id)
        step.reply(event.token, join_error(errors.GROUP_MAX_SIZE_REACHED))
    elif not group.supports(request.protocol_type, [name for name, _ in protocols]):
        step.reply(event.token, join_error(errors.INCONSISTENT_GROUP_PROTOCOL, member_id))
    elif not member_id:
        join_unknown(step, group, event, protocols)
    elif member_id in group.pending_joins:
        if request.group_instance_id is not None:
            # An id is given out only to dynamic members: Kafka fails on this request in the same unspecific way.
            step.reply(event.token, join_error(errors.UNKNOWN_SERVER_ERROR))
        else:
            add(step, group, event, member_id, protocols)
    else:
        error_code = group.check_member(member_id, request.group_instance_id)
        if error_code:
            step.reply(event.token, join_error(error_code, member_id))
        else:
            rejoin(step, group, event, group.members[member_id], protocols)


def has_room(step: Step, group: ClassicGroup, member_id: str) -> bool:
    """Whether `group.max.size` lets the member in. During a rebalance those who have joined count, so that a group
    which is over the limit, because the limit was lowered, sheds the last to rejoin."""
    if not member_id and len(group.pending_joins) >= MAX_PENDING_JOINS:
        return False
    limit = step.settings.group_max_size
    if group.state is EMPTY or len(group.members) < limit:
        return True
    member = group.members.get(member_id)
    if group.state is PREPARING_REBALANCE:
        return (member is not None and member.join_token is not None) or group.awaiting_join_count() < limit
    return member is not None


def join_unknown(step: Step, group: ClassicGroup, event: JoinGroup, protocols: tuple) -> None:
    """A member without id: a static one is recognised by its instance id, a dynamic one is given an id."""
    request = event.request
    instance_id = request.group_instance_id
    member_id = step.new_member_id(event.client_id if instance_id is None else instance_id)
    if instance_id is not None:
        known = group.static_members.get(instance_id)
        if known is not None:
            replace_static(step, group, event, group.members[known], member_id, protocols)
        else:
            add(step, group, event, member_id, protocols)
    elif event.member_id_required:
        step.expect_join(group, member_id, request.session_timeout_ms)
        step.reply(event.token, join_error(errors.MEMBER_ID_REQUIRED, member_id))
    else:
        add(step, group, event, member_id, protocols)


def add(step: Step, group: ClassicGroup, event: JoinGroup, member_id: str, protocols: tuple) -> None:
    """Make a member of the request, and rebalance."""
    request = event.request
    member = Member(
        member_id,
        request.group_instance_id,
        event.client_id,
        event.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocol_type,
        protocols,
    )
    member.is_new = True
    if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
        group.new_member_added = True
    group.add(member)
    member.join_token = event.token
    step.expect_heartbeat(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance.begin_or_complete_join(step, group)


def rejoin(step: Step, group: ClassicGroup, event: JoinGroup, member: Member, protocols: tuple) -> None:
    """A known member joins again: for a rebalance under way, to start one, or because it missed the answer."""
    unchanged = member.protocols == protocols
    if group.state is EMPTY:
        step.reply(event.token, join_error(errors.UNKNOWN_MEMBER_ID, member.member_id))
    elif unchanged and (
        group.state is COMPLETING_REBALANCE or (group.state is STABLE and group.leader_id != member.member_id)
    ):
        step.reply(event.token, rebalance.joined(group, member))
    else:
        # In a stable group the leader may always start a rebalance: what it assigns from, such as the number of
        # partitions, can change without its metadata changing.
        group.update(member, event.request, protocols)
        member.join_token = event.token
        rebalance.begin_or_complete_join(step, group)


def replace_static(
    step: Step, group: ClassicGroup, event: JoinGroup, old: Member, member_id: str, protocols: tuple
) -> None:
    """A static member came back under a new member id (KIP-345): the old id is fenced, and in a stable group, if the
    protocol stays, nothing else happens: the newcomer goes on with the assignment of its predecessor."""
    fence(step, old)
    request = event.request
    member = Member(
        member_id,
        old.instance_id,
        old.client_id,
        old.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        old.protocol_type,
        protocols,
        old.assignment,
    )
    if group.state is STABLE and group.select_protocol(old.member_id, member) == group.protocol_name:
        take_over(step, group, event, old, member)
        return
    group.replace(old.member_id, member)
    member.join_token = event.token
    step.expect_heartbeat(group, member)
    if group.state is PREPARING_REBALANCE:
        rebalance.complete_join_if_all(step, group)
    else:
        rebalance.begin(step, group)


def take_over(step: Step, group: ClassicGroup, event: JoinGroup, old: Member, member: Member) -> None:
    """Store the new id in place of the old one; the group changes when the record is applied."""
    old_leader = group.leader_id
    leads = old_leader == old.member_id
    leader = member.member_id if leads else old_leader
    members = [(member if each is old else each) for each in group.members.values()]
    record = record_codec.group_metadata(
        group, group.generation, leader, group.state_timestamp_ms, [(each, each.assignment) for each in members]
    )
    group.arriving[member.member_id] = member
    step.expect_heartbeat(group, member)
    step.append([record])
    told = leads and event.may_skip_assignment
    step.reply(
        event.token,
        messages.JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name or None,
            # An older client that led is told the old id, so that it takes itself for a follower: it could not be told
            # to leave the assignment as it is.
            leader=(leader if event.may_skip_assignment else old_leader) or "",
            skip_assignment=told,
            member_id=member.member_id,
            members=[rebalance.listed(group, each) for each in members] if told else [],
        ),
    )


def fence(step: Step, member: Member) -> None:
    """Send the former holder of an instance id away, wherever it waits."""
    answer_join(step, member, join_error(errors.FENCED_INSTANCE_ID, member.member_id))
    if member.sync_token is not None:
        step.reply(member.sync_token, messages.SyncGroupResponse(error_code=errors.FENCED_INSTANCE_ID))
        member.sync_token = None


# Staying.


def heartbeat(step: Step, group: ClassicGroup | None, request: object) -> int:
    """The answer to a heartbeat: NONE, or an error code that tells the member what to do."""
    if group is None:
        return errors.UNKNOWN_MEMBER_ID
    error_code = group.check_member_of_generation(request.member_id, request.group_instance_id, request.generation_id)
    if error_code:
        return error_code
    step.expect_heartbeat(group, group.members[request.member_id])
    return errors.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else errors.NONE


# Leaving.


def leave(step: Step, group: ClassicGroup | None, request: object) -> object:
    """Let the named members go; the answer has a row for each."""
    rows = []
    for identity in request.members:
        error_code = leave_one(step, group, identity)
        rows.append(
            messages.LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error_code
            )
        )
    if group is not None and any(row.error_code == errors.NONE for row in rows):
        after_removal(step, group)
    return messages.LeaveGroupResponse(members=rows)


def leave_one(step: Step, group: ClassicGroup | None, identity: object) -> int:
    """An administrator names static members by instance id alone (KIP-345)."""
    if group is None:
        return errors.UNKNOWN_MEMBER_ID
    member_id = identity.member_id
    if not member_id:
        member_id = group.static_members.get(identity.group_instance_id, "")
        if not member_id:
            return errors.UNKNOWN_MEMBER_ID
    elif member_id in group.pending_joins:
        group.remove(member_id)
        return errors.NONE
    error_code = group.check_member(member_id, identity.group_instance_id)
    if not error_code:
        send_away(step, group, group.members[member_id])
    return error_code


def send_away(step: Step, group: ClassicGroup, member: Member) -> None:
    """Remove a member. If it still waits for an answer it is alive, and may join again as somebody new."""
    answer_join(step, member, join_error(errors.UNKNOWN_MEMBER_ID))
    if member.sync_token is not None:
        step.reply(member.sync_token, messages.SyncGroupResponse(error_code=errors.UNKNOWN_MEMBER_ID))
        member.sync_token = None
    group.remove(member.member_id)


def after_removal(step: Step, group: ClassicGroup) -> None:
    """What members' going means for the group: a new rebalance, or the end of the wait for them."""
    if group.state is STABLE or group.state is COMPLETING_REBALANCE:
        rebalance.begin(step, group)
    else:
        rebalance.complete_join_if_all(step, group)


# Being given up.


def session_timer_fired(step: Step, group: ClassicGroup) -> None:
    """Give up those whose time is over, then sleep until the next may be."""
    group.session_timer_at = NEVER
    due = [(member.session_deadline, member_id) for member_id, member in group.members.items()]
    due.extend((deadline, member_id) for member_id, deadline in group.pending_joins.items())
    for _, member_id in sorted(entry for entry in due if entry[0] <= step.now):
        expire(step, group, member_id)
    following = [member.session_deadline for member in group.members.values()]
    following.extend(group.pending_joins.values())
    at = min(following, default=NEVER)
    if at < group.session_timer_at:
        step.set_session_timer(group, at)


def expire(step: Step, group: ClassicGroup, member_id: str) -> None:
    """A member's deadline has come: a member id nobody used is forgotten, a silent member leaves."""
    member = group.members.get(member_id)
    if member is None:
        if group.pending_joins.get(member_id, NEVER) <= step.now:
            group.remove(member_id)
            complete_join_without(step, group)
        return
    if member.session_deadline > step.now:
        return
    if member.has_satisfied_heartbeat():
        # Its session starts again when its parked request is answered.
        member.session_deadline = NEVER
        return
    send_away(step, group, member)
    if group.state is PREPARING_REBALANCE:
        complete_join_without(step, group)
    else:
        after_removal(step, group)


def complete_join_without(step: Step, group: ClassicGroup) -> None:
    """Somebody the join phase was waiting for is gone. Unlike a leave, this ends even the initial delay early."""
    if group.state is PREPARING_REBALANCE and group.has_all_joined():
        rebalance.complete_join(step, group)
