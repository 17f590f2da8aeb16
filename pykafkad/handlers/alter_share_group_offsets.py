"""AlterShareGroupOffsets, version 0 (KIP-932).

Sets the start offsets of share partitions of a group without members (else NON_EMPTY_GROUP). A group that does not
exist is made. The answer leaves when the share coordinator has the offsets.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.share_group_events import AlterOffsets
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.share_acknowledgements import SHARE_VERSION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_READ_GROUP, _READ_TOPIC = RULES["AlterShareGroupOffsets"]
_Topic = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_Row = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


def handle(ctx: Context, request: messages.AlterShareGroupOffsetsRequest) -> object:
    code = errors.NONE
    if not ctx.metadata.features.get(SHARE_VERSION, 0):
        code = errors.UNSUPPORTED_VERSION
    elif not (code := refusal(ctx, _READ_GROUP, request.group_id)) and not request.group_id:
        code = errors.INVALID_GROUP_ID
    code = code or ctx.groups.shard_for(request.group_id)[1]
    if code:
        return messages.AlterShareGroupOffsetsResponse(error_code=code, error_message=errors.message(code))
    refused, checked = [], []
    for topic in request.topics:
        known = ctx.metadata.topics.get(topic.topic_name)
        if not may(ctx, _READ_TOPIC, topic.topic_name):
            code = _READ_TOPIC.error
        elif known is None:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
        else:
            checked.append(topic)
            continue
        rows = [
            _Row(partition_index=each.partition_index, error_code=code, error_message=errors.message(code))
            for each in topic.partitions
        ]
        topic_id = bytes(16) if known is None else known.id
        refused.append(_Topic(topic_name=topic.topic_name, topic_id=topic_id, partitions=rows))
    request.topics = checked
    entries = [(request.group_id, AlterOffsets(None, request))]
    return ctx.groups.submit_many(entries, lambda answers: _merged(refused, answers[0]), ctx.token)


def _merged(refused: list[_Topic], answer: object) -> messages.AlterShareGroupOffsetsResponse:
    """An error of the whole group stands alone."""
    assert isinstance(answer, messages.AlterShareGroupOffsetsResponse)
    if not answer.error_code:
        answer.responses = refused + answer.responses
    return answer
