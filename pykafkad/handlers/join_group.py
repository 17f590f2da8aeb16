"""JoinGroup, versions 0 to 9.

The answer waits until every member has joined the rebalance. The leader gets the list of all members, the others an
empty one. Versions: 1 a rebalance timeout (before, the session timeout serves); 4 a new dynamic member is sent back
once with the id to use (MEMBER_ID_REQUIRED, KIP-394); 5 static members (KIP-345); 7 a protocol type in the answer, and
the protocol name may be null; 8 a reason, for logs; 9 a static leader that returns may skip the assignment (KIP-814).

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.events import JoinGroup
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


# A member id is the instance id or client id, a dash and a uuid of 36 characters. It must fit into a string of the
# response.
_LONGEST_PREFIX = 32_767 - 37


(_READ_GROUP,) = RULES["JoinGroup"]


def handle(ctx: Context, request: messages.JoinGroupRequest) -> object:
    error_code = _refusal(ctx, request)
    if error_code:
        # Only an authorization error leaves out the member's id.
        member_id = "" if error_code == _READ_GROUP.error else request.member_id
        return _for_version(
            ctx.version, messages.JoinGroupResponse(error_code=error_code, member_id=member_id, protocol_name=None)
        )
    if ctx.version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    event = JoinGroup(
        ctx.token,
        request,
        ctx.client_id,
        ctx.client_host,
        member_id_required=ctx.version >= 4,
        may_skip_assignment=ctx.version >= 9,
        may_describe=ctx.may_describe,
    )
    version = ctx.version
    if version >= 7:
        return ctx.groups.submit(request.group_id, event)
    return ctx.groups.submit_many(
        [(request.group_id, event)], lambda answers: _for_version(version, answers[0]), ctx.token
    )


def _refusal(ctx: Context, request: messages.JoinGroupRequest) -> int:
    if not may(ctx, _READ_GROUP, request.group_id):
        return _READ_GROUP.error
    if not request.group_id:
        return errors.INVALID_GROUP_ID
    settings = ctx.settings
    lowest, highest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not lowest <= request.session_timeout_ms <= highest:
        return errors.INVALID_SESSION_TIMEOUT
    if not request.member_id and len((request.group_instance_id or ctx.client_id).encode()) > _LONGEST_PREFIX:
        # Kafka makes a member id that its own encoder refuses.
        return errors.UNKNOWN_SERVER_ERROR
    return ctx.groups.shard_for(request.group_id)[1]


def _for_version(version: int, response: messages.JoinGroupResponse) -> messages.JoinGroupResponse:
    """The response as the version needs it: an absent protocol name is null from version 7 and empty before."""
    if version < 7 and response.protocol_name is None:
        response.protocol_name = ""
    return response
