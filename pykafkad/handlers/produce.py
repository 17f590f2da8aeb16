"""Produce, versions 3 to 13, with Kafka 3.x from 0. (Since 4.0 versions 0 to 2 are advertised for the sake of old
librdkafka, KAFKA-18659, and refused.)

Every partition has its own error; a bad batch never fails other partitions. Version 8 adds record errors and messages,
9 is flexible, 10 adds leader hints (KIP-951), 12 adds partitions to a transaction implicitly, 13 names topics by id
(KIP-516). Versions below 3 bring messages of an older format (`log/message_conversion.py`), or none.

With acks=0 there is no answer, and an error closes the connection so that the client asks for metadata again. An answer
promises that the records are written: see `server/commits.py`. Batches that must be decompressed and hold more than
`append_rules.LONG_RECORDS` records are checked on another thread.

acks=all needs `min.insync.replicas` (or all replicas, if there are fewer). If the ISR is smaller before the append, the
answer is NOT_ENOUGH_REPLICAS; if it has shrunk after the append, NOT_ENOUGH_REPLICAS_AFTER_APPEND (Kafka lets these
requests wait for their timeout). If the replicas in sync do not have the records within the request's timeout, the
answer is REQUEST_TIMED_OUT, up to a second late. A partition that another broker leads is NOT_LEADER_OR_FOLLOWER, with
that leader.

Requests with a transactional id are in `produce_transactional.py`. A request without one that has a batch of a
transaction is refused as a whole, with TRANSACTIONAL_ID_AUTHORIZATION_FAILED. Kafka then appends nothing; here its
other batches are appended.

Gaps: records inside a batch are checked only when a rule needs it (compacted topic, LogAppendTime, another compression,
timestamp limits). Elsewhere a batch with a valid checksum and invalid records is accepted.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.log.append_rules import BATCHES_SINCE, NotOneBatch, OpenElsewhere, check
from pykafkad.log.partition_log import CLIENT
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.log.append_rules import Checked, Writable
    from pykafkad.log.log_config import LogConfig
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.producers import Verification

_WRITE_TOPIC, _ = RULES["Produce"]
_Topic = messages.ProduceResponse.TopicProduceResponse
_Row = messages.ProduceResponse.PartitionProduceResponse

_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
_ADMIN_CLIENT_ID = "__admin_client"
_LEADERS_SINCE = 10


def handle(ctx: Context, request: messages.ProduceRequest, appending: Appending | None = None) -> object | None:
    """Append every partition's batch. Returns None for acks=0, and DEFERRED while another thread checks a batch.

    A request with a transactional id comes twice: first without `appending`, which `produce_transactional.py` makes."""
    if appending is None:
        if request.transactional_id is not None:
            from pykafkad.handlers import produce_transactional

            return produce_transactional.handle(ctx, request)
        appending = Appending(ctx, request)
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


class ErrorWithText(errors.KafkaError):
    """An error of a row that has its text."""


class Appending:
    """The appends of one request. `long` has the batches for another thread: (row, log, a copy of the batch)."""

    __slots__ = ("_ctx", "_failed", "_request", "_unwritten", "long")

    origin: str | Verification = CLIENT
    """The origin of the batch that is being appended; only requests with a transactional id have another one."""

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
        """Append one partition's batch, or add it to the long ones."""
        log = None
        records: Any = data.records
        try:
            log = log_of(self._ctx, self._request, topic, data.index, by_id)
            if records is None:
                # The schema allows null records; in Kafka the append fails unexpectedly.
                raise errors.KafkaError(errors.UNKNOWN_SERVER_ERROR, "null instead of records")
            if self._ctx.version < BATCHES_SINCE:
                from pykafkad.log.message_conversion import has_messages

                if not has_messages(records):
                    return
            self._append(row, log, records, None)
        except OpenElsewhere:
            assert log is not None
            copy = memoryview(bytearray(records))
            if self._request.acks == 0:
                # Without an answer nothing delays later requests of the connection, so the check runs here.
                self._append_checked(row, log, _checked(log, log.settings, copy, self._ctx.now_ms, self._ctx.version))
            else:
                self.long.append((row, log, copy))
        except errors.KafkaError as error:
            self.refused(row, error, log)
        except errors.StorageFailure as failure:
            self._broken(row, log, failure)

    def check_long(self) -> list[Checked | errors.KafkaError]:
        """The check of each long batch: a `KafkaError`, or the argument `checked` of `append`. Runs on another
        thread."""
        now_ms, version = self._ctx.now_ms, self._ctx.version
        return [_checked(log, log.settings, copy, now_ms, version) for _, log, copy in self.long]

    def finish_long(
        self, results: list[Checked | errors.KafkaError], response: messages.ProduceResponse
    ) -> object | None:
        """Append the long batches with the results of `check_long`. Returns as `finish`."""
        for (row, log, _), result in zip(self.long, results, strict=True):
            self._append_checked(row, log, result)
        return self.finish(response)

    def _append_checked(self, row: _Row, log: PartitionLog, checked: Checked | errors.KafkaError) -> None:
        if log.closed:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION if log.offline is None else errors.KAFKA_STORAGE_ERROR
            self.refused(row, errors.KafkaError(code), None)
            return
        try:
            if isinstance(checked, errors.KafkaError):
                raise checked
            if log.offline is not None:
                raise log.offline.copy()
            self._append(row, log, checked[0], checked)
            # The records are written even if the connection has ended meanwhile.
            self._ctx.written_without_answer(log)
        except errors.KafkaError as error:
            self.refused(row, error, log)
        except errors.StorageFailure as failure:
            self._broken(row, log, failure)

    def _append(self, row: _Row, log: PartitionLog, records: Writable, checked: Checked | None) -> None:
        if self._request.acks == -1 and not log.replica.has_min_isr:
            raise errors.KafkaError(errors.NOT_ENOUGH_REPLICAS)
        result = log.append(records, self._ctx.now_ms, self._ctx.version, self.origin, checked)
        row.base_offset, _, row.log_append_time_ms, row.log_start_offset = result
        self._unwritten.append((log, row))

    def refused(self, row: _Row, error: errors.KafkaError, log: PartitionLog | None) -> None:
        self._failed = True
        _fail(row, error, log)

    def _broken(self, row: _Row, log: PartitionLog | None, failure: errors.StorageFailure) -> None:
        self._failed = True
        if log is not None:
            self._ctx.storage_failed(log, failure)
        _fail(row, errors.KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure)), log)

    def finish(self, response: messages.ProduceResponse) -> object | None:
        """The answer, which promises that the appended records are written."""
        ctx = self._ctx
        if self._failed:
            self._refuse_all_if_one_names_no_transaction(response)
            if ctx.version >= _LEADERS_SINCE:
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
        ctx.commit_timeout_ms = self._request.timeout_ms
        return response

    def _refuse_all_if_one_names_no_transaction(self, response: messages.ProduceResponse) -> None:
        rows = [row for topic in response.responses for row in topic.partition_responses]
        if any(row.error_code == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED for row in rows):
            for row in rows:
                row.error_code = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                row.base_offset = row.log_append_time_ms = row.log_start_offset = -1
            for log, _ in self._unwritten:
                self._ctx.written_without_answer(log)
            self._unwritten.clear()


def _checked(
    log: PartitionLog, settings: LogConfig, records: memoryview, now_ms: int, version: int
) -> Checked | errors.KafkaError:
    """The check of a batch: a `KafkaError`, or the argument `checked` of `append`."""
    try:
        return check(records, settings, now_ms, version, True, f"{log.topic}-{log.partition}")
    except errors.KafkaError as error:
        return error


def log_of(
    ctx: Context,
    request: messages.ProduceRequest,
    topic: messages.ProduceRequest.TopicProduceData,
    index: int,
    by_id: bool,
) -> PartitionLog:
    """The log to append to. Raises KafkaError with Kafka's code if there is none or it takes no appends."""
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


# Errors of the broker's state. For all other errors of an append Kafka's answer has the log start offset.
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
    if (
        error.record_errors
        or (isinstance(error, NotOneBatch) and error.code == errors.CORRUPT_MESSAGE)
        or isinstance(error, ErrorWithText)
    ):
        # Kafka has a message only for errors that name single records, for batches that it cannot parse at all, and
        # for those that the transaction coordinator refused.
        row.error_message = error.text
        row.record_errors = [
            messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in error.record_errors
        ]


def _add_leaders(ctx: Context, response: messages.ProduceResponse) -> None:
    """Add the leaders, and their addresses, of the partitions that this broker does not lead (KIP-951)."""
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
