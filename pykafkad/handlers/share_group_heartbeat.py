"""ShareGroupHeartbeat, version 1 (KIP-932).

A member of a share group joins (epoch 0), shows that it is alive, or leaves (epoch -1). The answer has its epoch, and
its assignment when that has changed. Partitions are assigned once the share coordinator has begun their delivery state.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.share_group_events import ShareGroupHeartbeat
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.share_acknowledgements import MAX_MEMBER_ID_LENGTH
from pykafkad.metadata.features import SHARE_VERSION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_READ_GROUP, _DESCRIBE_TOPIC = RULES["ShareGroupHeartbeat"]
_LEAVE_EPOCH = -1


def handle(ctx: Context, request: messages.ShareGroupHeartbeatRequest) -> object:
    code, text = _refusal(ctx, request)
    if not code:
        code = ctx.groups.shard_for(request.group_id)[1]
    if code:
        return messages.ShareGroupHeartbeatResponse(error_code=code, error_message=text)
    event = ShareGroupHeartbeat(ctx.token, request, ctx.client_id, ctx.client_host)
    return ctx.groups.submit(request.group_id, event)


def _refusal(ctx: Context, request: messages.ShareGroupHeartbeatRequest) -> tuple[int, str | None]:
    if not ctx.metadata.features.get(SHARE_VERSION, 0):
        return errors.UNSUPPORTED_VERSION, None
    if error := refusal(ctx, _READ_GROUP, request.group_id):
        return error, errors.message(error)
    if not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        return errors.INVALID_REQUEST, None
    names = request.subscribed_topic_names
    if not all(may(ctx, _DESCRIBE_TOPIC, name) for name in dict.fromkeys(names or ())):
        return _DESCRIBE_TOPIC.error, None
    if not request.member_id.strip():
        return errors.INVALID_REQUEST, "MemberId can't be empty."
    if not request.group_id.strip():
        return errors.INVALID_REQUEST, "GroupId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return errors.INVALID_REQUEST, "RackId can't be empty."
    if request.member_epoch == 0 and not names:
        return errors.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."
    if request.member_epoch < _LEAVE_EPOCH:
        return errors.INVALID_REQUEST, "MemberEpoch is invalid."
    return errors.NONE, None
