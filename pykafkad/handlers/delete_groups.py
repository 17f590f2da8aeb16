"""DeleteGroups, versions 0 to 2 (KIP-229), with Kafka 4.4 to 3.

Deletes empty groups with their offsets. Each group has its own error: NON_EMPTY_GROUP while it has members,
GROUP_ID_NOT_FOUND if it does not exist. Version 3 has room for a text with each error, which Kafka leaves empty too.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.coordinator.events import DeleteGroup
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


(_DELETE_GROUP,) = RULES["DeleteGroups"]


def handle(ctx: Context, request: messages.DeleteGroupsRequest) -> Generator[None, None, object]:
    """Deletes group by group. If the records of one cannot be written, the connection is closed without an answer."""
    without_shard: list[messages.DeleteGroupsResponse.DeletableGroupResult] = []
    refused: list[messages.DeleteGroupsResponse.DeletableGroupResult] = []
    composite = ctx.groups.composite_reply(
        lambda deleted: messages.DeleteGroupsResponse(results=without_shard + deleted + refused), ctx.token
    )
    for group_id in dict.fromkeys(request.groups_names):
        if not may(ctx, _DELETE_GROUP, group_id):
            refused.append(
                messages.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=_DELETE_GROUP.error)
            )
            continue
        error_code = ctx.groups.shard_for(group_id)[1]
        if error_code:
            without_shard.append(
                messages.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error_code)
            )
        else:
            ctx.groups.submit(group_id, DeleteGroup(composite.part(), group_id))
        yield
    composite.close()
    return DEFERRED
