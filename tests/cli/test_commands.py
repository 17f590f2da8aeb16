"""Finding the command, help, exit codes, errors as sentences."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pykafkad import __version__
from pykafkad.__main__ import main
from pykafkad.cli import client, commands, produce, topics
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


def test_failures_are_sentences_with_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
        assert process.wait(60) == 0


def test_output_that_cannot_be_written_is_a_sentence() -> None:
    """A full disk behind standard output: exit code 1, and no traceback."""
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "pykafkad", "describe-apis"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"pykafkad: output: No space left on device\n")


def test_options_may_stand_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """`produce TOPIC --key k VALUE VALUE`: the values are found behind the option too."""
    seen = []
    monkeypatch.setattr(produce, "run", lambda options: seen.append((options.topic, options.key, options.values)) or 0)
    assert main(["produce", "t", "--key", "k", "v", "w"]) == 0
    assert seen == [("t", "k", ["v", "w"])]


@pytest.mark.parametrize(
    ("words", "bootstrap", "as_json", "names"),
    [
        (["create", "a:1", "b"], "localhost:9092", False, ["a:1", "b"]),
        (["--bootstrap", "h:1", "create", "a:1", "b"], "h:1", False, ["a:1", "b"]),
        (["--json", "-b", "h:1", "create", "a:1", "--config", "x=1", "b", "--json"], "h:1", True, ["a:1", "b"]),
        (["-b", "h:1", "create", "a:1", "-b", "h:2", "b"], "h:2", False, ["a:1", "b"]),
        (["create", "--config=x=1", "a:1", "--json"], "localhost:9092", True, ["a:1"]),
    ],
)
def test_options_may_stand_anywhere(
    monkeypatch: pytest.MonkeyPatch, words: list[str], bootstrap: str, as_json: bool, names: list[str]
) -> None:
    """Before the action, between its words and behind them; the last one counts."""
    seen = []
    monkeypatch.setattr(
        topics,
        "run",
        lambda options: seen.append((options.action, options.bootstrap, options.json, options.names)) or 0,
    )
    assert main(["topics", *words]) == 0
    assert seen == [("create", bootstrap, as_json, names)]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["topics", "create"], "the following arguments are required: NAME[:PARTITIONS]"),
        (["topics", "create", "a", "--no-such", "b"], "unrecognized arguments: --no-such"),
        (["groups", "describe", "a", "b"], "unrecognized arguments: b"),
        (["topics", "-b", "h:1"], "the following arguments are required: ACTION"),
        (["snapshot", "-b", "h:1", "keep", "x"], "invalid choice: 'keep'"),
    ],
)
def test_wrong_words_of_an_action(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and what is missing or too much."""
    assert main(words) == 2
    assert error in capsys.readouterr().err


@pytest.mark.parametrize("text", ["localhost:9092", "localhost", "[::1]:9092", "[::1]", "a:1,b:2"])
def test_bootstrap_addresses(text: str) -> None:
    """A host, with a port or without, and several of them."""
    assert client.bootstrap(text) == text


@pytest.mark.parametrize(
    "text", ["", "host:port", "host:", ":9092", "host:0", "host:70000", "::1:9092", "a:1,", "host:\u0663"]
)
def test_what_is_no_bootstrap_address(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage, said with what is allowed, before anything is asked."""
    assert main(["topics", "list", "--bootstrap", text]) == 2
    assert "is not HOST:PORT, nor [IPV6]:PORT, with a port from 1 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "x"])
def test_numbers_of_records(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--max 0` would print for ever."""
    assert main(["tail", "t", "--max", text]) == 2
    assert "is not a number from 1 on" in capsys.readouterr().err


# The library reads its schemas with what Python 3.11 calls outdated.
@pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning")
def test_names_of_errors() -> None:
    """As Kafka writes them, also where the library tells its class alone."""
    assert client.error_name("NonEmptyGroupError") == "NON_EMPTY_GROUP"
    assert client.error_name("NoSuchError") == "NoSuchError"


def test_cells_with_several_values(capsys: pytest.CaptureFixture[str]) -> None:
    """Lists and mappings are themselves in JSON and joined with commas elsewhere."""
    print_table(("ids", "settings"), [([1, 2], {"a": "1", "b": "2"})])
    print_table(("ids", "settings"), [([1, 2], {"a": "1"})], as_json=True)
    assert capsys.readouterr().out == 'ids\tsettings\n1,2\ta=1,b=2\n{"ids": [1, 2], "settings": {"a": "1"}}\n'


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


def test_a_table_of_many_columns_fits_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `topics describe` prints on 80 columns: no word of the names is cut."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    columns = (
        "topic",
        "partition",
        "leader",
        "leader_epoch",
        "replicas",
        "in_sync",
        "start_offset",
        "end_offset",
        "settings",
    )
    print_table(columns, [("orders", 0, 1, 0, [1], [1], 0, 1234567, {})])
    text = capsys.readouterr().out
    assert {word for column in columns for word in column.split("_")} <= set(text.split())


def test_no_rows_are_told_to_people_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """At a terminal a sentence on standard error; nothing in a pipe."""
    print_table(("topic", "partitions"), [])
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table(("topic", "partitions"), [])
    assert capsys.readouterr() == ("", "no topics\n")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, None),
        (b"", ""),
        (b"abc", "abc"),
        ("é\t".encode(), "é\t"),
        (b"\xff\x00", "0xff00"),
        (b"\x1b[2J", "0x1b5b324a"),
    ],
)
def test_bytes_for_people(data: bytes | None, text: str | None) -> None:
    """What is text is shown as text; what could drive a terminal is shown as hex."""
    assert readable(data) == text
