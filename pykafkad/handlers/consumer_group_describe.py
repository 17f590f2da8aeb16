"""ConsumerGroupDescribe, versions 0 to 1 (KIP-848).

The state, epochs and assignor of consumer groups, and their members with what they have and shall have. A group of
another type is GROUP_ID_NOT_FOUND. Version 1 says which protocol a member speaks. A group whose members have topics
that the caller may not see is TOPIC_AUTHORIZATION_FAILED.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.group_types import CONSUMER
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.group_protocols import switched_off
from pykafkad.handlers.operations import authorized_operations
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

    Row = messages.ConsumerGroupDescribeResponse.DescribedGroup

_DESCRIBE_GROUP, _DESCRIBE_TOPIC = RULES["ConsumerGroupDescribe"]


def handle(ctx: Context, request: messages.ConsumerGroupDescribeRequest) -> Generator[None, None, object]:
    refusal = switched_off(ctx, request, CONSUMER)
    if refusal is not None:
        return refusal
    refused, described = [], []
    for group_id in request.group_ids:
        yield
        if not may(ctx, _DESCRIBE_GROUP, group_id):
            refused.append(_error(group_id, _DESCRIBE_GROUP.error))
        else:
            row = _describe(ctx, group_id)
            if request.include_authorized_operations and row.error_code == errors.NONE:
                row.authorized_operations = authorized_operations(ctx, "Group", group_id)
            described.append(row)
    return messages.ConsumerGroupDescribeResponse(groups=refused + [_checked(ctx, row) for row in described])


def _describe(ctx: Context, group_id: str) -> Row:
    if not group_id:
        return _error(group_id, errors.INVALID_GROUP_ID)
    shard, error_code = ctx.groups.shard_for(group_id)
    if error_code:
        return _error(group_id, error_code)
    group = shard.groups.get(group_id)
    if group is None:
        return _error(group_id, errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if group.type != CONSUMER:
        return _error(group_id, errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    ctx.groups.read(group_id, ctx.token)
    row: Row = group.described(ctx.metadata, ctx.settings.group_consumer_assignors[0])
    return row


def _checked(ctx: Context, row: Row) -> Row:
    """The row, or an error in its place if it names a topic that the caller may not see."""
    names = {
        topic.topic_name
        for member in row.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if all(may(ctx, _DESCRIBE_TOPIC, name) for name in sorted(names)):
        return row
    text = "The group has described topic(s) that the client is not authorized to describe."
    return _error(row.group_id, _DESCRIBE_TOPIC.error, text)


def _error(group_id: str, code: int, text: str | None = None) -> Row:
    return messages.ConsumerGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=code, error_message=text)
