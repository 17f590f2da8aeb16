"""Programs that a command runs: none of their processes is left when the command is told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import namedtuple
from time import sleep

from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

GRACE_SECONDS = 10.0
"""So long after a signal the processes may take to end by themselves."""
_STEP_SECONDS = 0.02
_SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT")

Ended = namedtuple("Ended", ("code", "is_stopped"))
Ended.__doc__ = """The exit code of a program as a shell has it, 128 and the number for a signal; and whether a signal
to the command has ended it."""


class _Stopped(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


class _Signals:
    """Those that tell the command to end. They are remembered, and raise `_Stopped` while `raises` is set."""

    def __init__(self) -> None:
        self.raises = False
        self.received: list[int] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Signals:
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            # Who starts a command by nohup wants that it goes on.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        self.raises = False
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _receive(self, number: int, _: FrameType | None) -> None:
        self.received.append(number)
        if self.raises:
            raise _Stopped(number)


def run(words: list[str], environment: Mapping[str, str]) -> Ended:
    """Run a program until it ends. A signal to this process goes on to it and to all that it has started; what has not
    ended after `GRACE_SECONDS`, or at a second signal, is killed. Raises `Failure` for a program that can't be run."""
    # At a terminal the program stays in the group of its command, as else it could not read there. Ctrl-C reaches it
    # by the terminal then.
    has_group = os.name == "posix" and not _is_terminal()
    with _Signals() as signals:
        try:
            process = subprocess.Popen(words, env=environment, process_group=0 if has_group else None)
        except OSError as problem:
            raise Failure(f"{words[0]}: {problem.strerror}", 2) from None
        try:
            signals.raises = True
            if signals.received:
                raise _Stopped(signals.received[0])
            code = process.wait()
        except _Stopped as stopped:
            number = stopped.number
            if has_group or number != signal.SIGINT:
                _send(process, number, has_group)
            try:
                _wait_for_end(process, has_group)
            except _Stopped:
                pass
            signals.raises = False
            _send(process, getattr(signal, "SIGKILL", signal.SIGTERM), has_group)
            process.wait()
            return Ended(128 + number, True)
    return Ended(code if code >= 0 else 128 - code, False)


def _is_terminal() -> bool:
    try:
        return os.isatty(sys.__stdin__.fileno()) if sys.__stdin__ is not None else False
    except (OSError, ValueError):
        return False


def _send(process: subprocess.Popen[bytes], number: int, has_group: bool) -> None:
    try:
        if has_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    except (ProcessLookupError, PermissionError):
        # All of them have ended. (Of a group with ended processes alone macOS says that it is not permitted.)
        pass


def _wait_for_end(process: subprocess.Popen[bytes], has_group: bool) -> None:
    for _ in range(int(GRACE_SECONDS / _STEP_SECONDS)):
        if process.poll() is not None and not (has_group and _is_alive(process.pid)):
            return
        sleep(_STEP_SECONDS)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
