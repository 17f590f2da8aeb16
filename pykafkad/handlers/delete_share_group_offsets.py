"""DeleteShareGroupOffsets, version 0 (KIP-932).

Deletes the delivery state of topics in a share group without members (else NON_EMPTY_GROUP). The answer leaves when the
share coordinator has done so.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.share_group_events import DeleteOffsets
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.share_group_offsets import group_error, submit
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_DELETE_GROUP, _READ_TOPIC = RULES["DeleteShareGroupOffsets"]
_Topic = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def handle(ctx: Context, request: messages.DeleteShareGroupOffsetsRequest) -> object:
    if code := group_error(ctx, request.group_id, _DELETE_GROUP):
        return messages.DeleteShareGroupOffsetsResponse(error_code=code, error_message=errors.message(code))
    refused, allowed = [], []
    code = _READ_TOPIC.error
    for topic in request.topics:
        if may(ctx, _READ_TOPIC, topic.topic_name):
            allowed.append(topic)
            continue
        refused.append(
            _Topic(topic_name=topic.topic_name, topic_id=bytes(16), error_code=code, error_message=errors.message(code))
        )
    request.topics = allowed
    return submit(ctx, request.group_id, DeleteOffsets(None, request), refused)
