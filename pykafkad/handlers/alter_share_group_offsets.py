"""AlterShareGroupOffsets, version 0 (KIP-932).

Sets the start offsets of share partitions of a group without members (else NON_EMPTY_GROUP). A group that does not
exist is made. The answer leaves when the share coordinator has the offsets.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.share_group_events import AlterOffsets
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.share_group_offsets import group_error, submit
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_READ_GROUP, _READ_TOPIC = RULES["AlterShareGroupOffsets"]
_Topic = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_Row = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


def handle(ctx: Context, request: messages.AlterShareGroupOffsetsRequest) -> object:
    if code := group_error(ctx, request.group_id, _READ_GROUP):
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
    return submit(ctx, request.group_id, AlterOffsets(None, request), refused)
