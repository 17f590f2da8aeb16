"""Recordings: written by a test's trace and by the command, replayed against a broker, refused where they are none."""

from __future__ import annotations

import json
import sys

import pytest

from pykafkad import __version__
from pykafkad.__main__ import main
from pykafkad.differential import links, recording
from pykafkad.differential.comparison import Comparison
from pykafkad.differential.recording import BadRecording, Event
from pykafkad.differential.replay import Replay
from pykafkad.testing import Broker
from pykafkad.testing.wire_client import WireClient
from tests.testing.test_faults import fetch, produce


@pytest.fixture
def recorded(tmp_path):
    """A recording of some requests, and the broker that was asked."""
    path = tmp_path / "run.recording"
    with Broker(topics={"orders": 3}) as broker:
        with broker.trace() as trace:
            trace.clear()
            client = WireClient(*links.address(broker.bootstrap), client_id="app")
            produce(client, [0, 1])
            fetch(client)
            client.ask("ListGroups")
            client.close()
            trace.write(path)
        yield path, broker


def replay(path, broker, *more):
    return main(["replay", str(path), "--bootstrap-server", broker.bootstrap, *more])


def test_a_broker_that_does_the_same(recorded, capsys):
    """Its topic has another id, and other clients have been there before."""
    with Broker(topics={"orders": 3}) as other:
        assert replay(recorded[0], other) == 0
        assert capsys.readouterr().out == "0 of 3 answers differ\n"
        assert [each.value for each in other.records("orders")] == [b"new", b"new"]


def test_a_broker_that_does_not(recorded, capsys):
    path, broker = recorded
    # The records are at other offsets now.
    assert replay(path, broker) == 1
    text = capsys.readouterr().out
    assert (
        "request 1: Produce v9 of client 'app': responses.orders.partition_responses.0.base_offset: recorded 0, now 1"
        in text
    )
    assert text.endswith("1 of 3 answers differ\n")
    assert replay(path, broker, "--json") == 1
    (found,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found["api"] == "Produce" and {each["now"] for each in found["differences"]} == {2}


def test_a_broker_that_closes_the_connection(recorded, capsys):
    """The replay goes on with a new one."""
    with Broker(topics={"orders": 3}) as other:
        other.faults.close_before("Fetch")
        assert replay(recorded[0], other) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "request 2: Fetch v12 of client 'app': answer: recorded 'answered', now 'closed the connection'",
        "1 of 3 answers differ",
    ]


@pytest.mark.long
def test_the_command_records_any_broker(tmp_path, capsys):
    path = tmp_path / "run.recording"
    program = (
        "import os\n"
        "from pykafkad.differential import links\n"
        "from pykafkad.testing.wire_client import WireClient\n"
        "client = WireClient(*links.address(os.environ['PYKAFKAD_BOOTSTRAP']), client_id='app')\n"
        "port = os.environ['PYKAFKAD_BOOTSTRAP'].split(':')[1]\n"
        "assert client.ask('Metadata', topics=[]).brokers[0].port == int(port)\n"
        "client.ask('ListGroups')\n"
        "client.close()\n"
    )
    with Broker() as broker:
        words = ["record", str(path), "--from", broker.bootstrap, "--", sys.executable, "-c", program]
        assert main(words) == 0
        assert main(words) == 2
        assert capsys.readouterr().err == f"pykafkad: {path}: exists\n"
        assert json.loads(path.read_text().splitlines()[0]) == {"recording": 1, "by": f"pykafkad {__version__}"}
    with Broker() as other:
        assert replay(path, other) == 0
    assert capsys.readouterr().out == "0 of 2 answers differ\n"
    where = other.bootstrap
    assert main(["replay", str(path), "-b", where]) == 1
    assert main(["record", str(tmp_path / "x"), "--from", where]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"pykafkad: {where}: no broker is there: Connection refused"
    assert told[1] == f"pykafkad: --from {where}: no broker is there: Connection refused"


def test_answers_keep_the_order_of_the_trace(recorded):
    events = list(recording.read("r", recorded[0].read_text().splitlines()))
    assert [each.is_request for each in events] == [True, False] * 3 and len({each.connection for each in events}) == 1
    assert recording.line(events[1]) == recorded[0].read_text().splitlines(keepends=True)[2]


def test_a_trace_that_is_not_whole_is_no_recording(tmp_path):
    with Broker(topics={"orders": 3}) as broker, broker.trace(frame_bytes=20) as trace:
        client = WireClient(*links.address(broker.bootstrap), client_id="app")
        produce(client, [0])
        client.close()
        with pytest.raises(ValueError, match=r"the trace has only a part of a request of \d+ bytes; keep more of each"):
            trace.write(tmp_path / "x.recording")
    assert not (tmp_path / "x.recording").exists()


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], "r is empty; a recording begins with a line that names its format"),
        (["abc"], "r: line 1 is no JSON; `pykafkad record` writes recordings"),
        (['{"api": "Fetch"}'], "r: line 1 names no format: this is no recording (a trace of .jsonl is for people and"),
        (["[]"], "r: line 1 names no format"),
        (
            ['{"recording": 2, "by": "pykafkad 9.0"}'],
            f"names format 2 of pykafkad 9.0; this is pykafkad {__version__}, w",
        ),
        ([recording.head(), "{}"], "r: line 2 is neither a request nor an answer of a connection, such as"),
        ([recording.head(), '{"connection": 1, "request": null}'], "r: line 2 is neither"),
        ([recording.head(), '{"connection": "1", "request": "AA=="}'], "r: line 2 is neither"),
        ([recording.head(), '{"connection": 1, "answer": "A"}'], "r: line 2 is neither"),
        ([recording.head(), "7"], "r: line 2 is neither"),
    ],
)
def test_what_is_no_recording_is_refused(lines, text):
    with pytest.raises(BadRecording) as error:
        list(recording.read("r", lines))
    assert text in str(error.value)


def test_a_recording_has_so_many_connections(monkeypatch):
    monkeypatch.setattr(recording, "MOST_CONNECTIONS", 2)
    lines = [recording.line(Event(number, True, b"x")) for number in range(3)]
    with pytest.raises(BadRecording, match="r: line 4: more than 2 connections"):
        list(recording.read("r", [recording.head(), *lines]))


def test_the_command_names_the_file(tmp_path, capsys):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"api": "Fetch"}\n')
    assert main(["replay", str(path), "-b", "localhost:1"]) == 2
    assert capsys.readouterr().err.startswith(f"pykafkad: {path}: line 1 names no format")
    assert main(["replay", str(tmp_path / "none"), "-b", "localhost:1"]) == 1
    assert capsys.readouterr().err == f"pykafkad: {tmp_path / 'none'}: No such file or directory\n"


def test_frames_that_are_no_requests_are_replayed_as_they_are():
    """They get what they got: the connection is closed."""
    with Broker() as broker:
        run = Replay(links.address(broker.bootstrap))
        events = [Event(1, True, b"\xff" * 12), Event(1, False, None), Event(1, True, b"\xff" * 12)]
        assert list(run.run(events)) == [] and (run.requests, run.compared) == (2, 1)


@pytest.mark.parametrize("frame", [b"", b"\0\x12", b"\0\x12\0\0\0\0\0\7", b"\0\x12\0\0\0\0\0\7\0\5app"])
def test_requests_without_a_whole_header_are_replayed(frame):
    """A broker closes the connection on them; one that is said to have answered differs."""
    with Broker() as broker:
        run = Replay(links.address(broker.bootstrap))
        events = [Event(1, True, frame), Event(1, False, None), Event(1, True, frame), Event(1, False, b"\0\0\0\7")]
        (found,) = run.run(events)
    assert (run.requests, run.compared, found.number, found.client_id) == (2, 2, 2, "")
    assert [each[1:] for each in found.places] == [("answered", "closed the connection")]


def test_answers_to_requests_without_a_header_are_compared_by_bytes():
    comparison = Comparison()
    assert comparison.compare(b"\0", b"\0\0\0\1same", b"\0\0\0\2same") == []
    assert len(comparison.compare(b"\0", b"\0\0\0\1one", b"\0\0\0\1two")) == 1
