"""AddPartitionsToTxn, versions 0 to 5.

InitProducerId gives out no transactional ids, so no producer has the id of the request. Every partition is
INVALID_PRODUCER_ID_MAPPING, as in Kafka for an unknown id. An empty id is INVALID_REQUEST. A partition that does not
exist, or that the caller may not write to, has its own error; the other partitions are then OPERATION_NOT_ATTEMPTED.
From version 4 brokers send several transactions at once (KIP-890).

Gaps: transactions are not offered yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.transactional_ids import error_of_unknown_id
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


_WRITE_TRANSACTIONAL_ID, _WRITE_TOPIC, _CLUSTER_ACTION = RULES["AddPartitionsToTxn"]
_Answer = messages.AddPartitionsToTxnResponse
_FROM_BROKERS = 4


def handle(ctx: Context, request: messages.AddPartitionsToTxnRequest) -> object:
    """An error for every partition."""
    if ctx.version < _FROM_BROKERS:
        transactional_id = request.v3_and_below_transactional_id
        refused = refusal(ctx, _WRITE_TRANSACTIONAL_ID, transactional_id)
        return _Answer(results_by_topic_v3_and_below=_rows(ctx, transactional_id, request.v3_and_below_topics, refused))
    if not may(ctx, _CLUSTER_ACTION):
        return _Answer(error_code=_CLUSTER_ACTION.error)
    results = []
    for each in request.transactions:
        rows = _rows(ctx, each.transactional_id, each.topics, errors.NONE)
        results.append(_Answer.AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=rows))
    return _Answer(results_by_transaction=results)


def _rows(
    ctx: Context,
    transactional_id: str,
    topics: list[messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic],
    refused: int,
) -> list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    """The rows as the request has them if all partitions have the same error; else each topic and partition once."""
    codes = {
        (topic.name, index): refused or _error(ctx, topic.name, index) for topic in topics for index in topic.partitions
    }
    if refused or not any(codes.values()):
        code = refused or error_of_unknown_id(transactional_id)
        return [_row(topic.name, [(index, code) for index in topic.partitions]) for topic in topics]
    # One partition that cannot be added keeps all others from being added.
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for (name, index), code in codes.items():
        by_topic.setdefault(name, []).append((index, code or errors.OPERATION_NOT_ATTEMPTED))
    return [_row(name, rows) for name, rows in by_topic.items()]


def _row(topic: str, rows: list[tuple[int, int]]) -> messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult:
    partitions = [
        _Answer.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        for index, code in rows
    ]
    return _Answer.AddPartitionsToTxnTopicResult(name=topic, results_by_partition=partitions)


def _error(ctx: Context, topic: str, index: int) -> int:
    if ctx.version < _FROM_BROKERS and not may(ctx, _WRITE_TOPIC, topic):
        return _WRITE_TOPIC.error
    return errors.NONE if ctx.metadata.partition(topic, index) is not None else errors.UNKNOWN_TOPIC_OR_PARTITION
