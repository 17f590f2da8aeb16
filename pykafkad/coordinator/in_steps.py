"""Computations in steps: generators that yield between their parts, and return their outcome.

Who runs one decides whether it goes on at once or does other work between two steps."""

from __future__ import annotations

ITEMS_PER_STEP = 200
"""How many items, such as partitions or tasks, a loop looks at before it yields. They take a fraction of a
millisecond."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TypeVar

    T = TypeVar("T")
    Steps = Generator[None, None, T]


def at_once(steps: Steps[T]) -> T:
    """The outcome of all steps."""
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome
