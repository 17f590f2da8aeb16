"""The command line finds the command, prints help, returns exit codes and prints errors as sentences."""

from __future__ import annotations

import importlib
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from pykafkad import __version__
from pykafkad.__main__ import main
from pykafkad.cli import client, commands, group_descriptions, produce, topics
from pykafkad.cli.output import Failure, print_table, readable


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` prints to standard output and succeeds. A missing command is wrong usage."""
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name}" in text for name in commands.COMMANDS)
    assert main([]) == 2
    assert capsys.readouterr().out == ""


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the package's version."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pykafkad {__version__}\n"


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, and the overview of the commands is printed."""
    assert main(["brew"]) == 2
    assert "unknown command 'brew'\n\npykafkad: a broker" in capsys.readouterr().err


def test_a_misspelt_command_is_told_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    """One that is close to a command names it, without the overview."""
    assert main(["topcis", "list"]) == 2
    assert capsys.readouterr().err == "pykafkad: unknown command 'topcis'; did you mean topics?\n"


ACTIONS = [
    ("storage", "ifno", "info"),
    ("cluster", "desribe", "describe"),
    ("topics", "lst", "list"),
    ("groups", "rest", "reset"),
    ("transactions", "find-hangin", "find-hanging"),
    ("acls", "remvoe", "remove"),
    ("snapshot", "resotre", "restore"),
]


def test_every_command_with_actions_is_tried() -> None:
    """None is left out of the next test."""
    has_actions = [
        name for name, path in commands.COMMANDS.items() if hasattr(importlib.import_module(path), "HAS_ACTIONS")
    ]
    assert [command for command, _, _ in ACTIONS] == has_actions


@pytest.mark.parametrize(("command", "word", "meant"), ACTIONS)
def test_a_misspelt_action_is_told_the_right_one(
    command: str, word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside all of those that there are; a word that is close to none of them has only these."""
    assert main([command, word]) == 2
    printed = capsys.readouterr().err
    assert f"invalid choice: '{word}' (choose from " in printed and printed.endswith(f"); did you mean {meant}?\n")
    assert main([command, "brew"]) == 2
    assert capsys.readouterr().err.endswith(")\n")


def test_a_misspelt_value_of_an_option_is_told_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the option has a few."""
    assert main(["produce", "t", "--compression", "gzp", "v"]) == 2
    assert capsys.readouterr().err.endswith("); did you mean gzip?\n")


@pytest.mark.parametrize("command", commands.COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`pykafkad COMMAND --help` succeeds. An unknown option is wrong usage."""
    assert main([command, "--help"]) == 0
    assert f"usage: pykafkad {command}" in capsys.readouterr().out
    assert main([command, "--no-such-option"]) == 2


def test_a_failure_prints_a_sentence_and_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text goes to standard error. Ctrl-C prints nothing."""

    def fail(options: object) -> int:
        raise Failure("the thing is not there", 1)

    monkeypatch.setattr(topics, "run", fail)
    assert main(["topics", "list"]) == 1
    assert capsys.readouterr().err == "pykafkad: the thing is not there\n"

    def interrupt(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(topics, "run", interrupt)
    assert main(["topics", "list"]) == 130


def test_a_closed_pipe_is_not_an_error() -> None:
    """`pykafkad describe-config | head -1` ends quietly when head closes the pipe."""
    command = [sys.executable, "-m", "pykafkad", "describe-config"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_full_disk_behind_standard_output_is_a_failure() -> None:
    """The exit code is 1, and there is no traceback."""
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "pykafkad", "describe-apis"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"pykafkad: output: No space left on device\n")


def test_options_may_stand_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """`produce TOPIC --key k VALUE VALUE` finds the values after the option."""
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
def test_options_of_an_action_may_stand_anywhere(
    monkeypatch: pytest.MonkeyPatch, words: list[str], bootstrap: str, as_json: bool, names: list[str]
) -> None:
    """Options may stand before the action, between its words and after them. The last value counts."""
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
        (["topics", "create", "a", "--partitions", "0"], "--partitions 0: must be 1 or more"),
        (["groups", "describe", "a", "b"], "unrecognized arguments: b"),
        (["transactions", "abort"], "name either an ID, or --topic, --partition and --start-offset"),
        (["transactions", "abort", "id", "--topic", "t"], "name either an ID"),
        (["transactions", "abort", "--topic", "t", "--partition", "0"], "name either an ID"),
        (["topics", "-b", "h:1"], "the following arguments are required: ACTION"),
        (["topics", "alter", "t"], "name what to change: --partitions, --config or --unset"),
        (["topics", "alter", "t", "--config", "x"], "--config x: must be NAME=VALUE"),
        (["topics", "delete-records", "t", "--before", "soon"], "--before soon: must be `end` or an offset"),
        (
            ["topics", "delete-records", "t", "--before", f"{2**63}"],
            f"--before {2**63}: must be `end` or an offset up to",
        ),
        (["topics", "delete-records", "t", "--before", "9" * 5000], "must be `end` or an offset up to"),
        (
            ["groups", "reset", "g", "--to", f"{2**63}"],
            f"--to {2**63}: must be start, end, an offset up to {2**63 - 1}",
        ),
        (["groups", "reset", "g", "--to", "9" * 5000], "must be start, end, an offset up to"),
        (["groups", "kick", "g"], "name the members to kick, or give --all"),
        (["groups", "kick", "g", "m", "--all"], "name the members to kick, or give --all"),
        (["tail", "a", "b"], "a b: must be one TOPIC, and -N for the last N records"),
        (["tail", "-3", "-4"], "-3 -4: must be one TOPIC, and -N for the last N records"),
        (["tail", "a", "-3", "--from", "start"], "-N, --from and --since each say where to begin: give one of them"),
        (["tail", "a", "--since", "5x"], "--since 5x: must be a whole number with s, m, h or d, such as 5m"),
        (["snapshot", "-b", "h:1", "keep", "x"], "invalid choice: 'keep'"),
    ],
)
def test_missing_and_extra_words_of_an_action_are_wrong_usage(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and the message says which word is missing or not expected."""
    assert main(words) == 2
    assert error in capsys.readouterr().err


def test_an_offset_is_one_that_a_partition_can_have() -> None:
    """Other words, and numbers that the protocol has no room for, are none."""
    assert client.offset(f"{2**63 - 1}") == 2**63 - 1 and client.offset("007") == 7
    for word in (f"{2**63}", "9" * 5000, "-1", "", "1.0", "٣"):
        assert client.offset(word) is None


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What every command of the test is connected to."""
    admin = SimpleNamespace()
    monkeypatch.setattr(client, "admin", lambda options: nullcontext(admin))
    return admin


@pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("words", [["--all"], ["m"]])
def test_members_of_no_group_can_not_leave(
    words: list[str], connected: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not the same as a group without members."""
    state = "Dead"
    monkeypatch.setattr(
        group_descriptions, "describe", lambda admin, name: SimpleNamespace(name=name, state=state, members=[])
    )
    assert main(["groups", "kick", "nosuch", *words, "-b", "h:1"]) == 1
    assert "there is no group nosuch at h:1; `pykafkad groups list` shows all" in capsys.readouterr().err
    state = "Empty"
    assert main(["groups", "kick", "such", "--all", "-b", "h:1"]) == 0


def test_the_status_names_brokers_as_commands_take_them(
    connected: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    """An IPv6 address stands in brackets."""
    brokers = [{"broker_id": 1, "host": "::1", "port": 9092}, {"broker_id": 2, "host": "h", "port": 1}]
    connected.describe_cluster = lambda: {"cluster_id": "c", "brokers": brokers}
    connected.describe_topics = connected.list_groups = list
    assert main(["status"]) == 0
    assert "brokers: 1 at [::1]:9092, 2 at h:1\n" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["localhost:9092", "localhost", "[::1]:9092", "[::1]", "a:1,b:2"])
def test_valid_bootstrap_addresses(text: str) -> None:
    """A bootstrap address is a host with or without a port; commas separate several."""
    assert client.bootstrap(text) == text


@pytest.mark.parametrize(
    "text", ["", "host:port", "host:", ":9092", "host:0", "host:70000", "::1:9092", "a:1,", "host:\u0663"]
)
def test_an_invalid_bootstrap_address_is_wrong_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what is allowed. No broker is asked."""
    assert main(["topics", "list", "--bootstrap", text]) == 2
    assert "is neither HOST:PORT nor [IPV6]:PORT with a port from 1 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "x"])
def test_a_number_of_records_must_be_above_zero(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without this check, `--max 0` would print forever."""
    assert main(["tail", "t", "--max", text]) == 2
    assert "is not a whole number above 0" in capsys.readouterr().err


# kafka-python reads its schemas with a function that Python 3.11 deprecates.
@pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning")
def test_errors_have_kafkas_names() -> None:
    """An error has Kafka's name, also where kafka-python only gives a class name."""
    assert client.error_name("NonEmptyGroupError") == "NON_EMPTY_GROUP"
    assert client.error_name("NoSuchError") == "NoSuchError"


def test_lists_and_mappings_in_cells(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON keeps lists and mappings. Other formats join their items with commas."""
    print_table(("ids", "settings"), [([1, 2], {"a": "1", "b": "2"})])
    print_table(("ids", "settings"), [([1, 2], {"a": "1"})], as_json=True)
    assert capsys.readouterr().out == 'ids\tsettings\n1,2\ta=1,b=2\n{"ids": [1, 2], "settings": {"a": "1"}}\n'


def test_tables_in_a_pipe_are_tab_separated(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has one header line. None is an empty cell. Tabs and line ends are escaped. No rows print nothing."""
    print_table(("a", "b"), [(1, None), ("x\ty", "p\nq\\")])
    assert capsys.readouterr().out == "a\tb\n1\t\nx\\ty\tp\\nq\\\\\n"
    print_table(("a", "b"), [])
    assert capsys.readouterr().out == ""


def test_json_tables_have_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Each row is a JSON object on its own line."""
    print_table(("a", "b"), [(1, None), ("é", 2)], as_json=True)
    assert capsys.readouterr().out == '{"a": 1, "b": null}\n{"a": "é", "b": 2}\n'


def test_tables_at_a_terminal_are_drawn_by_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brackets in a name are not interpreted as markup."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table(("topic", "partitions"), [("[bold]x", 3)])
    assert "[bold]x" in capsys.readouterr().out


def test_a_table_of_many_columns_fits_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`topics describe` fits into 80 columns without cutting names."""
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


def test_only_a_terminal_is_told_that_there_are_no_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal gets a sentence on standard error. A pipe gets nothing."""
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
def test_bytes_are_text_or_hex(data: bytes | None, text: str | None) -> None:
    """Printable text is shown as text. Bytes that could control a terminal are shown as hex."""
    assert readable(data) == text
