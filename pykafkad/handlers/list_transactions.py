"""ListTransactions, versions 0 to 2.

The transactions that this broker coordinates (KIP-664). InitProducerId gives out no transactional ids, so the list is
always empty. Unknown states of the filter are returned. Version 1 filters by duration, 2 by a pattern (KIP-1152), which
is INVALID_REGULAR_EXPRESSION if it is no regular expression.

Gaps: transactions are not offered yet, so no transactional id exists; transactions of a directory that a Kafka wrote
are not read. Without google-re2 (the extra `regex`) every pattern counts as valid.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

MAX_PATTERN_CHARACTERS = 250
"""A longer pattern counts as valid. Compiling it would take milliseconds, and there is nothing to match."""

_STATES = frozenset(
    (
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "PrepareEpochFence",
        "Dead",
    )
)


def handle(ctx: Context, request: messages.ListTransactionsRequest) -> object:
    """An empty list."""
    pattern = request.transactional_id_pattern
    if pattern and len(pattern) <= MAX_PATTERN_CHARACTERS and not _is_pattern(pattern):
        return messages.ListTransactionsResponse(error_code=errors.INVALID_REGULAR_EXPRESSION)
    return messages.ListTransactionsResponse(
        unknown_state_filters=[each for each in dict.fromkeys(request.state_filters) if each not in _STATES]
    )


def _is_pattern(text: str) -> bool:
    """Whether a pattern is valid for RE2; without the library every pattern counts as valid."""
    from pykafkad.settings.regular_expressions import LibraryMissing, compiled

    try:
        compiled(text)
    except ValueError:
        return False
    except LibraryMissing:
        pass
    return True
