"""What holds for every unit test."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import collector, seeds
from tests.simulation.world import LateOffload

# How long an example takes, and how long it takes to draw one, tells how busy the machine is; the same code has the
# same result.
settings.register_profile(
    "any-machine", settings.default, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("any-machine"), max_examples=seeds.QUICK_EXAMPLES)

# Of one process between two tests; many a system allows 1024.
MOST_DESCRIPTORS = 200

# The C library keeps freed memory for the next block of up to that size, where it would give it back and have it zeroed
# page by page.
bytearray(31 << 20)


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is made."""
    settings.load_profile("quick" if config.getoption("--quick") else "any-machine")


def pytest_collection_finish() -> None:
    """Thousands of tests and what they import are here to stay: the collector need not look at them again, as often as
    it is called."""
    collector.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Worlds that tests leave hold files until the collector comes, which is seldom, as little lives but what is
    frozen."""
    LateOffload.end_threads()
    if len(os.listdir("/proc/self/fd")) > MOST_DESCRIPTORS:
        gc.collect()


@pytest.fixture
def frozen_anew() -> Iterator[None]:
    """For tests of what the collector finds, which give back to it what is frozen."""
    yield
    collector.freeze()


@pytest.fixture
def descriptors_at_rest() -> Iterator[None]:
    """For tests that count descriptors: what earlier tests left to the garbage collector gives none back meanwhile, and
    those in use are the lowest ones."""
    gc.collect()
    gc.disable()
    highest = max(map(int, os.listdir("/proc/self/fd")))
    gaps = [os.open(os.devnull, os.O_RDONLY)]
    while gaps[-1] < highest:
        gaps.append(os.open(os.devnull, os.O_RDONLY))
    yield
    for gap in gaps:
        os.close(gap)
    gc.enable()
