"""The first seed of random tests, which depends on the code under test, and their number of examples.

The same code has the same result at any time and place. Changed code is tried with other inputs. The commands behind
these tests (`python -m tests.fuzz`, `tests.log.crashes`, `tests.simulation.damage`) start with a random seed unless
told otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

_PACKAGE = Path(__file__).parent.parent / "pykafkad"


# The share of examples, by the profiles of tests/conftest.py.
QUICK_EXAMPLES = 20


def examples(count: int) -> int:
    """The number of examples for Hypothesis where `make test` draws `count`: all of them, or a fifth with --quick."""
    return max(1, count * settings.default.max_examples // 100)


def sampled(values: Iterable[object], share: int) -> list[Any]:
    """The parameters of a test, of which --quick runs one in `share`; the others are marked `long`."""
    return [pytest.param(value, marks=() if at % share == 0 else pytest.mark.long) for at, value in enumerate(values)]


def seed_of_the_code() -> int:
    """A number below 2**40, computed from every source file and table of the package."""
    digest = hashlib.blake2b(digest_size=5)
    for path in sorted(path for pattern in ("*.py", "*.txt") for path in _PACKAGE.rglob(pattern)):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest(), "big")
