"""Log lines: one each, with nothing in it that a peer could forge, and never in the way."""

from __future__ import annotations

import datetime
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad.clock import ManualClock
from pykafkad.server import logs

PROJECT = Path(__file__).parents[2]


class _Lines:
    """A sink's write function that keeps what it gets, and can be full."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.full = False

    def __call__(self, data: bytes) -> int:
        if self.full:
            raise BlockingIOError(errno.EAGAIN, "full")
        self.texts.append(data.decode())
        return len(data)


@pytest.fixture
def lines() -> _Lines:
    """The process's log goes into a list, at level info, for one test."""
    kept = _Lines()
    before = logs._OUTPUT.threshold, logs._OUTPUT.sink
    logs.configure("info", logs.Sink(kept, ManualClock(1_795_262_847_123)))
    yield kept
    logs._OUTPUT.threshold, logs._OUTPUT.sink = before


def test_a_line(lines: _Lines) -> None:
    """Time, level, who speaks, the event, then key=value; None is left out."""
    logs.logger("server").warning(
        "connection-closed", peer="127.0.0.1:5", reason="frame too large", count=3, nothing=None
    )
    assert lines.texts == [
        '2026-11-21T12:07:27.123Z WARNING server connection-closed peer=127.0.0.1:5 reason="frame too large" count=3\n'
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("a b", '"a b"'),
        ("a=b", '"a=b"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("x\n2026 ERROR forged", '"x\\n2026 ERROR forged"'),
        ("\x1b[31mred", '"\\x1b[31mred"'),
        ("é", '"é"'),
        (b"\x00\xff", "\"b'\\\\x00\\\\xff'\""),
        (True, "True"),
        (ValueError("no"), '"ValueError: no"'),
    ],
)
def test_values_cannot_forge_lines(lines: _Lines, value: object, shown: str) -> None:
    """Whatever a peer sends as a client id or topic name stays inside its quotes on its line."""
    logs.logger("x").info("e", v=value)
    assert lines.texts[0].endswith(f" INFO x e v={shown}\n")
    assert lines.texts[0].count("\n") == 1


def test_long_values_are_cut(lines: _Lines) -> None:
    """A line has a limit; a traceback has a wider one."""
    logs.logger("x").info("e", v="a" * 10_000, traceback="b" * 10_000)
    assert len(lines.texts[0]) < logs.VALUE_CHARACTERS + logs.LONG_VALUE_CHARACTERS + 200


def test_all_settings_without_effect_are_named(lines: _Lines) -> None:
    names = [f"a.setting.of.kafka.number.{number}" for number in range(40)]
    logs.tell_settings(logs.logger("x"), [], names)
    assert lines.texts[0].endswith(f' count=40 names="{" ".join(names)}"\n')


def test_levels(lines: _Lines) -> None:
    """Below the level nothing is written; an unknown level is an error."""
    log = logs.logger("x")
    log.debug("no")
    log.info("yes")
    logs.configure("error")
    log.warning("no")
    log.error("yes")
    logs.configure("DEBUG")
    log.debug("yes")
    assert [line.split()[3] for line in lines.texts] == ["yes"] * 3
    with pytest.raises(ValueError, match="not in tuple"):
        logs.configure("loud")


def test_a_full_pipe_drops_and_counts(lines: _Lines) -> None:
    """The broker goes on; the next line that gets out tells how many were lost."""
    log = logs.logger("x")
    lines.full = True
    log.info("lost")
    log.info("lost")
    lines.full = False
    log.info("here")
    assert [line.split()[3:] for line in lines.texts] == [["lines-dropped", "count=2"], ["here"]]


class _Disk:
    """Takes so many bytes of each write, and then none."""

    def __init__(self, room: int, piece: int) -> None:
        self.room, self.piece = room, piece
        self.data = b""

    def __call__(self, data: bytes) -> int:
        taken = data[: min(self.room, self.piece)]
        if not taken:
            raise OSError(28, "No space left on device")
        self.data += taken
        self.room -= len(taken)
        return len(taken)


def test_a_write_in_parts_is_one_line() -> None:
    disk = _Disk(1000, 7)
    sink = logs.Sink(disk, ManualClock(1_000_000))
    sink.line("info", "x", "one", {})
    sink.line("info", "x", "two", {})
    assert [line.split(b" ", 2)[2] for line in disk.data.splitlines()] == [b"x one", b"x two"]
    assert sink.dropped == 0


def test_a_line_of_which_only_a_part_was_written_is_dropped() -> None:
    """It is counted, and the next line begins at the left."""
    disk = _Disk(40, 100)
    sink = logs.Sink(disk, ManualClock(1_000_000))
    sink.line("info", "x", "long-enough-to-be-cut", {})
    assert len(disk.data) == 40 and sink.dropped == 1
    sink.line("info", "x", "lost", {})
    assert sink.dropped == 2
    disk.room = 1000
    sink.line("info", "x", "here", {})
    assert [line.split(b" ", 2)[2] for line in disk.data.splitlines()[1:]] == [b"logs lines-dropped count=2", b"x here"]
    assert sink.dropped == 0


def test_a_flood_is_cut(lines: _Lines) -> None:
    """More lines in a second than the limit are dropped; the next second tells."""
    clock = ManualClock(1_000_000)
    logs.configure("info", logs.Sink(lines, clock))
    for _ in range(logs.LINES_PER_SECOND + 5):
        logs.logger("x").info("e")
    assert len(lines.texts) == logs.LINES_PER_SECOND
    clock.advance(1)
    logs.logger("x").info("e")
    assert "lines-dropped count=5" in lines.texts[-2]


def test_lines_that_clients_cause_leave_room_for_others(lines: _Lines) -> None:
    clock = ManualClock()
    bounded = logs.BoundedLines(logs.process_logs(), "coordinator", clock)
    for number in range(logs.BOUNDED_LINES_PER_SECOND + 7):
        bounded.info("member-joined", {"number": number})
    assert len(lines.texts) == logs.BOUNDED_LINES_PER_SECOND
    clock.advance(1)
    bounded.info("member-left", {})
    assert [text.split()[2:] for text in lines.texts[-2:]] == [
        ["coordinator", "lines-left-out", "count=7"],
        ["coordinator", "member-left"],
    ]
    logs.configure("warning")
    bounded.info("member-left", {})
    assert len(lines.texts) == logs.BOUNDED_LINES_PER_SECOND + 2


@pytest.mark.parametrize(
    "now_ms", [0, 951_782_399_999, 951_868_800_001, 1_709_164_800_000, 1_795_262_847_123, 4_107_542_400_000]
)
def test_timestamps_equal_datetimes(now_ms: int) -> None:
    """Leap days and centuries included."""
    expected = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC).isoformat(timespec="seconds")[:19]
    assert logs.timestamp(now_ms) == f"{expected}.{now_ms % 1000:03}Z"


def test_standard_error_does_not_block() -> None:
    """A pipe that nobody reads: writing fails at once instead of waiting, and the pipe's other holders stay
    blocking."""
    code = (
        "import os; from pykafkad.server import logs; log = logs.logger('x');\n"
        "for _ in range(900): log.info('e', v='a' * 250)\n"
        "print(logs._OUTPUT.sink.dropped > 0, os.get_blocking(2))"
    )
    read, write = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=write, timeout=60, check=True
        )
    finally:
        os.close(read)
        os.close(write)
    assert done.stdout.split() == [b"True", b"True"]


LINE = "from pykafkad.server import logs; logs.logger('server').warning('full', used=3)"


@pytest.mark.skipif(os.name != "posix", reason="a terminal is made by the system's calls for it")
@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({}, False)],
)
def test_a_terminal_shows_colours(environment: dict[str, str], is_coloured: bool) -> None:
    """Unless it cannot, or its user wants none."""
    parent, terminal = os.openpty()
    subprocess.run([sys.executable, "-c", LINE], stderr=terminal, env=environment, cwd=PROJECT, check=True, timeout=60)
    os.close(terminal)
    shown = os.read(parent, 1000).decode().rstrip("\r\n")
    os.close(parent)
    level, event = ("\x1b[1;33mWARNING\x1b[0m", "\x1b[1mfull\x1b[0m") if is_coloured else ("WARNING", "full")
    assert shown.endswith(f" {level} server {event} used=3")
    assert ("\x1b" in shown) == is_coloured


def test_a_file_gets_no_colours() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LINE], stderr=subprocess.PIPE, env={"TERM": "xterm"}, cwd=PROJECT, check=True, timeout=60
    )
    assert run.stderr.endswith(b" WARNING server full used=3\n")
