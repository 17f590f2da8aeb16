"""ShareGroupDescribe, version 1 (KIP-932).

Epochs, members and assignments of share groups. GROUP_ID_NOT_FOUND names what is no share group.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.group_types import SHARE
from pykafkad.handlers import unexpected
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.operations import authorized_operations
from pykafkad.metadata.features import SHARE_VERSION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.handlers.context import Context

_DESCRIBE_GROUP, _DESCRIBE_TOPIC = RULES["ShareGroupDescribe"]
_Group = messages.ShareGroupDescribeResponse.DescribedGroup
_Member = messages.ShareGroupDescribeResponse.Member
_NOT_ALLOWED = "The group has described topic(s) that the client is not authorized to describe."


def handle(ctx: Context, request: messages.ShareGroupDescribeRequest) -> Generator[None, None, object]:
    if not ctx.metadata.features.get(SHARE_VERSION, 0):
        return unexpected.answer(ctx.row, ctx.version, request, errors.UNSUPPORTED_VERSION)
    refused, described = [], []
    for group_id in request.group_ids:
        yield
        if not may(ctx, _DESCRIBE_GROUP, group_id):
            refused.append(_Group(group_id=group_id, error_code=_DESCRIBE_GROUP.error))
            continue
        row = _describe(ctx, group_id)
        if not row.error_code:
            ctx.groups.read(group_id, ctx.token)
            if request.include_authorized_operations:
                row.authorized_operations = authorized_operations(ctx, "Group", group_id)
            topics = {each.topic_name for member in row.members for each in member.assignment.topic_partitions}
            if not all(may(ctx, _DESCRIBE_TOPIC, name) for name in topics):
                row = _Group(group_id=group_id, error_code=_DESCRIBE_TOPIC.error, error_message=_NOT_ALLOWED)
        described.append(row)
    return messages.ShareGroupDescribeResponse(groups=refused + described)


def _describe(ctx: Context, group_id: str) -> _Group:
    if not group_id:
        return _Group(group_id=group_id, error_code=errors.INVALID_GROUP_ID)
    shard, error = ctx.groups.shard_for(group_id)
    if error:
        return _Group(group_id=group_id, error_code=error)
    group = shard.groups.get(group_id)
    if group is None or group.type != SHARE:
        why = "not found." if group is None else "is not a share group."
        code = errors.GROUP_ID_NOT_FOUND
        return _Group(group_id=group_id, error_code=code, error_message=f"Group {group_id} {why}")
    return _Group(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name="simple",
        members=[_member(ctx, member) for member in group.members.values()],
    )


def _member(ctx: Context, member: Any) -> _Member:
    assigned = [
        (topic, partitions)
        for topic_id, partitions in member.assigned.items()
        if (topic := ctx.metadata.topic_by_id(topic_id)) is not None
    ]
    return _Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=messages.ShareGroupDescribeResponse.Assignment(
            topic_partitions=[
                messages.ShareGroupDescribeResponse.TopicPartitions(
                    topic_id=topic.id, topic_name=topic.name, partitions=sorted(partitions)
                )
                for topic, partitions in assigned
            ]
        ),
    )
