"""What `--hold-memory` holds."""

import os

import pytest

from . import needs
from .held_memory import hold


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_half_of_it_is_held_and_the_other_half_is_free():
    before = resident_bytes()
    with hold(0.0625):
        assert 31 << 20 <= resident_bytes() - before <= 34 << 20
    assert resident_bytes() - before < 2 << 20


def test_more_than_is_free_is_refused():
    with pytest.raises(needs.Missing, match=r"--hold-memory 1000000: [0-9.]+ GB are free"), hold(1_000_000):
        pass


def test_nothing_is_held_by_default():
    before = resident_bytes()
    with hold(0):
        assert resident_bytes() - before < 2 << 20
