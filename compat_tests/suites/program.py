"""Runs a suite's test program and keeps its output."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from compat_tests.suites.suite import Place


def run_logged(
    command: list[str], place: Place, directory: Path, environment: dict[str, str], timeout_seconds: float
) -> str:
    """Run a test program and append its output to the run's log; returns the output. The program is killed at the
    timeout.
    """
    with open(place.log_path, "a+", errors="replace") as print_to:
        begin = print_to.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=print_to,
            stderr=subprocess.STDOUT,
        )
        try:
            process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        print_to.seek(begin)
        return print_to.read()
