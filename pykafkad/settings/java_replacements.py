"""Regular expressions of Java with a replacement, as Kafka's rules for names of principals have them.

Python's `re` reads the patterns: it knows what such rules use, but for named groups, which Java writes `(?<name>...)`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Piece = str | int
    """A text, or the number of a group."""

_PIECES = re.compile(r"\\(.)|\$([0-9]+)|\$\{(\w+)\}|([^\\$]+)|(.)", re.DOTALL)


def compiled(expression: str) -> re.Pattern[str]:
    """A pattern of Java. Raises ValueError for a text that is none."""
    try:
        return re.compile(expression.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!"))
    except re.error as error:
        raise ValueError(f"{expression!r} is no regular expression: {error}") from None


def pieces(text: str, pattern: re.Pattern[str], *, may_lack_groups: bool) -> Iterator[Piece]:
    """The pieces of a replacement. As in Java, a number takes as many digits as there are groups for; one without a
    group stands for itself where that may be. Raises ValueError."""
    for escaped, digits, name, plain, other in _PIECES.findall(text):
        if digits:
            length = len(digits)
            while length > 1 and int(digits[:length]) > pattern.groups:
                length -= 1
            if int(digits[:length]) <= pattern.groups:
                yield int(digits[:length])
                yield digits[length:]
            elif may_lack_groups:
                yield f"${digits}"
            else:
                raise ValueError(f"the replacement {text!r} has ${digits}, and the pattern {pattern.groups} groups")
        elif name:
            if name not in pattern.groupindex:
                raise ValueError(f"the replacement {text!r} names a group {name!r} that the pattern does not have")
            yield pattern.groupindex[name]
        elif other:
            raise ValueError(f"the replacement {text!r} has a {other} that stands for nothing; write \\{other}")
        else:
            yield escaped or plain


def filled(parts: list[Piece], match: re.Match[str]) -> str:
    """The replacement for a match."""
    return "".join(part if isinstance(part, str) else match[part] or "" for part in parts)
