"""OffsetForLeaderEpoch, versions 2 to 4, with Kafka 3.x from 0 (KIP-101, KIP-320).

The end offset of the largest leader epoch at or below the requested one. With it a consumer or follower finds where its
log diverges from the leader's. For an epoch above the latest, and for -1, epoch and offset are -1 without an error.
Version 3 adds the replica that asks, 4 is flexible.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.list_offsets import leader_error
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

(_DESCRIBE_TOPIC,) = RULES["OffsetForLeaderEpoch"]
_Topic = messages.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
_Row = messages.OffsetForLeaderEpochResponse.EpochEndOffset


def handle(ctx: Context, request: messages.OffsetForLeaderEpochRequest) -> Generator[None, None, object]:
    topics = []
    for topic in request.topics:
        allowed = may(ctx, _DESCRIBE_TOPIC, topic.topic)
        rows = []
        for asked in topic.partitions:
            rows.append(_row(ctx, topic.topic, asked, allowed))
            yield
        topics.append(_Topic(topic=topic.topic, partitions=rows))
    return messages.OffsetForLeaderEpochResponse(topics=topics)


def _row(
    ctx: Context, topic: str, asked: messages.OffsetForLeaderEpochRequest.OffsetForLeaderPartition, allowed: bool
) -> messages.OffsetForLeaderEpochResponse.EpochEndOffset:
    row = _Row(partition=asked.partition)
    log = ctx.partitions.get(topic, asked.partition)
    if not allowed:
        row.error_code = _DESCRIBE_TOPIC.error
    elif log is None:
        row.error_code = ctx.error_of_absent(topic, asked.partition)
    else:
        row.error_code = leader_error(ctx, log, asked.current_leader_epoch)
        if not row.error_code:
            try:
                row.leader_epoch, row.end_offset = log.end_offset_for_epoch(asked.leader_epoch)
            except errors.StorageFailure:
                row.error_code = errors.KAFKA_STORAGE_ERROR
    return row
