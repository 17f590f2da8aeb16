"""ListGroups, versions 0 to 5.

Every group of this broker's coordinator that the caller may describe. Version 4 adds a filter by state, and the state
in the answer (KIP-518); version 5 a filter by type (KIP-848). Filters ignore case. An unknown type matches nothing.

Gaps: none. (The types are those of `coordinator/group_types.py`.)
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


(_DESCRIBE_GROUP,) = RULES["ListGroups"]


def handle(ctx: Context, request: messages.ListGroupsRequest) -> Generator[None, None, object]:
    release = ctx.settings.release
    is_old = release is not None and release.has_old_coordinator
    states = {(state if is_old else state.strip()).lower() for state in request.states_filter}
    types = {each.lower() for each in request.types_filter}
    answer = messages.ListGroupsResponse()
    if ctx.groups.is_loading:
        answer.error_code = errors.COORDINATOR_LOAD_IN_PROGRESS
        return answer
    for shard in ctx.groups.shards():
        for row in shard.listed():
            yield
            if (
                (not states or row.group_state.lower() in states)
                and (not types or row.group_type in types)
                and may(ctx, _DESCRIBE_GROUP, row.group_id)
            ):
                answer.groups.append(row)
    return answer
