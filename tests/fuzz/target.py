"""What a target of the fuzzers is."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple


class Target(NamedTuple):
    """One decoder. `example` draws valid bytes; `check` takes any bytes and tells whether they gave a value.

    False means refused with the error that is promised. Everything else that `check` raises is a finding. `weight` is
    the target's share of the inputs."""

    name: str
    weight: int
    example: Callable[[random.Random], bytes]
    check: Callable[[bytes], bool]


class Finding(AssertionError):
    """A decoder did what it must not: the message says what, and holds the bytes."""
