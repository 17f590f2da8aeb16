"""DescribeTransactions, version 0.

InitProducerId gives out no transactional id, so whatever is named is one that nobody has: TRANSACTIONAL_ID_NOT_FOUND,
Kafka's answer to that. An empty id is INVALID_REQUEST.

Gaps: transactions are not offered yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


_Answer = messages.DescribeTransactionsResponse


def handle(ctx: Context, request: object) -> object:
    """One row for each id, with its error."""
    return _Answer(transaction_states=[_Answer.TransactionState(transactional_id=each, error_code=_error(ctx, each)) for each in request.transactional_ids])


def _error(ctx: Context, transactional_id: str) -> int:
    if not ctx.allowed("Describe", "TransactionalId", transactional_id):
        return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return errors.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else errors.INVALID_REQUEST
