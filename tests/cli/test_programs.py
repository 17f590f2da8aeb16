"""A program that a command runs ends with the command, with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import programs
from pykafkad.cli.output import Failure
from pykafkad.testing import Broker

LONG = 60
FAMILY = """
import os, signal, subprocess, sys
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "print('there', flush=True); import signal; signal.pause()"])
child.wait()
"""
"""A program and its child, both of which hold their output open. The child says when it is there; it ignores what its
parent ignores."""


def started(grace_seconds: float, kind: str) -> subprocess.Popen[str]:
    """The family, run by a process of its own, once all of it is there."""
    code = (
        f"import os, sys; from pykafkad.cli import programs; programs.GRACE_SECONDS = {grace_seconds}; "
        f"print(programs.run([sys.executable, '-c', {FAMILY!r}, {kind!r}], os.environ), flush=True)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    return process


def rest(process: subprocess.Popen[str]) -> str:
    """What is told until everybody has ended: only then the pipe ends, too."""
    return process.communicate(timeout=LONG)[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.long
def test_a_signal_ends_all_processes(number: signal.Signals) -> None:
    process = started(LONG, "usual")
    process.send_signal(number)
    assert rest(process).endswith(f"Ended(code={128 + number}, is_stopped=True)\n")


def test_who_does_not_end_is_killed() -> None:
    process = started(0.05, "deaf")
    process.terminate()
    assert rest(process) == "Ended(code=143, is_stopped=True)\n"


@pytest.mark.long
def test_a_second_signal_kills_at_once() -> None:
    process = started(10 * LONG, "deaf")
    process.terminate()
    # The second one may come with the first, which is then but one.
    while process.poll() is None:
        process.terminate()
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            pass
    assert rest(process) == "Ended(code=143, is_stopped=True)\n"


@pytest.mark.parametrize(
    ("code", "expected"), [("0", 0), ("7", 7), ("__import__('os').kill(__import__('os').getpid(), 9)", 137)]
)
def test_the_code_is_that_of_a_shell(code: str, expected: int) -> None:
    words = [sys.executable, "-c", f"import sys; sys.exit({code})"]
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert programs.run(words, os.environ) == (expected, False)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_what_is_no_program() -> None:
    with pytest.raises(Failure, match="no-such-program: No such file"):
        programs.run(["no-such-program"], os.environ)


@pytest.mark.long
@pytest.mark.parametrize("command", ["compare", "record"])
def test_the_commands_end_their_program(tmp_path: Path, command: str) -> None:
    """And tell what they have found so far, or keep what they have written."""
    with Broker() as broker:
        words = (
            ["--with", broker.bootstrap] if command == "compare" else [str(tmp_path / "r"), "--from", broker.bootstrap]
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "pykafkad", command, *words, "--", sys.executable, "-c", FAMILY, "usual"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.terminate()
        told = rest(process)
    assert process.returncode == 143
    if command == "compare":
        assert told == "0 of 0 requests were answered in different ways\n"
    else:
        assert main(["replay", str(tmp_path / "r"), "-b", "localhost:1"]) == 0
