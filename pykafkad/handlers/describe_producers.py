"""DescribeProducers, version 0 (KIP-664).

The producers that a partition remembers: id, epoch, and the sequence and time of the last batch. A producer with an
open transaction also has its first offset and the epoch of the coordinator that wrote the last marker. An invalid name
is INVALID_TOPIC_EXCEPTION, an unknown topic or partition UNKNOWN_TOPIC_OR_PARTITION, a directory that failed
KAFKA_STORAGE_ERROR.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.topics import name_problem
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

(_READ_TOPIC,) = RULES["DescribeProducers"]
_Response = messages.DescribeProducersResponse


def handle(ctx: Context, request: messages.DescribeProducersRequest) -> Generator[None, None, object]:
    """One row per partition of the request."""
    topics = []
    for topic in request.topics:
        code, text = _topic_error(ctx, topic.name)
        rows = []
        for index in topic.partition_indexes:
            rows.append(_partition(ctx, topic.name, index, code, text))
            yield
        topics.append(_Response.TopicResponse(name=topic.name, partitions=rows))
    return _Response(topics=topics)


def _topic_error(ctx: Context, name: str) -> tuple[int, str | None]:
    problem = name_problem(name)
    if problem is not None:
        return errors.INVALID_TOPIC_EXCEPTION, problem
    if not may(ctx, _READ_TOPIC, name):
        return _READ_TOPIC.error, errors.message(_READ_TOPIC.error)
    if name not in ctx.metadata.topics:
        return errors.UNKNOWN_TOPIC_OR_PARTITION, errors.message(errors.UNKNOWN_TOPIC_OR_PARTITION)
    return errors.NONE, None


def _partition(
    ctx: Context, topic: str, index: int, code: int, text: str | None
) -> messages.DescribeProducersResponse.PartitionResponse:
    row = _Response.PartitionResponse(partition_index=index, error_code=code, error_message=text)
    if code != errors.NONE:
        return row
    log = ctx.partitions.get(topic, index)
    if log is None:
        row.error_code = ctx.error_of_absent(topic, index)
        return row
    try:
        producers = log.producers
    except errors.StorageFailure:
        row.error_code = errors.KAFKA_STORAGE_ERROR
        return row
    row.active_producers = [
        _Response.ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.batches[-1][0] if entry.batches else -1,
            last_timestamp=entry.last_timestamp_ms,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_offset,
        )
        for producer_id, entry in producers.items()
    ]
    return row
