"""ConsumerGroupHeartbeat, versions 0 to 1 (KIP-848).

A member of a consumer group joins (epoch 0), stays, or leaves (epoch -1, or -2 for a static member that comes back).
The answer has its epoch and, when it has changed, its assignment. Version 1 adds subscriptions by pattern, and the
member makes its own id (KIP-1082). While `group.version` is 0, or `group.coordinator.rebalance.protocols` leaves the
protocol out, every request is UNSUPPORTED_VERSION.

Gaps: patterns need google-re2; without it they are refused with a sentence that says so.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.events import ConsumerGroupHeartbeat
from pykafkad.coordinator.group_types import CONSUMER
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.group_protocols import switched_off
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

    Request = messages.ConsumerGroupHeartbeatRequest

_READ_GROUP, _DESCRIBE_TOPIC = RULES["ConsumerGroupHeartbeat"]
_JOIN, _LEAVE, _STATIC_LEAVE = 0, -1, -2


def handle(ctx: Context, request: Request) -> object:
    refusal = switched_off(ctx, request, CONSUMER)
    if refusal is not None:
        return refusal
    group_id = request.group_id
    if not may(ctx, _READ_GROUP, group_id):
        return messages.ConsumerGroupHeartbeatResponse(error_code=_READ_GROUP.error)
    if not all(may(ctx, _DESCRIBE_TOPIC, name) for name in request.subscribed_topic_names or ()):
        return messages.ConsumerGroupHeartbeatResponse(error_code=_DESCRIBE_TOPIC.error)
    problem = _problem(ctx, request)
    if problem is not None:
        return messages.ConsumerGroupHeartbeatResponse(error_code=errors.INVALID_REQUEST, error_message=problem)
    assignors = ctx.settings.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        return messages.ConsumerGroupHeartbeatResponse(
            error_code=errors.UNSUPPORTED_ASSIGNOR,
            error_message=(
                f"ServerAssignor {request.server_assignor} is not supported. "
                f"Supported assignors: {', '.join(assignors)}."
            ),
        )
    event = ConsumerGroupHeartbeat(ctx.token, request, ctx.client_id, ctx.client_host, ctx.may_describe)
    result, error_code = ctx.groups.submit_if_served(group_id, event)
    return messages.ConsumerGroupHeartbeatResponse(error_code=error_code) if error_code else result


def _problem(ctx: Context, request: Request) -> str | None:
    """What is wrong with the request whatever the group is, checked in Kafka's order."""
    epoch = request.member_epoch
    if (ctx.version >= 1 or epoch > 0 or epoch == _LEAVE) and not request.member_id.strip():
        return "MemberId can't be empty."
    for field, value in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and not value.strip():
            return f"{field} can't be empty."
    if epoch == _JOIN:
        if request.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == _STATIC_LEAVE:
        if request.instance_id is None:
            return "InstanceId can't be null."
    elif epoch < _STATIC_LEAVE:
        return "MemberEpoch is invalid."
    return None
