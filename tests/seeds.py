"""Where random tests begin, a number that follows from the code under test, and how much they draw.

The same code has the same result, however often and wherever it is tested; code that has changed is tried with other
inputs. The commands behind these tests (`python -m tests.fuzz`, `tests.log.crashes`, `tests.simulation.damage`) begin
anywhere unless told."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hypothesis import settings

_PACKAGE = Path(__file__).parent.parent / "pykafkad"


# Of a hundred examples, by the profiles of tests/conftest.py.
QUICK_EXAMPLES = 20


def examples(count: int) -> int:
    """How many examples Hypothesis draws where `make test` draws `count`: all of them, or with --quick a fifth."""
    return max(1, count * settings.default.max_examples // 100)


def seed_of_the_code() -> int:
    """Below 2**40, out of every source and table of the package."""
    digest = hashlib.blake2b(digest_size=5)
    for path in sorted(path for pattern in ("*.py", "*.txt") for path in _PACKAGE.rglob(pattern)):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest(), "big")
