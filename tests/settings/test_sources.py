"""Property files, the environment, `--set` and their order of strength."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad import config
from pykafkad.errors import ConfigError
from pykafkad.settings import sources


def _parsed(text: str) -> dict[str, str]:
    return {name: value for name, value, _ in sources.parse_properties(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a: 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t=\t1", {"a": "1"}),
        ("# c\n! c\n\n  a=1", {"a": "1"}),
        ("a=1#2", {"a": "1#2"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n   2,\\\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a\\ b\\=c\\:d=1", {"a b=c:d": "1"}),
        ("a=\\u00e9\\t\\n\\q", {"a": "é\t\nq"}),
        ("a=1\na=2", {"a": "2"}),
        ("# no\\\na=1", {"a": "1"}),
        ("a=1\\", {"a": "1"}),
        ("a==1", {"a": "=1"}),
    ],
)
def test_property_files_are_parsed_as_in_java(text: str, expected: dict[str, str]) -> None:
    """The expected values are those of java.util.Properties."""
    assert _parsed(text) == expected


def test_a_continued_value_has_its_first_line_number() -> None:
    """Errors point at the line where the value begins."""
    assert sources.parse_properties("\n\na=1,\\\n 2\nb=3") == [("a", "1,2", 3), ("b", "3", 5)]


def test_a_bad_escape_is_an_error_with_its_line() -> None:
    """Java refuses such a file too. What is wrong is not repeated: it may be a part of a password."""
    with pytest.raises(ConfigError, match=r"properties:2: .*four hexadecimal digits$"):
        sources.parse_properties("a=1\nb=\\u12x4")


def test_encodings_and_errors_of_files(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are Latin-1. An unreadable or far too large file is a ConfigError."""
    path = tmp_path / "server.properties"
    path.write_bytes("a=é".encode())
    assert sources.from_file(str(path)) == {"a": ("é", f"{path}:1")}
    path.write_bytes(b"a=\xe9")
    assert sources.from_file(str(path)) == {"a": ("é", f"{path}:1")}
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        sources.from_file(str(tmp_path / "absent"))
    path.write_bytes(b"#" * (sources.FILE_SIZE_BYTES_MAX + 1))
    with pytest.raises(ConfigError, match="larger than"):
        sources.from_file(str(path))


def test_environment_variables() -> None:
    """A variable is a setting's name in capitals.

    A typing error is refused; variables of other programs are ignored.
    """
    found = sources.from_environment(
        {"PYKAFKAD_SOCKET_REQUEST_MAX_BYTES": "7", "PATH": "x", "PYKAFKAD_LOG_LEVEL": "debug"}
    )
    assert found == {"socket.request.max.bytes": ("7", "environment PYKAFKAD_SOCKET_REQUEST_MAX_BYTES")}
    with pytest.raises(ConfigError, match="PYKAFKAD_NUM_PARTITION is not a setting"):
        sources.from_environment({"PYKAFKAD_NUM_PARTITION": "1"})


@pytest.mark.parametrize("pair", ["num.partitions", "=1", " =1"])
def test_set_needs_a_name_and_an_equals_sign(pair: str) -> None:
    """The error of `--set` says what form it must have."""
    with pytest.raises(ConfigError, match="must be name=value"):
        sources.from_pairs([pair])


def test_the_stronger_source_wins(tmp_path: Path) -> None:
    """The command line overrides `--set`, which overrides the environment, which overrides the file."""
    path = tmp_path / "p"
    path.write_text("a=file\nnum.partitions=1\nlog.dirs=file\nbroker.rack=file")
    environment = {
        "PYKAFKAD_NUM_PARTITIONS": "2",
        "PYKAFKAD_LOG_DIRS": "environment",
        "PYKAFKAD_BROKER_RACK": "environment",
    }
    found = sources.gather(str(path), environment, ["num.partitions=3", "log.dirs=set"], {"log.dirs": "command"})
    expected = {"a": "file", "broker.rack": "environment", "num.partitions": "3", "log.dirs": "command"}
    assert {name: text for name, (text, _) in found.items()} == expected


def test_without_a_file_a_new_group_begins_at_once(tmp_path: Path) -> None:
    """A file keeps Kafka's defaults. Without a file the delay is 0 unless another source sets it."""
    name = "group.initial.rebalance.delay.ms"
    path = tmp_path / "p"
    path.write_text("num.partitions=1")
    for file, pairs, expected in (
        (None, [], 0),
        (str(path), [], 3000),
        (None, [f"{name}=7"], 7),
        (str(path), [f"{name}=0"], 0),
    ):
        settings = config.Settings.from_properties(sources.gather(file, {}, pairs, {}))
        assert settings.group_initial_rebalance_delay_ms == expected, (file, pairs)
    assert sources.gather(None, {"PYKAFKAD_GROUP_INITIAL_REBALANCE_DELAY_MS": "8"}, [], {})[name][0] == "8"
