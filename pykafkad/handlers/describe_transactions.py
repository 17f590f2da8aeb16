"""DescribeTransactions, version 0.

The state of transactional ids (KIP-664). InitProducerId gives out no transactional ids, so every id is
TRANSACTIONAL_ID_NOT_FOUND. An empty id is INVALID_REQUEST. An id that is named several times has several rows.

One departure, on purpose: Kafka says NOT_COORDINATOR until FindCoordinator has created the coordinator's topic. Here
FindCoordinator creates no topic and names this broker, so clients that got NOT_COORDINATOR would ask for ever.

Gaps: transactions are not offered yet, so no transactional id exists; transactions of a directory that a Kafka wrote
are not read.
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


_DESCRIBE_TRANSACTIONAL_ID, _ = RULES["DescribeTransactions"]
_Answer = messages.DescribeTransactionsResponse


def handle(ctx: Context, request: messages.DescribeTransactionsRequest) -> Generator[None, None, object]:
    """One row per id, with its error."""
    rows = []
    for each in request.transactional_ids:
        rows.append(_Answer.TransactionState(transactional_id=each, error_code=_error(ctx, each)))
        yield
    return _Answer(transaction_states=rows)


def _error(ctx: Context, transactional_id: str) -> int:
    if not may(ctx, _DESCRIBE_TRANSACTIONAL_ID, transactional_id):
        return _DESCRIBE_TRANSACTIONAL_ID.error
    return errors.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else errors.INVALID_REQUEST
