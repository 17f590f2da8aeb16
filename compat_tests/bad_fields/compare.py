"""Compares the answers of two brokers and yields the differences that are not allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compat_tests.bad_fields.differences import ALLOWED, Difference, allowing
from compat_tests.bad_fields.run import Answer
from compat_tests.scenarios.normalise import differences

SHOWN_LETTERS = 120
NAMES = ("name", "topic", "topic_name", "api_key")


def compared(expected: Iterable[Answer], found: Iterable[Answer]) -> Iterator[tuple[Answer, str, Any, Any]]:
    """`(request, dotted path, expected, found)` for every difference; both runs must have asked the same in order."""
    for left, right in zip(expected, found, strict=True):
        assert left[:4] == right[:4], f"the runs differ: {left[:4]}, {right[:4]}"
        for _, path, one, other in differences("", _named(left.answer), _named(right.answer)):
            yield left, path, one, other


def not_allowed(
    expected: Iterable[Answer], found: Iterable[Answer], rows: tuple[Difference, ...] = ALLOWED
) -> list[str]:
    """One line for each kind of difference without a row, with all versions concerned; and one for each row without a
    difference.
    """
    versions: dict[tuple[str, ...], list[int]] = {}
    there: set[Difference] = set()
    for asked, path, one, other in compared(expected, found):
        allowing_rows = allowing(asked, path, rows)
        there.update(allowing_rows)
        if not allowing_rows:
            line = (asked.api, asked.path or "the request", asked.what, path, _short(one), _short(other))
            versions.setdefault(line, []).append(asked.version)
    gone = [
        f"{row.api} has no difference any more as this row says: {row}"
        for row in rows
        if row not in there and not row.is_chance
    ]
    return gone + [
        f"{api} v{','.join(map(str, dict.fromkeys(several)))} {field}: {what}: {path or 'answer'}: {one} / {other}"
        for (api, field, what, path, one, other), several in versions.items()
    ]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}… ({len(text)} letters)"


def _named(value: Any) -> Any:
    """Rows with names are matched by name, not by position."""
    if isinstance(value, dict):
        return {key: _named(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    rows = [_named(inner) for inner in value]
    for key in NAMES:
        keys = [str(row[key])[:SHOWN_LETTERS] for row in rows if isinstance(row, dict) and key in row]
        if rows and len(set(keys)) == len(rows):
            return dict(zip(keys, rows, strict=True))
    return rows
