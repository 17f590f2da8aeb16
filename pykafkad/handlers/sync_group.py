"""SyncGroup, versions 0 to 5.

The answer waits until the leader has sent the assignment; then each member gets its part. Version 3 adds static members
(KIP-345). From version 5 protocol type and name are required and must be the group's (KIP-559).

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.events import SyncGroup
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_READ_GROUP,) = RULES["SyncGroup"]


def handle(ctx: Context, request: messages.SyncGroupRequest) -> object:
    error_code = _refusal(ctx, request)
    if error_code:
        return messages.SyncGroupResponse(error_code=error_code)
    return ctx.groups.submit(request.group_id, SyncGroup(ctx.token, request))


def _refusal(ctx: Context, request: messages.SyncGroupRequest) -> int:
    if ctx.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return errors.INCONSISTENT_GROUP_PROTOCOL
    if not may(ctx, _READ_GROUP, request.group_id):
        return _READ_GROUP.error
    if not request.group_id:
        return errors.INVALID_GROUP_ID
    return ctx.groups.shard_for(request.group_id)[1]
