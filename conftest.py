"""For all tests: the option of `make quick`, and signals that whoever started them ignores (`nohup`, a shell's `&`), which the processes
that they start heed."""

from __future__ import annotations

import signal

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of ours."""
    parser.addoption("--quick", action="store_true", help="random tests draw a part of what they draw otherwise")


def pytest_configure() -> None:
    """What is ignored here would be ignored there; a handler is not inherited, so here it does nothing."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
