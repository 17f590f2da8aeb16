"""ShareAcknowledge, versions 1 to 2 (KIP-932).

A member of a share group gives records back: accepted, released, rejected, or found to be gaps. The answer leaves when
that is stored. The request continues the member's share session, which ShareFetch begins; epoch -1 ends it and releases
what the member still has. Version 2 renews locks (KIP-1222) and tells how long they last.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.handlers.share_acknowledgements import Acknowledgements, add_leaders, request_error
from pykafkad.handlers.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_READ_GROUP, _READ_TOPIC = RULES["ShareAcknowledge"]
_Topic = messages.ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
_Row = messages.ShareAcknowledgeResponse.PartitionData


def handle(ctx: Context, request: messages.ShareAcknowledgeRequest) -> object:
    error = request_error(ctx, request, _READ_GROUP) or _session_error(ctx, request)
    if error:
        return messages.ShareAcknowledgeResponse(error_code=error)
    share = ctx.share_groups
    composite = share.states.composite_reply(lambda answers: answers[0], ctx.token)
    part = composite.part()
    composite.close()

    def answer() -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            share.release(request.group_id or "", request.member_id or "")
        part.deliver(_answer(ctx, request, acknowledgements))  # type: ignore[attr-defined]

    acknowledgements = Acknowledgements(answer)
    acknowledgements.submit(ctx, request, _READ_TOPIC)
    return DEFERRED


def _session_error(ctx: Context, request: messages.ShareAcknowledgeRequest) -> int:
    """The error of a request that does not continue the member's session; else the session has its next epoch."""
    if request.share_session_epoch == INITIAL_EPOCH:
        return errors.INVALID_SHARE_SESSION_EPOCH
    session = ctx.share_groups.sessions.get(request.group_id or "", request.member_id or "")
    if session is None:
        return errors.SHARE_SESSION_NOT_FOUND
    if request.share_session_epoch != FINAL_EPOCH:
        if session.epoch != request.share_session_epoch:
            return errors.INVALID_SHARE_SESSION_EPOCH
        session.next_epoch()
    return errors.NONE


def _answer(ctx: Context, request: messages.ShareAcknowledgeRequest, done: Acknowledgements) -> object:
    topics: dict[bytes, _Topic] = {}
    rows = []
    for (topic_id, index), (code, text) in done.outcomes.items():
        row = _Row(partition_index=index, error_code=code, error_message=text)
        topics.setdefault(topic_id, _Topic(topic_id=topic_id)).partitions.append(row)
        rows.append((topic_id, row))
    response = messages.ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=ctx.share_groups.limits(request.group_id or "").lock_duration_ms,
        responses=list(topics.values()),
    )
    add_leaders(ctx, response, rows, messages.ShareAcknowledgeResponse.LeaderIdAndEpoch)
    return response
