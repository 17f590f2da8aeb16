"""ListTransactions, versions 0 to 2.

The transactions that this broker coordinates (KIP-664). InitProducerId gives out no transactional id, so there is none to
list, whatever the filters are. States that do not exist are told back. Version 1 filters by duration, 2 by a pattern
(KIP-1152): one that is no regular expression is INVALID_REGULAR_EXPRESSION.

Gaps: transactions are not offered yet, so nobody has a transactional id; what a Kafka left in the directory is not looked at.
Patterns are Java's: they are read by Python's rules, but for what Java writes otherwise and people use (quotations, classes by name, braces).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

MAX_PATTERN_CHARACTERS = 1000
"""A longer pattern is taken for one: reading it would take milliseconds, and it has nothing to match."""

_STATES = frozenset(("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead"))


def handle(ctx: Context, request: object) -> object:
    """An empty list."""
    pattern = request.transactional_id_pattern
    if pattern and len(pattern) <= MAX_PATTERN_CHARACTERS and not _is_pattern(pattern):
        return messages.ListTransactionsResponse(error_code=errors.INVALID_REGULAR_EXPRESSION)
    return messages.ListTransactionsResponse(unknown_state_filters=[each for each in dict.fromkeys(request.state_filters) if each not in _STATES])


def _is_pattern(text: str) -> bool:
    import re
    import warnings

    # What Java has beyond Python stands for some letter: quotations, classes by name, further escapes.
    plain = re.sub(r"\\Q.*?(?:\\E|$)", "x", text, flags=re.DOTALL)
    plain = re.sub(r"(\\\\)|\\[pP](?:\{\w+\}|\w)|\\[hHVRXGzZe]", lambda found: found[1] or "x", plain)
    plain = re.sub(r"\(\?<[A-Za-z]\w*>", "(", plain)
    # A brace that counts nothing is a letter to Python, and no pattern to Java.
    bare = re.sub(r"\\.|\[[^\]]*\]|\{\d+(?:,\d*)?\}", "", plain, flags=re.DOTALL)
    if "{" in bare or "(?P" in bare:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(plain)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
