"""OffsetDelete, version 0 (KIP-496).

Deletes committed offsets of an empty group. A `consumer` group may have members, but none that subscribes to the topic
(else GROUP_SUBSCRIBED_TO_TOPIC). Deleting an offset that was never committed is a success.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.events import OffsetDelete
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


_DELETE_GROUP, _READ_TOPIC = RULES["OffsetDelete"]
_Topic = messages.OffsetDeleteRequest.OffsetDeleteRequestTopic
_Row = messages.OffsetDeleteResponse.OffsetDeleteResponseTopic


def handle(ctx: Context, request: messages.OffsetDeleteRequest) -> Generator[None, None, object]:
    group_id = request.group_id
    if not may(ctx, _DELETE_GROUP, group_id):
        return messages.OffsetDeleteResponse(error_code=_DELETE_GROUP.error)
    refused: dict[str, _Row] = {}
    checked = []
    for topic in request.topics:
        if (yield from _checked(ctx, topic, refused)):
            checked.append(topic)
    request.topics = checked
    if not group_id:
        return messages.OffsetDeleteResponse(error_code=errors.INVALID_GROUP_ID)
    error_code = ctx.groups.shard_for(group_id)[1]
    if error_code:
        return messages.OffsetDeleteResponse(error_code=error_code)
    event = OffsetDelete(ctx.token, request)
    if not refused:
        return ctx.groups.submit(group_id, event)
    return ctx.groups.submit_many([(group_id, event)], lambda answers: _merged(refused, answers[0]), ctx.token)


def _checked(ctx: Context, topic: _Topic, refused: dict[str, _Row]) -> Generator[None, None, bool]:
    """Whether any partition of the topic is left for the coordinator; rows for the others are added to `refused`."""
    image = ctx.metadata
    known: list[messages.OffsetDeleteRequest.OffsetDeleteRequestPartition] = []
    wrong = topic.partitions
    error_code = _READ_TOPIC.error
    if may(ctx, _READ_TOPIC, topic.name):
        wrong, error_code = [], errors.UNKNOWN_TOPIC_OR_PARTITION
        for each in topic.partitions:
            (wrong if image.partition(topic.name, each.partition_index) is None else known).append(each)
            yield
    if wrong:
        row = refused.setdefault(topic.name, messages.OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name))
        row.partitions.extend(
            messages.OffsetDeleteResponse.OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=error_code
            )
            for each in wrong
        )
        topic.partitions = known
    return bool(topic.partitions)


def _merged(refused: dict[str, _Row], answer: messages.OffsetDeleteResponse) -> messages.OffsetDeleteResponse:
    """An error of the whole group stands alone. Else each topic has one row, with the refused partitions first."""
    if answer.error_code:
        return answer
    topics = list(refused.values())
    for row in answer.topics:
        same = refused.get(row.name)
        if same is None:
            topics.append(row)
        else:
            same.partitions.extend(row.partitions)
    return messages.OffsetDeleteResponse(topics=topics)
