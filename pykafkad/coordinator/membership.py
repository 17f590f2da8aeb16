"""The members of a group: joining, heartbeats, leaving, and expired sessions.

The checks are in Kafka's order, because the order decides which of several errors a client gets.
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    Protocols = tuple[tuple[str, bytes], ...]
    LeavingMember = messages.LeaveGroupRequest.MemberIdentity

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long the answer to a new member's JoinGroup may be delayed. The member cannot send heartbeats, because it does
not know its id yet. Without this limit, clients that disconnect and retry would leave dead members in the group."""

MAX_PENDING_JOINS = 10_000
"""The most member ids that one group has given to clients which have not joined with them yet. Kafka has no such limit.
It bounds the memory that a client can fill which never joins with its ids."""


# Joining.


def join(step: Step, group: ClassicGroup, event: JoinGroup) -> None:
    """Serve a JoinGroup. A full group and protocols that not all members share are refused first. What follows depends
    on whether the member has an id, and whether that id has joined before."""
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
            # Only dynamic members are given an id to join with. Kafka fails with the same unspecific error.
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
    """Whether `group.max.size` allows the member. During a rebalance only members that have joined count. So when the
    limit was lowered and the group is too large, the last members to join again are refused."""
    if not member_id and len(group.pending_joins) >= MAX_PENDING_JOINS:
        return False
    limit = step.settings.group_max_size
    if group.state is EMPTY or len(group.members) < limit:
        return True
    member = group.members.get(member_id)
    if group.state is PREPARING_REBALANCE:
        return (member is not None and member.join_token is not None) or group.awaiting_join_count() < limit
    return member is not None


def join_unknown(step: Step, group: ClassicGroup, event: JoinGroup, protocols: Protocols) -> None:
    """Serve the JoinGroup of a member without id. A static member is recognised by its instance id. A dynamic member
    gets an id."""
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


def add(step: Step, group: ClassicGroup, event: JoinGroup, member_id: str, protocols: Protocols) -> None:
    """Add a new member to the group and start a rebalance."""
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
    _tell_joined(step, group, member)
    rebalance.begin_or_complete_join(step, group, "a member has joined")


def _tell_joined(step: Step, group: ClassicGroup, member: Member, replaced: str | None = None) -> None:
    step.tell(
        "member-joined",
        group=group.group_id,
        member=member.member_id,
        instance=member.instance_id,
        in_place_of=replaced,
        client=member.client_id,
        host=member.client_host,
    )


def rejoin(step: Step, group: ClassicGroup, event: JoinGroup, member: Member, protocols: Protocols) -> None:
    """Serve the JoinGroup of a member of the group. It joins a rebalance under way, starts one, or missed the response
    to its last JoinGroup."""
    unchanged = member.protocols == protocols
    if group.state is EMPTY:
        step.reply(event.token, join_error(errors.UNKNOWN_MEMBER_ID, member.member_id))
    elif unchanged and (
        group.state is COMPLETING_REBALANCE or (group.state is STABLE and group.leader_id != member.member_id)
    ):
        step.reply(event.token, rebalance.join_response(group, member))
    else:
        # In a stable group the leader may always start a rebalance. The number of partitions, for example, can change
        # although the leader's metadata does not.
        group.update(member, event.request, protocols)
        member.join_token = event.token
        is_leader = group.leader_id == member.member_id
        reason = "its leader has joined again" if is_leader and unchanged else "a member has changed its protocols"
        rebalance.begin_or_complete_join(step, group, reason)


def replace_static(
    step: Step, group: ClassicGroup, event: JoinGroup, old: Member, member_id: str, protocols: Protocols
) -> None:
    """Serve the JoinGroup of a static member that restarted and gets a new member id (KIP-345).

    The old member id is fenced. In a stable group whose protocol stays the same, the new member takes over the
    assignment of the old one without a rebalance.
    """
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
    _tell_joined(step, group, member, old.member_id)
    group.replace(old.member_id, member)
    member.join_token = event.token
    step.expect_heartbeat(group, member)
    if group.state is PREPARING_REBALANCE:
        rebalance.complete_join_if_all(step, group)
    else:
        rebalance.begin(step, group, "a static member has come back")


def take_over(step: Step, group: ClassicGroup, event: JoinGroup, old: Member, member: Member) -> None:
    """Write a record with the new member in place of the old one. The group changes when the record is applied."""
    old_leader = group.leader_id
    is_leader = old_leader == old.member_id
    leader = member.member_id if is_leader else old_leader
    members = [(member if each is old else each) for each in group.members.values()]
    record = record_codec.group_metadata(
        group, group.generation, leader, group.state_timestamp_ms, [(each, each.assignment) for each in members]
    )
    group.arriving[member.member_id] = member
    step.expect_heartbeat(group, member)
    step.append([record])
    _tell_joined(step, group, member, old.member_id)
    skip_assignment = is_leader and event.may_skip_assignment
    step.reply(
        event.token,
        messages.JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name or None,
            # An older client does not know `skip_assignment`. If it was the leader it gets its old member id as the
            # leader's id, so that it takes itself for a follower and does not assign anew.
            leader=(leader if event.may_skip_assignment else old_leader) or "",
            skip_assignment=skip_assignment,
            member_id=member.member_id,
            members=[rebalance.member_row(group, each) for each in members] if skip_assignment else [],
        ),
    )


def fence(step: Step, member: Member) -> None:
    """Answer the delayed requests of a member whose instance id another member has taken over."""
    answer_join(step, member, join_error(errors.FENCED_INSTANCE_ID, member.member_id))
    if member.sync_token is not None:
        step.reply(member.sync_token, messages.SyncGroupResponse(error_code=errors.FENCED_INSTANCE_ID))
        member.sync_token = None


# Heartbeats.


def heartbeat(step: Step, group: ClassicGroup | None, request: messages.HeartbeatRequest) -> int:
    """The error code that answers a heartbeat: NONE, or one that makes the member join again."""
    if group is None:
        return errors.UNKNOWN_MEMBER_ID
    error_code = group.check_member_of_generation(request.member_id, request.group_instance_id, request.generation_id)
    if error_code:
        return error_code
    step.expect_heartbeat(group, group.members[request.member_id])
    return errors.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else errors.NONE


# Leaving.


def leave(step: Step, group: ClassicGroup | None, request: messages.LeaveGroupRequest) -> messages.LeaveGroupResponse:
    """Remove the named members. The response has a row for each."""
    rows = []
    for identity in request.members:
        error_code = leave_one(step, group, identity)
        rows.append(
            messages.LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error_code
            )
        )
    if group is not None and any(row.error_code == errors.NONE for row in rows):
        after_removal(step, group, "a member has left")
    return messages.LeaveGroupResponse(members=rows)


def leave_one(step: Step, group: ClassicGroup | None, identity: LeavingMember) -> int:
    """Remove one member and return its error code. Administrators name static members by instance id alone
    (KIP-345)."""
    if group is None:
        return errors.UNKNOWN_MEMBER_ID
    member_id = identity.member_id
    if not member_id:
        member_id = group.static_members.get(identity.group_instance_id or "", "")
        if not member_id:
            return errors.UNKNOWN_MEMBER_ID
    elif member_id in group.pending_joins:
        group.remove(member_id)
        return errors.NONE
    error_code = group.check_member(member_id, identity.group_instance_id)
    if not error_code:
        step.tell("member-left", group=group.group_id, member=member_id, instance=identity.group_instance_id)
        remove(step, group, group.members[member_id])
    return error_code


def remove(step: Step, group: ClassicGroup, member: Member) -> None:
    """Remove a member and answer its delayed requests. If its client is still alive, it can join as a new member."""
    answer_join(step, member, join_error(errors.UNKNOWN_MEMBER_ID))
    if member.sync_token is not None:
        step.reply(member.sync_token, messages.SyncGroupResponse(error_code=errors.UNKNOWN_MEMBER_ID))
        member.sync_token = None
    group.remove(member.member_id)


def after_removal(step: Step, group: ClassicGroup, reason: str) -> None:
    """Start a rebalance after members were removed, or end the join phase if it waited only for them."""
    if group.state is STABLE or group.state is COMPLETING_REBALANCE:
        rebalance.begin(step, group, reason)
    else:
        rebalance.complete_join_if_all(step, group)


# Expired sessions.


def session_timer_fired(step: Step, group: ClassicGroup) -> None:
    """Expire the members whose deadline has passed, and set the timer to the next deadline."""
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
    """Remove a member that sent no heartbeat until its deadline, or a member id that nobody joined with."""
    member = group.members.get(member_id)
    if member is None:
        if group.pending_joins.get(member_id, NEVER) <= step.now:
            group.remove(member_id)
            complete_join_without(step, group)
        return
    if member.session_deadline > step.now:
        return
    if member.has_satisfied_heartbeat():
        # Its session starts again when its delayed request is answered.
        member.session_deadline = NEVER
        return
    rebalance.expired(step, group, member, "its session has ended")
    remove(step, group, member)
    if group.state is PREPARING_REBALANCE:
        complete_join_without(step, group)
    else:
        after_removal(step, group, "a member's session has expired")


def complete_join_without(step: Step, group: ClassicGroup) -> None:
    """End the join phase if it waited only for the member that was removed.

    Unlike a member that leaves, a member that expires ends even the initial delay early.
    """
    if group.state is PREPARING_REBALANCE and group.has_all_joined():
        rebalance.complete_join(step, group)
