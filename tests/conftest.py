"""Fixtures and settings of all unit tests."""

from __future__ import annotations

import gc
import os
import select
from collections.abc import Iterator

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from pykafkad.server import logs
from tests import collector, seeds

# The duration of an example depends on how busy the machine is, and must not decide about a test's result.
settings.register_profile(
    "any-machine", settings.default, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("any-machine"), max_examples=seeds.QUICK_EXAMPLES)

# A set-up or a clean-up that takes longer is in the list of `--durations`.
SHOWN_SECONDS = 0.05

# The number of descriptors of one process between two tests. Many systems allow 1024.
MOST_DESCRIPTORS = 200

# The C library keeps freed memory of blocks up to this size, instead of returning it and zeroing new pages.
bytearray(31 << 20)


def pytest_configure(config: pytest.Config) -> None:
    """Called before any test is collected."""
    collector.collect_rarely()
    settings.load_profile("quick" if config.getoption("--quick") else "any-machine")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps what the system can run; with --cases, some cases of each parametrized test."""
    if not hasattr(select, "epoll"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("epoll")])
        items[:] = [item for item in items if not item.get_closest_marker("epoll")]
    most = config.getoption("--cases")
    if most is None:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for name, each in cases.items() for item in seeds.drawn(each, most, name)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish() -> None:
    """Freezes the collected tests and their modules: the garbage collector must not scan them on every run."""
    collector.freeze()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a process of xdist, tells the main process of a test once.

    Usually it sends five messages for each test: its begin, three reports and its end. With thousands of short tests
    they take as much time as the tests. A set-up and a clean-up are reported if they fail, skip or take long.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > SHOWN_SECONDS:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_runtest_setup() -> None:
    """Gives each test the full allowance of log lines of a second: an earlier test may have used it up."""
    logs.process_logs().sink = logs.Sink()


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
