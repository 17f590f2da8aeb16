"""Regular expressions that clients and operators write, matched in linear time by RE2.

Kafka reads those of ListTransactions with RE2/J, which knows the same expressions, and those of client-metrics
subscriptions (KIP-714) with Java's own. Of Java's, RE2 has no references, look-around and possessive repetitions; they
are refused. Python's `re` would hold up the loop for years over forty letters (`(a+)+b`).

The library, google-re2, is the extra `regex`: a broker needs it for these two purposes alone. There are wheels for
Python 3.11 to 3.14.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_MEMORY_BYTES = 1 << 20
"""The limit of an expression's compiled form, which also limits the time of compiling. A larger one is refused."""

INSTALL = "regular expressions need google-re2: pip install 'pykafkad[regex]'"


class LibraryMissing(Exception):
    """google-re2 is not installed; the text says how to install it."""


@lru_cache(maxsize=100)
def compiled(expression: str) -> Any:
    """RE2's pattern of a regular expression. Raises `ValueError` for one that RE2 does not know, or that is too large,
    and `LibraryMissing`."""
    try:
        import re2
    except ImportError:
        raise LibraryMissing(INSTALL) from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        raise ValueError(text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)) from None


def matches(expression: str, text: str) -> bool:
    """Whether the expression matches the whole of `text`. Raises as `compiled`."""
    return compiled(expression).fullmatch(text) is not None
