"""Heartbeat, versions 0 to 4.

Keeps a member's session alive. REBALANCE_IN_PROGRESS asks the member to join again. While the coordinator loads the
group, the answer is success, as in Kafka. Version 3 adds static members (KIP-345).

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.events import Heartbeat
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_READ_GROUP,) = RULES["Heartbeat"]


def handle(ctx: Context, request: messages.HeartbeatRequest) -> object:
    group_id = request.group_id
    if not may(ctx, _READ_GROUP, group_id):
        return messages.HeartbeatResponse(error_code=_READ_GROUP.error)
    if not group_id:
        return messages.HeartbeatResponse(error_code=errors.INVALID_GROUP_ID)
    error_code = ctx.groups.shard_for(group_id)[1]
    if error_code:
        loading = error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
        return messages.HeartbeatResponse(error_code=errors.NONE if loading else error_code)
    return ctx.groups.submit(group_id, Heartbeat(ctx.token, request))
