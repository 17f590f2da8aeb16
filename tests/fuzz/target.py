"""A target of the fuzzers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple


class Target(NamedTuple):
    """One decoder. `example` draws valid bytes. `check` takes any bytes and returns whether they gave a value.

    False means that the decoder refused them with its documented error. Any other exception of `check` is a finding.
    `weight` is the target's share of the inputs.
    """

    name: str
    weight: int
    example: Callable[[random.Random], bytes]
    check: Callable[[bytes], bool]


class Finding(AssertionError):
    """A decoder broke its promise. The message says how, and has the bytes."""
