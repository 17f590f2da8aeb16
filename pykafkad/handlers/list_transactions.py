"""ListTransactions, versions 0 to 2.

InitProducerId gives out no transactional id, so there is none to list, whatever the filters are. States that do not exist
are told back (KIP-664); a pattern (2, KIP-1152) that is no regular expression is INVALID_REGULAR_EXPRESSION.

Gaps: transactions are not offered yet. Patterns are read by the rules of Python.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


_STATES = frozenset(("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead"))


def handle(ctx: Context, request: object) -> object:
    """An empty list."""
    if request.transactional_id_pattern:
        import re

        try:
            re.compile(request.transactional_id_pattern)
        except (re.error, OverflowError, RecursionError):
            return messages.ListTransactionsResponse(error_code=errors.INVALID_REGULAR_EXPRESSION)
    return messages.ListTransactionsResponse(unknown_state_filters=[each for each in request.state_filters if each not in _STATES])
