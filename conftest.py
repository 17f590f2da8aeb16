"""For all tests: signals that whoever started them ignores (`nohup`, a shell's `&`) are heeded by the processes that they start."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """What is ignored here would be ignored there; a handler is not inherited, so here it does nothing."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
