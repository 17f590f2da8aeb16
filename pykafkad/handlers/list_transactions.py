"""ListTransactions, versions 0 to 2.

The transactions that this broker coordinates (KIP-664). InitProducerId gives out no transactional id, so there is none
to list, whatever the filters are. States that do not exist are told back. Version 1 filters by duration, 2 by a pattern
(KIP-1152): one that is no regular expression is INVALID_REGULAR_EXPRESSION.

Gaps: transactions are not offered yet, so nobody has a transactional id; what a Kafka left in the directory is not
looked at. Without google-re2 (the extra `regex`) every pattern is taken for a valid one."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

MAX_PATTERN_CHARACTERS = 250
"""A longer pattern is taken for one: reading it would take milliseconds, and it has nothing to match."""

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
    """Whether RE2 takes a pattern; without the library everything is taken for one."""
    from pykafkad.settings.regular_expressions import LibraryMissing, compiled

    try:
        compiled(text)
    except ValueError:
        return False
    except LibraryMissing:
        pass
    return True
