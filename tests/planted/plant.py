"""One bug, and how it is planted in a source file whatever the file's formatting is."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(r"\w+|[^\w\s]")
# What may stand between two tokens: white space, line ends and comments.
_GAP = r"(?:\s|#[^\n]*)*"
_CLOSING = ")]}"


class Plant(NamedTuple):
    """One bug. `name` says what the code does wrong once it is planted; `tests` are the files that should notice.

    `file` is relative to `pykafkad/`. `old` is code that stands in it exactly once, whatever white space, line ends,
    comments and trailing commas are in it. `new` takes its place; its lines after the first are indented relative to
    the line on which `old` begins.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted_in(self, source: str) -> str:
        """The source with the bug. Raises ValueError unless `old` stands in it exactly once."""
        found = list(_pattern(self.old).finditer(source))
        if len(found) != 1:
            raise ValueError(f"{self.name}: its code stands in {self.file} {len(found)} times, not once")
        start, end = found[0].span()
        line = source[source.rfind("\n", 0, start) + 1 : start]
        indentation = line[: len(line) - len(line.lstrip())]
        return source[:start] + self.new.replace("\n", "\n" + indentation) + source[end:]


def _pattern(code: str) -> re.Pattern[str]:
    """Matches the tokens of `code` with anything in the gaps that does not change their meaning."""
    tokens = _TOKEN.findall(code)
    parts = []
    for position, token in enumerate(tokens):
        following = tokens[position + 1 : position + 2]
        if token == "," and following and following[0] in _CLOSING:
            continue
        before = f",?{_GAP}" if token in _CLOSING and position else ""
        parts.append(before + re.escape(token))
    left = r"(?<!\w)" if tokens[0][0].isalnum() or tokens[0][0] == "_" else ""
    right = r"(?!\w)" if tokens[-1][-1].isalnum() or tokens[-1][-1] == "_" else ""
    return re.compile(left + _GAP.join(parts) + right)
