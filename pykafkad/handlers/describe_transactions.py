"""DescribeTransactions, version 0.

The state of transactional ids that this broker coordinates (KIP-664): producer, state, timeout, start, and the
partitions that belong to the open transaction or still wait for its marker. Topics that the caller may not describe are
left out. An unknown id is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST. An id that is named several times
has several rows.

Gaps: none.
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


_DESCRIBE_TRANSACTIONAL_ID, _DESCRIBE_TOPIC = RULES["DescribeTransactions"]
_Answer = messages.DescribeTransactionsResponse


def handle(ctx: Context, request: messages.DescribeTransactionsRequest) -> Generator[None, None, object]:
    """One row per id."""
    rows = []
    for each in request.transactional_ids:
        rows.append(_row(ctx, each))
        yield
    return _Answer(transaction_states=rows)


def _row(ctx: Context, transactional_id: str) -> messages.DescribeTransactionsResponse.TransactionState:
    if not may(ctx, _DESCRIBE_TRANSACTIONAL_ID, transactional_id):
        error_code = _DESCRIBE_TRANSACTIONAL_ID.error
    elif not transactional_id:
        error_code = errors.INVALID_REQUEST
    else:
        shard, error_code = ctx.transactions.shard_for(transactional_id)
        if not error_code:
            row: messages.DescribeTransactionsResponse.TransactionState | None = shard.describe(transactional_id)
            if row is not None:
                ctx.transactions.read(transactional_id, ctx.token)
                row.topics = [topic for topic in row.topics if may(ctx, _DESCRIBE_TOPIC, topic.topic)]
                return row
            error_code = errors.TRANSACTIONAL_ID_NOT_FOUND
    return _Answer.TransactionState(transactional_id=transactional_id, error_code=error_code)
