"""Does the same on two brokers at once, which mostly wait: for time to pass, for a JVM, for a disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Side = TypeVar("Side")
Result = TypeVar("Result")


def on_each(call: Callable[[Side], Result], sides: Sequence[Side]) -> list[Result]:
    """The result of `call` for each of the sides, in their order; all of them end, and the first error is raised."""
    with ThreadPoolExecutor(len(sides)) as threads:
        return list(threads.map(call, sides))
