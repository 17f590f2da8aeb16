"""DeleteGroups, versions 0 to 2 (KIP-229).

Deletes empty groups with their offsets, each with its own error: NON_EMPTY_GROUP while it has members, GROUP_ID_NOT_FOUND
when there is none.

Gaps: none. (Groups of other protocols than the classic one do not exist yet.)
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.events import DeleteGroup
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    rows, wanted, refused = [], [], []
    for group_id in dict.fromkeys(request.groups_names):
        if not ctx.allowed("Delete", "Group", group_id):
            refused.append(messages.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=errors.GROUP_AUTHORIZATION_FAILED))
            continue
        error_code = ctx.groups.shard_for(group_id)[1]
        if error_code:
            rows.append(messages.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error_code))
        else:
            wanted.append((group_id, DeleteGroup(ctx.token, group_id)))
    if not wanted:
        return messages.DeleteGroupsResponse(results=rows + refused)
    return ctx.groups.submit_many(
        wanted, lambda answers: messages.DeleteGroupsResponse(results=rows + answers + refused), ctx.token
    )
