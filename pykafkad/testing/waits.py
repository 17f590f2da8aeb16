"""Waiting for what must come, with a limit: a wait ends as soon as it is there, and a failed one says what was there
instead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")

TIMEOUT_SECONDS = 10.0
"""The limit of a wait, unless it is given another."""

_FIRST_PAUSE_SECONDS = 0.0005
_LONGEST_PAUSE_SECONDS = 0.02


class NotInTime(TimeoutError):
    """What a test waited for did not come in its time; the text says what was there instead."""


def until(
    look: Callable[[], Seen],
    is_there: Callable[[Seen], object],
    wanted: str,
    timeout: float,
    tell: Callable[[Seen], object] = str,
) -> Seen:
    """What `look()` gives as soon as `is_there` of it, asked again and again for `timeout` seconds. Raises NotInTime
    with `wanted` and `tell` of what was seen last, and ValueError for a time that is not above 0."""
    check_timeout(timeout)
    end = time.monotonic() + timeout
    pause = _FIRST_PAUSE_SECONDS
    while True:
        seen = look()
        if is_there(seen):
            return seen
        left = end - time.monotonic()
        if left <= 0:
            raise NotInTime(f"after {timeout:g} s still no {wanted}; there is: {tell(seen)}")
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def check_timeout(timeout: float) -> None:
    """Raises ValueError for a wait that would end before it begins, or never."""
    if not 0 < timeout < float("inf"):
        raise ValueError(f"timeout: {timeout!r} is no number of seconds above 0")
