"""DescribeTransactions, version 0.

The state of transactional ids (KIP-664). InitProducerId gives out none, so whatever is named is one that nobody has:
TRANSACTIONAL_ID_NOT_FOUND. An empty id is INVALID_REQUEST. Each id has its own row, as often as it is named.

One departure, on purpose: until somebody has looked for a coordinator, which makes its topic, Kafka says
NOT_COORDINATOR. Here FindCoordinator makes no topic and names this broker, so that answer would send clients round in
circles.

Gaps: transactions are not offered yet, so nobody has a transactional id; what a Kafka left in the directory is not
looked at."""

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
    """One row for each id, with its error."""
    rows = []
    for each in request.transactional_ids:
        rows.append(_Answer.TransactionState(transactional_id=each, error_code=_error(ctx, each)))
        yield
    return _Answer(transaction_states=rows)


def _error(ctx: Context, transactional_id: str) -> int:
    if not may(ctx, _DESCRIBE_TRANSACTIONAL_ID, transactional_id):
        return _DESCRIBE_TRANSACTIONAL_ID.error
    return errors.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else errors.INVALID_REQUEST
