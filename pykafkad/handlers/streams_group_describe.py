"""StreamsGroupDescribe, version 0 (KIP-1071), with Kafka 4.4 to 1.

State, epochs and topology of streams groups, and their members with the tasks that they have and shall have. A group of
another type is GROUP_ID_NOT_FOUND. A group whose topology has topics that the caller may not see is
TOPIC_AUTHORIZATION_FAILED. Version 1 has the name of the assignor (KIP-1357) and the description of the topology
(KIP-1331), of which this broker, like a Kafka without a plug-in, says that it is not stored.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.group_types import STREAMS
from pykafkad.coordinator.streams_describe import describe
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.group_protocols import switched_off
from pykafkad.handlers.operations import authorized_operations
from pykafkad.handlers.streams_group_heartbeat import topic_names
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

    Row = messages.StreamsGroupDescribeResponse.DescribedGroup

_DESCRIBE_GROUP, _DESCRIBE_TOPIC = RULES["StreamsGroupDescribe"]
_ASSIGNOR = "sticky"
_NOT_STORED = 1
_NOT_ALLOWED = "The described group uses topics that the client is not authorized to describe."


def handle(ctx: Context, request: messages.StreamsGroupDescribeRequest) -> Generator[None, None, object]:
    refusal = switched_off(ctx, request, STREAMS)
    if refusal is not None:
        return refusal
    refused, described = [], []
    for group_id in request.group_ids:
        yield
        if not may(ctx, _DESCRIBE_GROUP, group_id):
            refused.append(_error(group_id, _DESCRIBE_GROUP.error))
            continue
        row = _describe(ctx, group_id)
        if row.error_code == errors.NONE:
            row.assignor_name = _ASSIGNOR
            if request.include_topology_description:
                row.topology_description_status = _NOT_STORED
        if request.include_authorized_operations and row.error_code == errors.NONE:
            row.authorized_operations = authorized_operations(ctx, "Group", group_id)
        described.append((yield from _checked(ctx, row)))
    return messages.StreamsGroupDescribeResponse(groups=refused + described)


def _describe(ctx: Context, group_id: str) -> Row:
    if not group_id:
        return _error(group_id, errors.INVALID_GROUP_ID)
    shard, error_code = ctx.groups.shard_for(group_id)
    if error_code:
        return _error(group_id, error_code)
    ctx.groups.read(group_id, ctx.token)
    return describe(shard, group_id)


def _checked(ctx: Context, row: Row) -> Generator[None, None, Row]:
    """The row, or an error in its place if its topology names a topic that the caller may not see."""
    if row.topology is not None:
        names = yield from topic_names(row.topology.subtopologies or [])
        for name in names:
            yield
            if not may(ctx, _DESCRIBE_TOPIC, name):
                return _error(row.group_id, _DESCRIBE_TOPIC.error, _NOT_ALLOWED)
    return row


def _error(group_id: str, code: int, text: str | None = None) -> Row:
    return messages.StreamsGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=code, error_message=text)
