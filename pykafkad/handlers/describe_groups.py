"""DescribeGroups, versions 0 to 6.

The state, protocol and members of groups, with the members' metadata (while the group is stable) and assignments. A
group that does not exist, or is not a classic group, is Dead without an error before version 6, and GROUP_ID_NOT_FOUND
from version 6 (KIP-1043).
Version 3 adds the caller's operations on request, version 4 instance ids.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.group_states import DEAD, STABLE
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.operations import authorized_operations
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


(_DESCRIBE_GROUP,) = RULES["DescribeGroups"]


def handle(ctx: Context, request: messages.DescribeGroupsRequest) -> Generator[None, None, object]:
    refused, described = [], []
    for group_id in request.groups:
        yield
        if not may(ctx, _DESCRIBE_GROUP, group_id):
            refused.append(
                messages.DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=_DESCRIBE_GROUP.error)
            )
        else:
            described.append(_describe(ctx, group_id))
    if request.include_authorized_operations:
        for row in described:
            if row.error_code == errors.NONE:
                row.authorized_operations = authorized_operations(ctx, "Group", row.group_id)
                yield
    if ctx.settings.release is not None and ctx.settings.release.has_old_coordinator:
        for row in described:
            if row.group_state != STABLE:
                for member in row.members:
                    member.member_assignment = b""
    return messages.DescribeGroupsResponse(groups=refused + described)


def _describe(ctx: Context, group_id: str) -> messages.DescribeGroupsResponse.DescribedGroup:
    shard, error_code = ctx.groups.shard_for(group_id)
    if error_code:
        return messages.DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error_code)
    described: messages.DescribeGroupsResponse.DescribedGroup | None = shard.describe(group_id)
    if described is not None:
        return described
    if ctx.version < 6:
        return messages.DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=DEAD)
    return messages.DescribeGroupsResponse.DescribedGroup(
        group_id=group_id,
        group_state=DEAD,
        error_code=errors.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {'is not a classic group' if shard.has_group(group_id) else 'not found'}.",
    )
