"""Produce, versions 3 to 13. (Versions 0 to 2 are advertised for the sake of old librdkafka, KAFKA-18659, and refused.)

Every partition has its own error: one bad batch never fails its neighbours. Version 8 adds record errors and messages,
9 is flexible, 10 has leader hints (KIP-951; a cluster of one never has one to give), 12 adds partitions to a transaction by
itself, 13 names topics by id (KIP-516). With acks=0 there is no answer, and an error closes the connection so that the
client looks up metadata again. An answer promises that the records are written: see `server/writes.py`.

Gaps: batches of a transaction are refused with INVALID_TXN_STATE, as transactions are not offered. Records inside a batch
are opened only when a rule needs it (compacted topic, LogAppendTime, another compression, timestamp limits), so elsewhere a
batch whose checksum is right but whose records lie is accepted.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.log.append_rules import NotOneBatch
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_Topic = messages.ProduceResponse.TopicProduceResponse
_Row = messages.ProduceResponse.PartitionProduceResponse

_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
_ADMIN_CLIENT_ID = "__admin_client"


def handle(ctx: Context, request: object) -> object | None:
    """Append every partition's batch; None for acks=0."""
    unwritten: list[tuple[object, object]] = []
    by_id = ctx.version >= 13
    responses = []
    failed = False
    for topic in request.topic_data:
        rows = []
        for data in topic.partition_data:
            row = _Row(index=data.index, error_code=errors.NONE, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1)
            rows.append(row)
            log = None
            try:
                log = _log(ctx, request, topic, data.index, by_id)
                if data.records is None:
                    # The schema allows it, and Kafka stumbles over it when it appends.
                    raise errors.KafkaError(errors.UNKNOWN_SERVER_ERROR, "null instead of records")
                result = log.append(data.records, ctx.now_ms, produce_version=ctx.version)
            except errors.KafkaError as error:
                failed = True
                _fail(row, error, log)
            except errors.StorageFailure as failure:
                failed = True
                if log is not None:
                    ctx.storage_failed(log, failure)
                _fail(row, errors.KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure)), log)
            else:
                row.base_offset, _, row.log_append_time_ms, row.log_start_offset = result
                unwritten.append((log, row))
        if rows:
            responses.append(_Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=rows))
    if request.acks == 0:
        for log, _ in unwritten:
            ctx.written_without_answer(log)
        if failed:
            ctx.connection.close("a produce request with acks=0 failed; closing tells the client to look up metadata")
        return None
    ctx.unwritten = unwritten
    return messages.ProduceResponse(responses=responses)


def _log(ctx: Context, request: object, topic: object, index: int, by_id: bool) -> object:
    """The log to append to; raises KafkaError with the code that Kafka gives for what stands in the way."""
    if request.acks not in (-1, 0, 1):
        raise errors.KafkaError(errors.INVALID_REQUIRED_ACKS)
    if by_id:
        known = ctx.metadata.topic_by_id(topic.topic_id)
        if known is None:
            raise errors.KafkaError(errors.UNKNOWN_TOPIC_ID)
        topic.name = known.name
    if topic.name in _INTERNAL_TOPICS and ctx.client_id != _ADMIN_CLIENT_ID:
        raise errors.KafkaError(errors.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
    if not ctx.allowed("Write", "Topic", topic.name):
        raise errors.KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)
    log = ctx.partitions.get(topic.name, index)
    if log is None:
        raise errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
    if log.offline is not None:
        ctx.storage_failed(log, log.offline)
        raise errors.KafkaError(errors.KAFKA_STORAGE_ERROR, f"Partition {topic.name}-{index} is offline: {log.offline}")
    return log


# Errors that Kafka expects of a broker's life; its answers to all others of an append carry the log's start.
_WITHOUT_LOG_START = frozenset((
    errors.CORRUPT_MESSAGE, errors.NOT_LEADER_OR_FOLLOWER, errors.MESSAGE_TOO_LARGE, errors.RECORD_LIST_TOO_LARGE,
    errors.KAFKA_STORAGE_ERROR, errors.UNSUPPORTED_COMPRESSION_TYPE,
))


def _fail(row: object, error: errors.KafkaError, log: object | None) -> None:
    row.error_code = error.code
    if log is not None and error.code not in _WITHOUT_LOG_START and not isinstance(error, NotOneBatch):
        row.log_start_offset = log.log_start_offset
    if error.record_errors or isinstance(error, NotOneBatch) and error.code == errors.CORRUPT_MESSAGE:
        # Kafka tells a message only where it also singles out records, and of what it cannot take apart at all.
        row.error_message = error.text
        row.record_errors = [
            messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in error.record_errors
        ]
