"""DeleteShareGroupOffsets, version 0 (KIP-932).

Deletes the delivery state of topics in a share group without members (else NON_EMPTY_GROUP). The answer leaves when the
share coordinator has done so.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.share_group_events import DeleteOffsets
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.share_acknowledgements import SHARE_VERSION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_DELETE_GROUP, _READ_TOPIC = RULES["DeleteShareGroupOffsets"]
_Topic = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def handle(ctx: Context, request: messages.DeleteShareGroupOffsetsRequest) -> object:
    code = errors.NONE
    if not ctx.metadata.features.get(SHARE_VERSION, 0):
        code = errors.UNSUPPORTED_VERSION
    elif not (code := refusal(ctx, _DELETE_GROUP, request.group_id)) and not request.group_id:
        code = errors.INVALID_GROUP_ID
    code = code or ctx.groups.shard_for(request.group_id)[1]
    if code:
        return messages.DeleteShareGroupOffsetsResponse(error_code=code, error_message=errors.message(code))
    refused = [
        _Topic(
            topic_name=topic.topic_name,
            topic_id=bytes(16),
            error_code=_READ_TOPIC.error,
            error_message=errors.message(_READ_TOPIC.error),
        )
        for topic in request.topics
        if not may(ctx, _READ_TOPIC, topic.topic_name)
    ]
    request.topics = [topic for topic in request.topics if may(ctx, _READ_TOPIC, topic.topic_name)]
    entries = [(request.group_id, DeleteOffsets(None, request))]
    return ctx.groups.submit_many(entries, lambda answers: _merged(refused, answers[0]), ctx.token)


def _merged(refused: list[_Topic], answer: object) -> messages.DeleteShareGroupOffsetsResponse:
    """An error of the whole group stands alone."""
    assert isinstance(answer, messages.DeleteShareGroupOffsetsResponse)
    if not answer.error_code:
        answer.responses = refused + answer.responses
    return answer
