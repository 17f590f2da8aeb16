"""AddPartitionsToTxn, versions 0 to 5.

Adds partitions to a producer's transaction, all or none. A partition that does not exist, or that the caller may not
write to, has its own error; the other partitions are then OPERATION_NOT_ATTEMPTED. A producer that has been replaced is
PRODUCER_FENCED, or INVALID_PRODUCER_EPOCH before version 2. From version 4 brokers send several transactions at once,
and may only ask whether partitions belong to them (KIP-890). Nobody but a transaction's end writes to the internal
topics, so a client can't add their partitions.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.transaction_events import AddPartitions, VerifyPartitions
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.metadata.topics import INTERNAL_TOPICS
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.handlers.context import Context

    Place = tuple[str, int]
    Topics = list[messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
    Rows = list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]


_WRITE_TRANSACTIONAL_ID, _WRITE_TOPIC, _CLUSTER_ACTION = RULES["AddPartitionsToTxn"]
_Answer = messages.AddPartitionsToTxnResponse
_FROM_BROKERS = 4
_KNOWS_FENCED_SINCE = 2


def handle(ctx: Context, request: messages.AddPartitionsToTxnRequest) -> Generator[None, None, object]:
    """Collects the rows of each transaction."""
    if ctx.version < _FROM_BROKERS:
        asked = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        refused = refusal(ctx, _WRITE_TRANSACTIONAL_ID, asked.transactional_id)
        if refused:
            return _Answer(results_by_topic_v3_and_below=_rows(asked.topics, refused))
        composite = ctx.transactions.composite_reply(_only, ctx.token)
        yield from _submit(ctx, asked, composite.part())
        composite.close()
        return DEFERRED
    if not may(ctx, _CLUSTER_ACTION):
        return _Answer(error_code=_CLUSTER_ACTION.error)
    ids = [each.transactional_id for each in request.transactions]
    composite = ctx.transactions.composite_reply(lambda rows: _all(ids, rows), ctx.token)
    for each in request.transactions:
        yield from _submit(ctx, each, composite.part())
    composite.close()
    return DEFERRED


def _only(rows: list[Rows]) -> messages.AddPartitionsToTxnResponse:
    return _Answer(results_by_topic_v3_and_below=rows[0])


def _all(ids: list[str], rows: list[Rows]) -> messages.AddPartitionsToTxnResponse:
    result = _Answer.AddPartitionsToTxnResult
    return _Answer(
        results_by_transaction=[
            result(transactional_id=each, topic_results=topics) for each, topics in zip(ids, rows, strict=True)
        ]
    )


def _submit(
    ctx: Context, asked: messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction, part: Any
) -> Generator[None, None, None]:
    """Hand one transaction to its shard; `part` takes its rows."""
    codes = {}
    for topic in asked.topics:
        for index in topic.partitions:
            codes[topic.name, index] = _error(ctx, topic.name, index)
        yield
    transactional_id = asked.transactional_id
    if any(codes.values()):
        # One partition that cannot be added keeps all others from being added.
        part.deliver(_rows_by_place({place: code or errors.OPERATION_NOT_ATTEMPTED for place, code in codes.items()}))
        return
    error_code = ctx.transactions.error_for(transactional_id) if transactional_id else errors.INVALID_REQUEST
    if error_code:
        part.deliver(_rows(asked.topics, error_code))
        return
    producer = (transactional_id, asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        token = _Rows(part, _rows_by_place)
        ctx.transactions.submit(transactional_id, VerifyPartitions(token, *producer, list(codes)))
        return
    knows_fenced = ctx.version >= _KNOWS_FENCED_SINCE

    def rows(code: int) -> Rows:
        is_old = code == errors.PRODUCER_FENCED and not knows_fenced
        return _rows(asked.topics, errors.INVALID_PRODUCER_EPOCH if is_old else code)

    client_version = 2 if ctx.version >= _FROM_BROKERS else 0
    event = AddPartitions(_Rows(part, rows), *producer, list(codes), client_version)
    ctx.transactions.submit(transactional_id, event)


class _Rows:
    """The reply token of one transaction: makes the rows of its answer and passes them on."""

    __slots__ = ("_part", "_rows")

    def __init__(self, part: Any, rows: Any) -> None:
        self._part = part
        self._rows = rows

    @property
    def request_token(self) -> object:
        """The token of the request as a whole."""
        return self._part.request_token

    def deliver(self, message: Any) -> None:
        """Takes the answer of the shard."""
        self._part.deliver(self._rows(message))


def _error(ctx: Context, topic: str, index: int) -> int:
    if ctx.version < _FROM_BROKERS and (topic in INTERNAL_TOPICS or not may(ctx, _WRITE_TOPIC, topic)):
        return _WRITE_TOPIC.error
    return errors.NONE if ctx.metadata.partition(topic, index) is not None else errors.UNKNOWN_TOPIC_OR_PARTITION


def _rows(topics: Topics, code: int) -> Rows:
    """The rows as the request has them, all with the same error."""
    return [_row(topic.name, [(index, code) for index in topic.partitions]) for topic in topics]


def _rows_by_place(codes: dict[Place, int]) -> Rows:
    """Each topic and partition once."""
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for (name, index), code in codes.items():
        by_topic.setdefault(name, []).append((index, code))
    return [_row(name, rows) for name, rows in by_topic.items()]


def _row(topic: str, rows: list[tuple[int, int]]) -> messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult:
    partitions = [
        _Answer.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        for index, code in rows
    ]
    return _Answer.AddPartitionsToTxnTopicResult(name=topic, results_by_partition=partitions)
