"""`produce` and `tail` as texts: what one prints the other reads back to the same bytes."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import namedtuple

import pytest

from pykafkad.cli import produce, tail
from pykafkad.cli.output import Failure

Received = namedtuple("Received", ("topic", "partition", "offset", "timestamp", "key", "value", "headers"))


def _records(monkeypatch: pytest.MonkeyPatch, data: bytes, *arguments: str) -> list[dict]:
    parser = argparse.ArgumentParser()
    produce.add_arguments(parser)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return list(produce._records(parser.parse_args(["t", *arguments])))


def test_lines_are_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """One record a line, empty lines too; bytes stay as they are."""
    records = _records(monkeypatch, b"a\n\n\xff\nlast", "--key", "k", "--header", "h=1")
    assert [record["value"] for record in records] == [b"a", b"", b"\xff", b"last"]
    assert {record["key"] for record in records} == {b"k"}
    assert records[0]["headers"] == [("h", b"1")]


def test_keys_before_a_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first separator counts; a line without one is an error that names it."""
    (record,) = _records(monkeypatch, b"k\tv\tw\n", "--key-separator", "\\t")
    assert (record["key"], record["value"]) == (b"k", b"v\tw")
    with pytest.raises(Failure, match="line 2: no separator ':'"):
        _records(monkeypatch, b"k:v\nno\n", "--key-separator", ":")


@pytest.mark.parametrize("line", [b"nothing", b"[1]", b'{"value": 5}', b'{"value": {"hex": "zz"}}', b'{"headers": [["a"]]}',
                                  b'{"value": {"x": 1}}', b'{"value": "v", "timestamp_ms": "soon"}', b'{"value": "v", "timestamp_ms": -1}',
                                  b'{"value": "v", "timestamp_ms": true}', b'{"headers": {"a": "b"}}'])  # fmt: skip
def test_bad_json_names_the_line(monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    """What is no record is said, with its line."""
    with pytest.raises(Failure, match="line 1: not a record as JSON"):
        _records(monkeypatch, line, "--json")


def test_what_tail_prints_produce_reads(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Key, value, headers and timestamp survive to the byte, nulls and bytes that are no text included."""
    received = Received("t", 1, 5, 1234, b"\xff\x00", None, [("h", b"\xfe"), ("é", "ü".encode())])
    tail._print(received, as_json=True)
    line = capsys.readouterr().out.encode()
    (record,) = _records(monkeypatch, line, "--json")
    assert record == {
        "key": b"\xff\x00", "value": None, "headers": [("h", b"\xfe"), ("é", "ü".encode())], "partition": None, "timestamp_ms": 1234,
    }  # fmt: skip


def test_a_null_header_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka has headers whose value is null; the client library does not send them."""
    with pytest.raises(Failure, match="line 1: .*a header is null, which kafka-python does not send"):
        _records(monkeypatch, b'{"value": "v", "headers": [["n", null]]}', "--json")


def test_tail_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Where it stands, when, key, value, headers; nothing in it can break the line or drive the terminal."""
    tail._print(Received("t", 1, 5, 1_795_262_847_123, None, b"a\tb\nc\\", [("h", b"1")]), as_json=False)
    assert capsys.readouterr().out == "t-1@5\t2026-11-21T12:07:27.123Z\tnull\ta\\tb\\nc\\\\\th=1\n"
    tail._print(Received("t", 1, 5, -1, b"\x1b[2J", b"", []), as_json=False)
    assert capsys.readouterr().out == "t-1@5\t-\t0x1b5b324a\t\n"


def test_tail_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    """All fields on one line."""
    tail._print(Received("t", 1, 5, 7, b"k", b"v\n", []), as_json=True)
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert json.loads(text)["value"] == "v\n"


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("1970-01-01T00:00:01+00:00", 1000), ("1970-01-02T00:00:00Z", 86_400_000)]
)
def test_times(text: str, milliseconds: int) -> None:
    """ISO 8601 with a zone."""
    assert tail._timestamp_ms(text) == milliseconds


def test_a_time_that_is_none() -> None:
    """The sentence lists all forms."""
    with pytest.raises(Failure, match="must be start, end, an offset, -N or a time"):
        tail._timestamp_ms("yesterday")
