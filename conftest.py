"""For all tests: the option of `make quick`, and signals that whoever started them ignores (`nohup`, a shell's `&`),
which the processes that they start heed."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

MEMORY = "/dev/shm"
NEEDED_BYTES = 1 << 30


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of ours."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="no tests that are marked `long`; random tests draw a part of their examples; files are in memory",
    )
    parser.addoption(
        "--cases",
        type=int,
        metavar="N",
        help="up to N cases of each parametrized test, others whenever the code changes",
    )


def pytest_configure(config: pytest.Config) -> None:
    """What is ignored here would be ignored there; a handler is not inherited, so here it does nothing."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    # A third of the time goes into making and removing small files where they are on a disk, which sees them without
    # --quick.
    if config.getoption("--quick") and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= NEEDED_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick, leave out the tests that are marked `long`."""
    if config.getoption("--quick"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
