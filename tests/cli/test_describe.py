"""`pykafkad describe-apis` and `describe-config` print the tables that the broker reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafkad.__main__ import main
from pykafkad.handlers.table import OFFERED, ROWS, every_row


def test_describe_apis_lists_the_offered_apis(capsys: pytest.CaptureFixture[str]) -> None:
    """Each offered API has a line. `--all` prints every API of Kafka 4.3.1."""
    assert main(["describe-apis", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == [row.name for row in ROWS if row.state == OFFERED]
    assert main(["describe-apis", "--json", "--all"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["key"], line["name"], line["state"]) for line in lines] == [
        (row.key, row.name, row.state) for row in every_row()
    ]
    assert len(lines) == 93
    wanted = {
        "LeaderAndIsr": ("removed", "-", "none"),
        "Vote": ("controller", "0-2", "0-2"),
        "EndTxn": ("offered", "0-5", "0-5"),
    }
    assert {
        line["name"]: (line["state"], line["versions"], line["kafka_versions"])
        for line in lines
        if line["name"] in wanted
    } == wanted


def test_source_prints_the_compiled_functions(capsys: pytest.CaptureFixture[str]) -> None:
    """`--source` prints the functions that decode and encode request and response."""
    assert main(["describe-apis", "--source", "fetch", "12"]) == 0
    text = capsys.readouterr().out
    assert text.count("def decode(buffer, position):") == 2
    assert text.count("def encode(m0, chunks):") == 2


def test_source_of_apis_that_are_not_served(capsys: pytest.CaptureFixture[str]) -> None:
    """An API between controllers has a codec. An API key without versions has none."""
    assert main(["describe-apis", "--source", "vote", "2"]) == 0
    assert "def decode(buffer, position):" in capsys.readouterr().out
    assert main(["describe-apis", "--source", "LeaderAndIsr", "0"]) == 1
    assert "LeaderAndIsr has no schema here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [("Fetsch", "1", "no API Fetsch"), ("Fetch", "99", "has versions"), ("Fetch", "x", "has versions")],
)
def test_source_of_an_unknown_api_or_version_is_wrong_usage(
    name: str, version: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the known APIs or versions."""
    assert main(["describe-apis", "--source", name, version]) == 2
    assert words in capsys.readouterr().err


def test_settings_are_selected_by_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A setting's name or help must have all words. Selecting no setting is a failure."""
    assert main(["describe-config", "retention", "minutes", "--json", "--scope", "broker"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"log.retention.minutes", "offsets.retention.minutes"} <= {row["name"] for row in found}
    assert all(row["scope"] == "broker" for row in found)
    assert main(["describe-config", "nosuchword"]) == 1


def test_effect_hides_settings_without_effect(capsys: pytest.CaptureFixture[str]) -> None:
    """A default that differs from Kafka's shows Kafka's beside it."""
    assert main(["describe-config", "--effect", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["effect"] for row in rows} == {"yes"}
    directory = next(row for row in rows if row["name"] == "log.dir")
    assert directory["default"] == "pykafkad-data (Kafka: /tmp/kafka-logs)"
    assert all("internal" not in row["name"] for row in rows)


def test_into_replaces_the_text_between_markers(tmp_path: Path) -> None:
    """`--into` changes nothing else in the document. Without markers it is a failure."""
    document = tmp_path / "R.md"
    document.write_text("a\n<!-- apis: begin -->\nstale line\n<!-- apis: end -->\nb\n")
    assert main(["describe-apis", "--markdown", "--into", str(document)]) == 0
    text = document.read_text()
    assert (
        text.startswith("a\n<!-- apis: begin -->\n| key | API |")
        and text.endswith("\n<!-- apis: end -->\nb\n")
        and "stale line" not in text
    )
    assert main(["describe-config", "--markdown", "--into", str(document)]) == 1


def test_pykafkads_own_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """DescribeConfigs answers only Kafka's settings, so users find pykafkad's own here. Kafka's internal ones stay
    hidden."""
    assert main(["describe-config", "--json"]) == 0
    names = {json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()}
    assert "pykafkad.client.telemetry.enable" in names and "internal.segment.bytes" not in names
