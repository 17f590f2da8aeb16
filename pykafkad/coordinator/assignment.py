"""SyncGroup, the second half of a rebalance: the leader sends the assignment, and each member receives its own part."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import rebalance, record_codec
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.group_states import COMPLETING_REBALANCE, PREPARING_REBALANCE
from pykafkad.coordinator.member import NEVER
from pykafkad.coordinator.step import Step
from pykafkad.wire import messages


def sync(step: Step, group: ClassicGroup | None, token: object, request: messages.SyncGroupRequest) -> None:
    """Serve one SyncGroup: refuse it, delay its answer, or, when it comes from the leader, end the rebalance."""
    error_code = check(group, request)
    if error_code or group is None:
        step.reply(token, messages.SyncGroupResponse(error_code=error_code))
        return
    member = group.members[request.member_id]
    group.pending_syncs.discard(member.member_id)
    if not group.pending_syncs:
        step.cancel_sync_timer(group)
    if group.state is not COMPLETING_REBALANCE:
        step.reply(token, sync_response(group, member.assignment))
        return
    member.sync_token = token
    if group.leader_id == member.member_id:
        complete(step, group, {each.member_id: bytes(each.assignment) for each in request.assignments})


def check(group: ClassicGroup | None, request: messages.SyncGroupRequest) -> int:
    """The error code that refuses a SyncGroup, checked in Kafka's order, or NONE."""
    if group is None:
        return errors.UNKNOWN_MEMBER_ID
    error_code = group.check_member_of_generation(request.member_id, request.group_instance_id, request.generation_id)
    if error_code:
        return error_code
    for named, actual in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
        if named is not None and actual is not None and named != actual:
            return errors.INCONSISTENT_GROUP_PROTOCOL
    return errors.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else errors.NONE


def complete(step: Step, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """Write the assignment to the log and send each member its part.

    The group becomes stable when the record is applied. The replies wait until the record is durable: otherwise a
    member could work on an assignment that the coordinator does not know after a restart.
    """
    members = [(member, assignments.get(member.member_id, b"")) for member in group.members.values()]
    record = record_codec.group_metadata(group, group.generation, group.leader_id, group.state_timestamp_ms, members)
    if not record_codec.fits([record], step.settings.message_max_bytes):
        rebalance.refuse_sync(step, group, errors.UNKNOWN_SERVER_ERROR)
        rebalance.begin(step, group, "the assignment is larger than a record may be")
        return
    step.append([record])
    for member, content in members:
        rebalance.answer_sync(step, group, member, sync_response(group, content))
    if group.rebalance_began != NEVER:
        took_ms = round((step.now - group.rebalance_began) * 1000)
        group.rebalance_began = NEVER
        step.tell(
            "rebalance-ended",
            group=group.group_id,
            type=group.type,
            generation=group.generation,
            members=len(members),
            took_ms=took_ms,
        )


def sync_response(group: ClassicGroup, content: bytes) -> messages.SyncGroupResponse:
    """The SyncGroup response that carries a member's assignment."""
    return messages.SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=content
    )
