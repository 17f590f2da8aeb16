"""DeleteRecords, versions 0 to 2 (KIP-107).

Moves a partition's log start offset up to an offset; -1 means the high watermark. The answer is the new low watermark,
which with one replica is the log start offset. An offset that is negative or above the high watermark is
OFFSET_OUT_OF_RANGE, a topic that is only compacted POLICY_VIOLATION, an internal topic INVALID_TOPIC_EXCEPTION. The
next retention check deletes the files. Version 2 is flexible.

Gaps: none. The timeout never applies, because the answer waits for no other replica.
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

(_DELETE_TOPIC,) = RULES["DeleteRecords"]
_Topic = messages.DeleteRecordsResponse.DeleteRecordsTopicResult
_Row = messages.DeleteRecordsResponse.DeleteRecordsPartitionResult

_HIGH_WATERMARK = -1
_INVALID_LOW_WATERMARK = -1
_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def handle(ctx: Context, request: messages.DeleteRecordsRequest) -> Generator[None, None, object]:
    # A partition named twice is served once, with the last offset, as in Kafka.
    topics: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            offsets[asked.partition_index] = asked.offset
            yield
    answer = messages.DeleteRecordsResponse()
    for name, offsets in topics.items():
        rows = []
        for index, offset in offsets.items():
            rows.append(_row(ctx, name, index, offset))
            yield
        if rows:
            answer.topics.append(_Topic(name=name, partitions=rows))
    return answer


def _row(
    ctx: Context, topic: str, index: int, offset: int
) -> messages.DeleteRecordsResponse.DeleteRecordsPartitionResult:
    row = _Row(partition_index=index, low_watermark=_INVALID_LOW_WATERMARK)
    try:
        row.low_watermark = _delete(ctx, topic, index, offset)
    except errors.KafkaError as error:
        row.error_code = error.code
    except errors.StorageFailure:
        row.error_code = errors.KAFKA_STORAGE_ERROR
    return row


def _delete(ctx: Context, topic: str, index: int, offset: int) -> int:
    if not may(ctx, _DELETE_TOPIC, topic):
        raise errors.KafkaError(_DELETE_TOPIC.error)
    log = ctx.partitions.get(topic, index)
    absent = ctx.error_of_absent(topic, index) if log is None else errors.NONE
    if absent == errors.UNKNOWN_TOPIC_OR_PARTITION:
        raise errors.KafkaError(absent)
    if topic in _INTERNAL_TOPICS:
        raise errors.KafkaError(errors.INVALID_TOPIC_EXCEPTION)
    if log is None:
        raise errors.KafkaError(absent)
    if log.offline is not None:
        raise log.offline.copy()
    if log in ctx.partitions.not_led_here:
        raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
    policy = log.settings.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise errors.KafkaError(errors.POLICY_VIOLATION)
    return log.delete_records(log.high_watermark if offset == _HIGH_WATERMARK else offset)
