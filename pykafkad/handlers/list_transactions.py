"""ListTransactions, versions 0 to 2.

The transactions that this broker coordinates (KIP-664). InitProducerId gives out no transactional id, so there is none
to list, whatever the filters are. States that do not exist are told back. Version 1 filters by duration, 2 by a pattern
(KIP-1152): one that is no regular expression is INVALID_REGULAR_EXPRESSION.

Gaps: transactions are not offered yet, so nobody has a transactional id; what a Kafka left in the directory is not
looked at. Patterns are RE2's: they are read by Python's rules, but for what people are likely to write that the two do
not both have."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

MAX_PATTERN_CHARACTERS = 1000
"""A longer pattern is taken for one: reading it would take milliseconds, and it has nothing to match."""

_MAX_COUNT = 1000
# Unicode's general categories, and the scripts that people are likely to name.
_CLASSES = frozenset(
    [
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
        "Any",
        "Arabic",
        "Armenian",
        "Bengali",
        "Cyrillic",
        "Devanagari",
        "Georgian",
        "Greek",
        "Han",
        "Hangul",
        "Hebrew",
        "Hiragana",
        "Katakana",
        "Latin",
        "Tamil",
        "Thai",
    ]
)
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
    """Whether RE2 takes a pattern, which is what Kafka reads these with (other patterns of its are Java's)."""
    import re
    import warnings
    from re import _parser

    # What RE2 has beyond Python stands for some letter: quotations, classes by name, further escapes.
    plain = re.sub(r"\\Q.*?(?:\\E|$)", "x", text, flags=re.DOTALL)
    plain = re.sub(r"(\\\\)|\\[pP](?:\{\^?(\w+)\}|(\w))|\\x\{[0-9A-Fa-f]+\}|\\[zC]", _letter, plain)
    plain = re.sub(r"\(\?(?:[imsU]+(?:-[imsU]+)?|-[imsU]+)\)", "(?:)", plain)
    plain = re.sub(r"\(\?(?:P?<[A-Za-z_]\w*>|[imsU]*(?:-[imsU]+)?:)", "(", plain)
    bare = re.sub(r"\\[^Z]|\[[^\]]*\]", "", plain, flags=re.DOTALL)
    if "(?" in bare.replace("(?:)", "") or "\\Z" in bare:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _is_plain(_parser.parse(plain))
    except (re.error, OverflowError, RecursionError):
        return False


def _letter(found: object) -> str:
    name = found[2] or found[3]
    # A class that has no such name stays an escape that there is not.
    return found[1] or ("x" if name is None or name in _CLASSES else "\\p")


def _is_plain(nodes: object) -> bool:
    """Whether a syntax tree holds nothing that RE2 does without, and no count that is too large for it."""
    for code, argument in nodes:
        name = str(code)
        if name in ("GROUPREF", "GROUPREF_EXISTS", "POSSESSIVE_REPEAT", "ATOMIC_GROUP"):
            return False
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = argument
            if least > _MAX_COUNT or (most is not _unbounded() and most > _MAX_COUNT) or not _is_plain(inner):
                return False
        elif (name == "SUBPATTERN" and not _is_plain(argument[3])) or (
            name == "BRANCH" and not all(_is_plain(each) for each in argument[1])
        ):
            return False
    return True


def _unbounded() -> object:
    from re import _constants

    return _constants.MAXREPEAT
