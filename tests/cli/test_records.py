"""`produce` reads the records that `tail` prints back to the same bytes."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import namedtuple

import pytest

from pykafkad.cli import client, produce, tail
from pykafkad.cli.output import Failure

Received = namedtuple("Received", ("topic", "partition", "offset", "timestamp", "key", "value", "headers"))


def _records(monkeypatch: pytest.MonkeyPatch, data: bytes, *arguments: str) -> list[dict]:
    parser = argparse.ArgumentParser()
    produce.add_arguments(parser)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return list(produce._records(parser.parse_args(["t", *arguments])))


def test_each_line_is_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty lines are records too. Bytes stay unchanged."""
    records = _records(monkeypatch, b"a\n\n\xff\nlast", "--key", "k", "--header", "h=1")
    assert [record["value"] for record in records] == [b"a", b"", b"\xff", b"last"]
    assert {record["key"] for record in records} == {b"k"}
    assert records[0]["headers"] == [("h", b"1")]


def test_a_separator_splits_key_and_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first separator of a line counts. A line without one is an error with its number."""
    (record,) = _records(monkeypatch, b"k\tv\tw\n", "--key-separator", "\\t")
    assert (record["key"], record["value"]) == (b"k", b"v\tw")
    with pytest.raises(Failure, match="line 2 has no separator ':'"):
        _records(monkeypatch, b"k:v\nno\n", "--key-separator", ":")


@pytest.mark.parametrize(
    "line",
    [
        b"nothing",
        b"[1]",
        b'{"value": {"hex": "zz"}}',
        b'{"headers": [["a"]]}',
        b'{"value": "v", "timestamp_ms": "soon"}',
        b'{"value": "v", "timestamp_ms": -1}',
        b'{"value": "v", "timestamp_ms": true}',
        b'{"headers": {"a": null}}',
    ],
)
def test_bad_json_names_the_line(monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    """A line that is not a JSON record is an error with its number."""
    with pytest.raises(Failure, match="line 1 is not a JSON record"):
        _records(monkeypatch, line, "--json")


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ('"text"', b"text"),
        ("5", b"5"),
        ("[1, null]", b"[1,null]"),
        ('{"x": "\u00e9"}', '{"x":"\u00e9"}'.encode()),
        ('{"hex": "ff"}', b"\xff"),
        ('{"hex": "ff", "x": 1}', b'{"hex":"ff","x":1}'),
        ("false", b"false"),
        ("null", None),
    ],
)
def test_what_is_not_text_is_written_as_json(monkeypatch: pytest.MonkeyPatch, value: str, data: bytes | None) -> None:
    """Keys and values may be anything that JSON has; headers may be an object."""
    line = f'{{"key": {value}, "value": {value}, "headers": {{"h": "x", "i": 1}}}}'
    (record,) = _records(monkeypatch, line.encode(), "--json")
    assert (record["key"], record["value"], record["headers"]) == (data, data, [("h", b"x"), ("i", b"1")])


@pytest.mark.parametrize(
    ("words", "topic", "start"),
    [
        (["t"], "t", "end"),
        (["t", "-10"], "t", "-10"),
        (["-10", "t"], "t", "-10"),
        (["t", "--from", "-10"], "t", "-10"),
        (["t", "--since", "2h"], "t", "2026-11-23T10:00:00+00:00"),
    ],
)
def test_where_tail_begins(monkeypatch: pytest.MonkeyPatch, words: list[str], topic: str, start: str) -> None:
    """`-N` may stand in front of the topic, as with Unix's tail, or behind it."""
    import datetime

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime(2026, 11, 23, 12, tzinfo=tz)

    monkeypatch.setattr(datetime, "datetime", Clock)
    parser = argparse.ArgumentParser()
    tail.add_arguments(parser)
    assert tail._topic_and_start(parser.parse_intermixed_args(words)) == (topic, start)


def test_produce_reads_what_tail_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Key, value, headers and timestamp stay the same, including nulls and bytes that are not text."""
    received = Received("t", 1, 5, 1234, b"\xff\x00", None, [("h", b"\xfe"), ("é", "ü".encode())])
    tail._print(received, as_json=True)
    line = capsys.readouterr().out.encode()
    (record,) = _records(monkeypatch, line, "--json")
    assert record == {
        "key": b"\xff\x00",
        "value": None,
        "headers": [("h", b"\xfe"), ("é", "ü".encode())],
        "partition": None,
        "timestamp_ms": 1234,
    }


def test_a_null_header_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka allows headers with a null value, but kafka-python does not send them."""
    with pytest.raises(Failure, match="line 1 is not .*a header is null, which kafka-python does not send"):
        _records(monkeypatch, b'{"value": "v", "headers": [["n", null]]}', "--json")


def test_tail_prints_a_line_for_each_record(capsys: pytest.CaptureFixture[str]) -> None:
    """The line has position, time, key, value and headers.

    Their bytes cannot break the line or control the terminal.
    """
    tail._print(Received("t", 1, 5, 1_795_262_847_123, None, b"a\tb\nc\\", [("h", b"1")]), as_json=False)
    assert capsys.readouterr().out == "t-1@5\t2026-11-21T12:07:27.123Z\tnull\ta\\tb\\nc\\\\\th=1\n"
    tail._print(Received("t", 1, 5, -1, b"\x1b[2J", b"", []), as_json=False)
    assert capsys.readouterr().out == "t-1@5\t-\t0x1b5b324a\t\n"


def test_tail_json_prints_all_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """All fields are on one line."""
    tail._print(Received("t", 1, 5, 7, b"k", b"v\n", []), as_json=True)
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert json.loads(text)["value"] == "v\n"


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("1970-01-01T00:00:01+00:00", 1000), ("1970-01-02T00:00:00Z", 86_400_000)]
)
def test_a_time_may_have_a_zone(text: str, milliseconds: int) -> None:
    """Times are ISO 8601 with a zone."""
    assert client.time_ms(text, "no time") == milliseconds


@pytest.mark.parametrize("text", ["yesterday", "0001-01-01T00:00:00"])
def test_an_invalid_time_is_wrong_usage(text: str) -> None:
    """What is no time, or lies where no record can, gets the caller's sentence."""
    with pytest.raises(Failure, match="no time"):
        client.time_ms(text, "no time")


class Admin:
    """Answers with errors first, and then with the offset 7 of everything."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def list_partition_offsets(self, asked: dict) -> dict:
        if self.errors:
            raise self.errors.pop(0)
        return {each: argparse.Namespace(offset=7) for each in asked}


# kafka-python reads its schemas by a function that is deprecated.
@pytest.mark.filterwarnings("ignore:.*is deprecated. Use files:DeprecationWarning")
def test_a_leader_that_does_not_know_the_end_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon after an election as a follower has fetched it knows. Other errors are final, and so is that after a
    while."""
    from kafka import TopicPartition
    from kafka.errors import NotLeaderForPartitionError, OffsetNotAvailableError

    monkeypatch.setattr(client, "RETRY_DELAY_S", 0)
    partition = TopicPartition("t", 0)
    assert client.watermarks(Admin(OffsetNotAvailableError(), OffsetNotAvailableError()), [partition]) == {
        partition: (7, 7)
    }
    for errors in ([NotLeaderForPartitionError()], [OffsetNotAvailableError()] * client.RETRIES):
        with pytest.raises(type(errors[0])):
            client.watermarks(Admin(*errors), [partition])
