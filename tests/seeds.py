"""The first seed of random tests, which depends on the code under test, and their number of examples.

The same code has the same result at any time and place. Changed code is tried with other inputs. The commands behind
these tests (`python -m tests.fuzz`, `tests.log.crashes`, `tests.simulation.damage`) start with a random seed unless
told otherwise.
"""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings

_PACKAGE = Path(__file__).parent.parent / "pykafkad"

_T = TypeVar("_T")

# The share of examples, by the profiles of tests/conftest.py.
QUICK_EXAMPLES = 10


def examples(count: int) -> int:
    """The number of examples for Hypothesis where `make test` draws `count`: all of them, or a tenth with --quick."""
    return max(1, count * settings.default.max_examples // 100)


def sampled(values: Iterable[Any], share: int) -> list[Any]:
    """The parameters of a test: one in `share` with --quick, otherwise all. Changed code is tried with others."""
    every = list(values)
    if settings.default.max_examples != QUICK_EXAMPLES or not every:
        return every
    return every[seed_of_the_code() % min(share, len(every)) :: share]


def drawn(values: Sequence[_T], count: int, name: str) -> list[_T]:
    """Up to `count` of the values, in their order. Which ones depends on the name and on the code under test."""
    if len(values) <= count:
        return list(values)
    dice = random.Random(f"{name} {seed_of_the_code()}")
    return [values[each] for each in sorted(dice.sample(range(len(values)), count))]


@functools.cache
def seed_of_the_code() -> int:
    """A number below 2**40, computed from every source file and table of the package."""
    digest = hashlib.blake2b(digest_size=5)
    for path in sorted(path for pattern in ("*.py", "*.txt") for path in _PACKAGE.rglob(pattern)):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest(), "big")
