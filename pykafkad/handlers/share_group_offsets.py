"""What AlterShareGroupOffsets and DeleteShareGroupOffsets have in common (KIP-932): the checks of the group, and the
answer, which has the topics that were refused here before those of the coordinator."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import refusal
from pykafkad.metadata.features import SHARE_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.handlers.authorization import Rule
    from pykafkad.handlers.context import Context


def group_error(ctx: Context, group_id: str, rule: Rule) -> int:
    """The error of a request for a group as a whole, or NONE. `rule` says which permission it needs."""
    if not ctx.metadata.features.get(SHARE_VERSION, 0):
        return errors.UNSUPPORTED_VERSION
    if error := refusal(ctx, rule, group_id):
        return error
    return ctx.groups.shard_for(group_id)[1] if group_id else errors.INVALID_GROUP_ID


def submit(ctx: Context, group_id: str, event: Any, refused: list[Any]) -> object:
    """Hand the request to the group's shard. An error of the whole group stands alone in the answer."""

    def merged(answers: list[Any]) -> object:
        answer = answers[0]
        if not answer.error_code:
            answer.responses = refused + answer.responses
        return answer

    return ctx.groups.submit_many([(group_id, event)], merged, ctx.token)
