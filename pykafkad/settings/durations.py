"""Durations as settings write them (ISO 8601, as Java's `Duration`)."""

from __future__ import annotations

PATTERN = r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"

_SECONDS = (86_400, 3_600, 60, 1)


def milliseconds(text: str) -> int:
    """A duration such as `PT1H30M` in milliseconds. Raises ValueError for a text that is none."""
    import re

    found = re.fullmatch(PATTERN, text)
    if found is None:
        raise ValueError(f"{text!r} is no duration such as PT1H30M")
    return sum(
        int(float(part) * 1_000) * seconds
        for part, seconds in zip(found.groups(), _SECONDS, strict=True)
        if part is not None
    )
