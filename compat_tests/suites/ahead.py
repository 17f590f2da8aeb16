"""`python -m compat_tests.suites.ahead NAME...`: builds suites while other tests run, with the lowest priority.

A build keeps processors busy for minutes, and other tests mostly wait. A suite that cannot be built is left to its
test, which gives the reason.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from compat_tests.brokers.pykafkad_process import REPOSITORY
from compat_tests.suites.catalogue import suite_named
from compat_tests.suites.suite import SuiteUnavailable

LOWEST_PRIORITY = ("nice", "-n", "19")


def start(names: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start building those suites in a process group of their own."""
    command = [*LOWEST_PRIORITY, sys.executable, "-m", "compat_tests.suites.ahead", *names]
    return subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End what is still being built, with its compilers."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def main() -> None:
    """Build the named suites, one after the other."""
    for name in sys.argv[1:]:
        with contextlib.suppress(SuiteUnavailable):
            suite_named(name).prepare()


if __name__ == "__main__":
    main()
