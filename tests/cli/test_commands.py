"""Finding the command, help, exit codes, errors as sentences."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pykafkad import __version__
from pykafkad.__main__ import main
from pykafkad.cli import commands, topics
from pykafkad.cli.output import Failure, print_table, readable


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` goes to standard output and is no error; no command at all is one."""
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name}" in text for name in commands.COMMANDS)
    assert main([]) == 2
    assert capsys.readouterr().out == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version of the package."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pykafkad {__version__}\n"


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """2, and the overview."""
    assert main(["brew"]) == 2
    assert "no command 'brew'" in capsys.readouterr().err


@pytest.mark.parametrize("command", commands.COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`pykafkad COMMAND --help` prints and succeeds; an unknown option is wrong usage."""
    assert main([command, "--help"]) == 0
    assert f"usage: pykafkad {command}" in capsys.readouterr().out
    assert main([command, "--no-such-option"]) == 2


def test_failures_are_sentences_with_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A failure's text goes to standard error, its code to the shell; Ctrl-C is quiet."""

    def fail(options: object) -> int:
        raise Failure("the thing is not there", 1)

    monkeypatch.setattr(topics, "run", fail)
    assert main(["topics", "list"]) == 1
    assert capsys.readouterr().err == "pykafkad: the thing is not there\n"

    def interrupt(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(topics, "run", interrupt)
    assert main(["topics", "list"]) == 130


def test_a_closed_pipe_is_no_error() -> None:
    """`pykafkad describe-config | head -1`: the reader has what it wanted."""
    command = [sys.executable, "-m", "pykafkad", "describe-config"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(10) == 0


def test_tables_in_a_pipe_are_tab_separated(capsys: pytest.CaptureFixture[str]) -> None:
    """One header line, empty cells for None, tabs and line ends escaped; nothing at all for no rows."""
    print_table(("a", "b"), [(1, None), ("x\ty", "p\nq\\")])
    assert capsys.readouterr().out == "a\tb\n1\t\nx\\ty\tp\\nq\\\\\n"
    print_table(("a", "b"), [])
    assert capsys.readouterr().out == ""


def test_tables_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line."""
    print_table(("a", "b"), [(1, None), ("é", 2)], as_json=True)
    assert capsys.readouterr().out == '{"a": 1, "b": null}\n{"a": "é", "b": 2}\n'


def test_tables_at_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """rich draws them; brackets in a name are no markup."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table(("topic", "partitions"), [("[bold]x", 3)])
    assert "[bold]x" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "text"),
    [(None, None), (b"", ""), (b"abc", "abc"), ("é\t".encode(), "é\t"), (b"\xff\x00", "0xff00"), (b"\x1b[2J", "0x1b5b324a")],
)
def test_bytes_for_people(data: bytes | None, text: str | None) -> None:
    """What is text is shown as text; what could drive a terminal is shown as hex."""
    assert readable(data) == text
