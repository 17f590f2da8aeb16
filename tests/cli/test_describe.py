"""`pykafkad describe-apis` and `describe-config` print the tables that the broker reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafkad.__main__ import main
from pykafkad.handlers.table import OFFERED, ROWS, every_row


def test_apis_offered(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each offered API, with --all for every API of Kafka 4.3.1."""
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
        "Vote": ("controller", "-", "0-2"),
        "EndTxn": ("refused", "0-5", "0-5"),
    }
    assert {
        line["name"]: (line["state"], line["versions"], line["kafka_versions"])
        for line in lines
        if line["name"] in wanted
    } == wanted


def test_codec_source(capsys: pytest.CaptureFixture[str]) -> None:
    """The functions that decode and encode request and response, as they were compiled."""
    assert main(["describe-apis", "--source", "fetch", "12"]) == 0
    text = capsys.readouterr().out
    assert text.count("def decode(buffer, position):") == 2
    assert text.count("def encode(m0, chunks):") == 2


def test_codec_of_what_is_not_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """What controllers send each other has a codec; a key without versions has none."""
    assert main(["describe-apis", "--source", "vote", "2"]) == 0
    assert "def decode(buffer, position):" in capsys.readouterr().out
    assert main(["describe-apis", "--source", "LeaderAndIsr", "0"]) == 1
    assert "LeaderAndIsr has no schema here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [("Fetsch", "1", "no API Fetsch"), ("Fetch", "99", "has versions"), ("Fetch", "x", "has versions")],
)
def test_no_such_codec(name: str, version: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage, and what there is."""
    assert main(["describe-apis", "--source", name, version]) == 2
    assert words in capsys.readouterr().err


def test_settings_by_word(capsys: pytest.CaptureFixture[str]) -> None:
    """All words must be in name or help; nothing found is a failure."""
    assert main(["describe-config", "retention", "minutes", "--json", "--scope", "broker"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"log.retention.minutes", "offsets.retention.minutes"} <= {row["name"] for row in found}
    assert all(row["scope"] == "broker" for row in found)
    assert main(["describe-config", "nosuchword"]) == 1


def test_settings_that_act(capsys: pytest.CaptureFixture[str]) -> None:
    """--effect leaves out what this version does not read; deviating defaults name Kafka's."""
    assert main(["describe-config", "--effect", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["effect"] for row in rows} == {"yes"}
    directory = next(row for row in rows if row["name"] == "log.dir")
    assert directory["default"] == "pykafkad-data (Kafka: /tmp/kafka-logs)"
    assert all("internal" not in row["name"] for row in rows)


def test_tables_go_between_their_markers(tmp_path: Path) -> None:
    """`--into` renews one table of a document and touches nothing else; without markers it is a failure."""
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


def test_settings_of_our_own_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """DescribeConfigs answers Kafka's names alone, so here is the place where users find ours; Kafka's internal ones
    stay hidden."""
    assert main(["describe-config", "--json"]) == 0
    names = {json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()}
    assert "pykafkad.client.telemetry.enable" in names and "internal.segment.bytes" not in names
