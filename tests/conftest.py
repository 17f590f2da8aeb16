"""Fixtures and settings of all unit tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import collector, seeds

# The duration of an example depends on how busy the machine is, and must not decide about a test's result.
settings.register_profile(
    "any-machine", settings.default, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("any-machine"), max_examples=seeds.QUICK_EXAMPLES)

# The number of descriptors of one process between two tests. Many systems allow 1024.
MOST_DESCRIPTORS = 200

# The C library keeps freed memory of blocks up to this size, instead of returning it and zeroing new pages.
bytearray(31 << 20)


def pytest_configure(config: pytest.Config) -> None:
    """Called before any test is collected."""
    settings.load_profile("quick" if config.getoption("--quick") else "any-machine")


def pytest_collection_finish() -> None:
    """Freezes the collected tests and their modules: the garbage collector must not scan them on every run."""
    collector.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Collects garbage when many descriptors are open.

    Simulated worlds of earlier tests hold files until then, and collections are rare.
    """
    if len(os.listdir("/proc/self/fd")) > MOST_DESCRIPTORS:
        gc.collect()


@pytest.fixture
def frozen_anew() -> Iterator[None]:
    """Freezes all objects again after a test that unfreezes them."""
    yield
    collector.freeze()


@pytest.fixture
def descriptors_at_rest() -> Iterator[None]:
    """Collects garbage first, for tests that count descriptors.

    Earlier tests then release no descriptor during the test, and the open descriptors have the lowest numbers.
    """
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
