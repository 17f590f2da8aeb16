"""LeaveGroup, versions 0 to 5.

Before version 3 one member leaves and the answer is one error code. From version 3 several members can leave, by member
id or, when an administrator removes static members, by instance id (KIP-345); each has its row. Version 5 adds a
reason.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.events import LeaveGroup
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_READ_GROUP,) = RULES["LeaveGroup"]


def handle(ctx: Context, request: messages.LeaveGroupRequest) -> object:
    error_code = _refusal(ctx, request.group_id)
    if error_code:
        return messages.LeaveGroupResponse(error_code=error_code)
    if ctx.version >= 3:
        return ctx.groups.submit(request.group_id, LeaveGroup(ctx.token, request))
    request.members = [messages.LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    return ctx.groups.submit_many([(request.group_id, LeaveGroup(ctx.token, request))], _single, ctx.token)


def _refusal(ctx: Context, group_id: str) -> int:
    if not may(ctx, _READ_GROUP, group_id):
        return _READ_GROUP.error
    if not group_id:
        return errors.INVALID_GROUP_ID
    return ctx.groups.shard_for(group_id)[1]


def _single(answers: list[messages.LeaveGroupResponse]) -> object:
    """The answer before version 3: the error of the only member is the error of the answer."""
    answer = answers[0]
    return messages.LeaveGroupResponse(error_code=answer.error_code or answer.members[0].error_code)
