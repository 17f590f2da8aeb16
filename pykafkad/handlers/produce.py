"""Produce, versions 3 to 13. (Versions 0 to 2 are advertised for the sake of old librdkafka, KAFKA-18659, and refused.)

Every partition has its own error: one bad batch never fails its neighbours. Version 8 adds record errors and messages,
9 is flexible, 10 has leader hints (KIP-951), 12 adds partitions to a transaction by
itself, 13 names topics by id (KIP-516). With acks=0 there is no answer, and an error closes the connection so that the
client looks up metadata again. An answer promises that the records are written: see `server/commits.py`. Batches that
must be opened and hold more than `append_rules.LONG_RECORDS` records are opened on another thread.

acks=all asks for `min.insync.replicas` (or as many replicas as there are): NOT_ENOUGH_REPLICAS if the ISR is smaller
before the append, NOT_ENOUGH_REPLICAS_AFTER_APPEND if it has become so behind it. That takes a directory whose metadata
has replicas on other brokers.

NOT_LEADER_OR_FOLLOWER, with who leads, comes up only in a directory whose metadata knows more brokers than this one,
and when this one was told to forget itself.

Gaps: batches of a transaction are refused with INVALID_TXN_STATE, as transactions are not offered. Records inside a
batch are opened only when a rule needs it (compacted topic, LogAppendTime, another compression, timestamp limits), so
elsewhere a batch whose checksum is right but whose records lie is accepted."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.log.append_rules import NotOneBatch, OpenElsewhere, check
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.log.append_rules import Checked, Writable
    from pykafkad.log.log_config import LogConfig
    from pykafkad.log.partition_log import PartitionLog

_WRITE_TOPIC, _ = RULES["Produce"]
_Topic = messages.ProduceResponse.TopicProduceResponse
_Row = messages.ProduceResponse.PartitionProduceResponse

_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
_ADMIN_CLIENT_ID = "__admin_client"
_LEADERS_SINCE = 10


def handle(ctx: Context, request: messages.ProduceRequest) -> object | None:
    """Append every partition's batch; None for acks=0; DEFERRED while a batch is opened on another thread."""
    appending = _Appending(ctx, request)
    by_id = ctx.version >= 13
    responses = []
    for topic in request.topic_data:
        rows = []
        for data in topic.partition_data:
            row = _Row(
                index=data.index, error_code=errors.NONE, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1
            )
            rows.append(row)
            appending.try_data(row, topic, data, by_id)
        if rows:
            responses.append(_Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=rows))
    response = messages.ProduceResponse(responses=responses)
    if not appending.long:
        return appending.finish(response)
    return ctx.answer_later(appending.check_long, lambda results: appending.finish_long(results, response))


class _Appending:
    """One request's appends. `long` are those whose batch is to be opened on another thread: (row, log, a copy of the
    batch)."""

    __slots__ = ("_ctx", "_failed", "_request", "_unwritten", "long")

    def __init__(self, ctx: Context, request: messages.ProduceRequest) -> None:
        self._ctx = ctx
        self._request = request
        self._unwritten: list[tuple[PartitionLog, _Row]] = []
        self._failed = False
        self.long: list[tuple[_Row, PartitionLog, memoryview]] = []

    def try_data(
        self,
        row: _Row,
        topic: messages.ProduceRequest.TopicProduceData,
        data: messages.ProduceRequest.PartitionProduceData,
        by_id: bool,
    ) -> None:
        """Append one partition's batch, or put it among the long ones."""
        log = None
        records: Any = data.records
        try:
            log = _log(self._ctx, self._request, topic, data.index, by_id)
            if records is None:
                # The schema allows it, and Kafka stumbles over it when it appends.
                raise errors.KafkaError(errors.UNKNOWN_SERVER_ERROR, "null instead of records")
            self._append(row, log, records, None)
        except OpenElsewhere:
            assert log is not None
            copy = memoryview(bytearray(records))
            if self._request.acks == 0:
                # Nobody waits for an answer, so nothing could be held back for it.
                self._append_checked(row, log, _checked(log, log.settings, copy, self._ctx.now_ms, self._ctx.version))
            else:
                self.long.append((row, log, copy))
        except errors.KafkaError as error:
            self._refused(row, error, log)
        except errors.StorageFailure as failure:
            self._broken(row, log, failure)

    def check_long(self) -> list[Checked | errors.KafkaError]:
        """On another thread: what the rules say of each long batch, a `KafkaError` or what `append` takes as
        `checked`."""
        now_ms, version = self._ctx.now_ms, self._ctx.version
        return [_checked(log, log.settings, copy, now_ms, version) for _, log, copy in self.long]

    def finish_long(
        self, results: list[Checked | errors.KafkaError], response: messages.ProduceResponse
    ) -> object | None:
        """Append the long batches by the results of `check_long`; the answer, as of `finish`."""
        for (row, log, _), result in zip(self.long, results, strict=True):
            self._append_checked(row, log, result)
        return self.finish(response)

    def _append_checked(self, row: _Row, log: PartitionLog, checked: Checked | errors.KafkaError) -> None:
        if log.closed:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION if log.offline is None else errors.KAFKA_STORAGE_ERROR
            self._refused(row, errors.KafkaError(code), None)
            return
        try:
            if isinstance(checked, errors.KafkaError):
                raise checked
            if log.offline is not None:
                raise log.offline.copy()
            self._append(row, log, checked[0], checked)
            # Written even if nobody is there for the answer any more.
            self._ctx.written_without_answer(log)
        except errors.KafkaError as error:
            self._refused(row, error, log)
        except errors.StorageFailure as failure:
            self._broken(row, log, failure)

    def _append(self, row: _Row, log: PartitionLog, records: Writable, checked: Checked | None) -> None:
        if self._request.acks == -1 and not log.replica.has_min_isr:
            raise errors.KafkaError(errors.NOT_ENOUGH_REPLICAS)
        result = log.append(records, self._ctx.now_ms, produce_version=self._ctx.version, checked=checked)
        row.base_offset, _, row.log_append_time_ms, row.log_start_offset = result
        self._unwritten.append((log, row))

    def _refused(self, row: _Row, error: errors.KafkaError, log: PartitionLog | None) -> None:
        self._failed = True
        _fail(row, error, log)

    def _broken(self, row: _Row, log: PartitionLog | None, failure: errors.StorageFailure) -> None:
        self._failed = True
        if log is not None:
            self._ctx.storage_failed(log, failure)
        _fail(row, errors.KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure)), log)

    def finish(self, response: messages.ProduceResponse) -> object | None:
        """The answer, which promises that what was appended is written."""
        ctx = self._ctx
        if self._failed and ctx.version >= _LEADERS_SINCE:
            _add_leaders(ctx, response)
        if self._request.acks == 0:
            for log, _ in self._unwritten:
                ctx.written_without_answer(log)
            if self._failed:
                ctx.connection.close(
                    "a produce request with acks=0 failed; closing tells the client to look up metadata"
                )
            return None
        ctx.unwritten = self._unwritten
        ctx.acks_all = self._request.acks == -1
        return response


def _checked(
    log: PartitionLog, settings: LogConfig, records: memoryview, now_ms: int, version: int
) -> Checked | errors.KafkaError:
    """What the rules say of a batch: a `KafkaError`, or what `append` takes as `checked`."""
    try:
        return check(records, settings, now_ms, version, True, f"{log.topic}-{log.partition}")
    except errors.KafkaError as error:
        return error


def _log(
    ctx: Context,
    request: messages.ProduceRequest,
    topic: messages.ProduceRequest.TopicProduceData,
    index: int,
    by_id: bool,
) -> PartitionLog:
    """The log to append to; raises KafkaError with the code that Kafka gives for what stands in the way."""
    if by_id:
        known = ctx.metadata.topic_by_id(topic.topic_id)
        if known is None:
            raise errors.KafkaError(errors.UNKNOWN_TOPIC_ID)
        topic.name = known.name
    if not may(ctx, _WRITE_TOPIC, topic.name):
        raise errors.KafkaError(_WRITE_TOPIC.error)
    if request.acks not in (-1, 0, 1):
        raise errors.KafkaError(errors.INVALID_REQUIRED_ACKS)
    if topic.name in _INTERNAL_TOPICS and ctx.client_id != _ADMIN_CLIENT_ID:
        raise errors.KafkaError(errors.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
    log = ctx.partitions.get(topic.name, index)
    if log is None:
        raise errors.KafkaError(ctx.error_of_absent(topic.name, index))
    if log.offline is not None:
        ctx.storage_failed(log, log.offline)
        raise errors.KafkaError(errors.KAFKA_STORAGE_ERROR, f"Partition {topic.name}-{index} is offline: {log.offline}")
    if log in ctx.partitions.not_led_here:
        raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
    return log


# Errors that Kafka expects of a broker's life; its answers to all others of an append carry the log's start.
_WITHOUT_LOG_START = frozenset(
    (
        errors.CORRUPT_MESSAGE,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.MESSAGE_TOO_LARGE,
        errors.RECORD_LIST_TOO_LARGE,
        errors.KAFKA_STORAGE_ERROR,
        errors.UNSUPPORTED_COMPRESSION_TYPE,
    )
)


def _fail(row: _Row, error: errors.KafkaError, log: PartitionLog | None) -> None:
    row.error_code = error.code
    if log is not None and error.code not in _WITHOUT_LOG_START and not isinstance(error, NotOneBatch):
        row.log_start_offset = log.log_start_offset
    if error.record_errors or (isinstance(error, NotOneBatch) and error.code == errors.CORRUPT_MESSAGE):
        # Kafka tells a message only where it also singles out records, and of what it cannot take apart at all.
        row.error_message = error.text
        row.record_errors = [
            messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in error.record_errors
        ]


def _add_leaders(ctx: Context, response: messages.ProduceResponse) -> None:
    """Who leads what the producer took this broker for the leader of, and where to find them (KIP-951)."""
    found: dict[int, messages.ProduceResponse.NodeEndpoint] = {}
    for topic in response.responses:
        for row in topic.partition_responses:
            if row.error_code == errors.NOT_LEADER_OR_FOLLOWER:
                leader, epoch, broker = ctx.leader_hint(topic.name, row.index)
                row.current_leader = messages.ProduceResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                if broker is not None:
                    host, port = ctx.advertised(leader)
                    found[leader] = messages.ProduceResponse.NodeEndpoint(
                        node_id=leader, host=host, port=port, rack=broker.rack
                    )
    response.node_endpoints = list(found.values())
