"""The wire trace of a broker for tests: what is in it, in which forms, and that off means as before."""

from __future__ import annotations

import json

import pytest

from pykafkad.server import trace
from pykafkad.server.exchanges import kept_bytes
from pykafkad.server.trace import WireTrace
from pykafkad.server.trace_formats import MOST_ITEMS, error_names
from pykafkad.testing import Broker
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import messages
from tests.testing.test_faults import fetch, produce


@pytest.fixture
def client(broker):
    """A client that is traced."""
    host, port = broker.bootstrap.split(":")
    connected = WireClient(host, int(port), client_id="app")
    yield connected
    connected.close()


@pytest.fixture
def traced(broker):
    """A trace from the test's beginning to its end."""
    with broker.trace() as running:
        running.clear()
        yield running


def asked(running):
    return [(each["api"], each["client_id"], each["errors"]) for each in running.requests()]


def test_requests_and_answers_have_their_fields(broker, client, traced):
    assert produce(client, [0, 1]) == {0: 0, 1: 0}
    assert fetch(client).responses[0].partitions[0].error_code == 0
    first, second = traced.requests()
    assert (first["api"], first["version"], first["client_id"], first["is_answered"]) == ("Produce", 9, "app", True)
    assert first["peer"] == second["peer"] and first["connection"] == second["connection"]
    assert second["correlation_id"] == first["correlation_id"] + 1
    assert 0 <= first["duration_ms"] < 60_000 and first["errors"] == []
    (topic,) = first["request"]["topic_data"]
    assert topic["name"] == "orders" and [each["index"] for each in topic["partition_data"]] == [0, 1]
    (answered,) = first["answer"]["responses"]
    assert [each["error_code"] for each in answered["partition_responses"]] == [0, 0]
    assert second["answer"]["responses"][0]["partitions"][0]["records"].endswith(" bytes")


def test_small_requests_keep_their_fast_paths(broker, client, traced, monkeypatch):
    """The dispatcher tells a trace of its answers; those of fast paths are recorded beside it."""
    for _ in range(3):
        produce(client, [0])
        fetch(client)
    told = []
    monkeypatch.setattr(WireTrace, "answered", lambda self, connection, context, chunks: told.append(context))
    produce(client, [0])
    fetch(client)
    assert told == [] and [each["api"] for each in traced.requests()[-2:]] == ["Produce", "Fetch"]
    assert all(each["is_answered"] for each in traced.requests())


def test_the_test_itself_is_not_in_it(broker, traced):
    broker.produce("orders", "one")
    broker.records("orders")
    assert traced.requests() == []


def test_errors_and_requests_that_are_never_answered_show(broker, client, traced):
    broker.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER")
    produce(client, [0])
    produce(client, [0])
    broker.faults.close_before("Fetch")
    with pytest.raises(OSError):
        fetch(client)
    assert asked(traced) == [
        ("Produce", "app", ["NOT_LEADER_OR_FOLLOWER"]),
        ("Produce", "app", []),
        ("Fetch", "app", []),
    ]
    last = traced.requests()[-1]
    assert (last["is_answered"], last["duration_ms"], last["answer"]) == (False, None, None)
    lines = traced.text().splitlines()
    assert (
        "app" in lines[0] and lines[0].endswith(" ms, NOT_LEADER_OR_FOLLOWER") and "Produce v9 #1: orders" in lines[0]
    )
    assert lines[2].endswith("Fetch v12 #3: orders, no answer")


def test_faults_come_and_go_under_a_trace_and_a_trace_under_faults(broker, client):
    inside = broker._running._broker
    usual = inside.socket_server.serve, inside.sessions.fast_paths
    with broker.trace() as running:
        running.clear()
        with broker.faults.answer("ListGroups", 15):
            assert client.ask("ListGroups").error_code == 15
        assert client.ask("ListGroups").error_code == 0
        assert produce(client, [0]) == {0: 0}
        assert [each["errors"] for each in running.requests()] == [["COORDINATOR_NOT_AVAILABLE"], [], []]
    assert (inside.socket_server.serve, inside.sessions.fast_paths) == usual
    with broker.faults.answer("ListGroups", 15, times=2):
        with broker.trace() as running:
            running.clear()
            assert client.ask("ListGroups").error_code == 15
            assert produce(client, [0]) == {0: 0}
            assert len(running.requests()) == 2
        assert client.ask("ListGroups").error_code == 15
    assert client.ask("ListGroups").error_code == 0
    assert (inside.socket_server.serve, inside.sessions.fast_paths) == usual
    assert all(each.session.fast_paths is usual[1] for each in inside.socket_server.connections())


def test_off_means_as_before(broker, client):
    """Connections have their own fast paths again, and nothing is recorded."""
    inside = broker._running._broker
    usual = inside.socket_server.serve, inside.sessions.fast_paths
    produce(client, [0])
    running = broker.trace()
    running.clear()
    produce(client, [0])
    running.stop()
    produce(client, [0])
    assert len(running.requests()) == 1 and inside.runtime.trace is None
    assert (inside.socket_server.serve, inside.sessions.fast_paths) == usual
    assert {each.serve for each in inside.socket_server.connections()} == {usual[0]}


def test_it_goes_on_over_a_restart():
    with Broker(topics=["t"]) as own:
        running = own.trace()
        for _ in range(2):
            host, port = own.bootstrap.split(":")
            client = WireClient(host, int(port), client_id="app")
            client.ask("ListGroups")
            client.close()
            own.restart()
        assert asked(running) == [("ListGroups", "app", [])] * 2


def test_a_broker_in_a_process_of_its_own_is_traced_as_well(tmp_path):
    with Broker(topics={"orders": 3}, own_process=True) as own:
        running = own.trace()
        host, port = own.bootstrap.split(":")
        client = WireClient(host, int(port), client_id="app")
        produce(client, [0])
        client.close()
        assert asked(running) == [("Produce", "app", [])]
        running.write(tmp_path / "t.pcap")
        running.clear()
        assert running.requests() == []
        running.stop()
    assert (tmp_path / "t.pcap").stat().st_size > 200


def test_it_is_written_in_the_format_that_the_name_tells(tmp_path, broker, client, traced):
    produce(client, [0])
    for name in ("t.txt", "t.jsonl", "t.pcap"):
        traced.write(tmp_path / name)
    assert (tmp_path / "t.txt").read_text() == traced.text()
    (line,) = (tmp_path / "t.jsonl").read_text().splitlines()
    assert json.loads(line) == traced.requests()[0]
    with pytest.raises(ValueError, match=r"t\.log: the name of a trace ends with one of \.pcap, \.jsonl, \.txt"):
        traced.write(tmp_path / "t.log")


def test_the_report_has_the_last_requests(broker, client):
    assert "last requests" not in broker.report()
    with broker.trace() as running:
        running.clear()
        assert broker.report().endswith("\nno requests were traced")
        produce(client, [0])
        assert broker.report().splitlines()[-2:] == ["last requests:", running.text().strip()]
    assert "last requests" not in broker.report()


def test_the_ring_has_limits(broker, client, traced, monkeypatch):
    monkeypatch.setattr(trace, "EXCHANGES", 5)
    for _ in range(8):
        client.ask("ListGroups")
    numbers = [each["correlation_id"] for each in traced.requests()]
    assert len(numbers) == 5 and numbers == sorted(numbers)
    kept = broker._running._trace
    monkeypatch.setattr(trace, "RING_BYTES", 200)
    produce(client, [0, 1, 2])
    produce(client, [0, 1, 2])
    assert len(traced.requests()) == 1
    assert kept._ring_bytes == sum(map(kept_bytes, kept._ring))
    assert kept.dropped == 9


def test_of_a_large_frame_its_beginning_is_kept(broker, client, traced, monkeypatch):
    monkeypatch.setattr(broker._running._trace, "frame_bytes", 60)
    produce(client, [0, 1, 2])
    fetch(client)
    first, second = traced.requests()
    assert (first["request"], first["client_id"]) == (None, "app") and first["request_bytes"] > 60
    assert second["answer"] is None and second["answer_bytes"] > 60 and second["is_answered"]
    traced.text()


def test_error_names_are_those_of_all_rows():
    answer = messages.ProduceResponse
    rows = [answer.PartitionProduceResponse(index=each, error_code=each) for each in (0, 6, 6, 3)]
    message = answer(responses=[answer.TopicProduceResponse(name="t", partition_responses=rows)])
    assert error_names(message) == ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert error_names(None) == []


def test_a_long_list_is_shown_in_part(broker, client, traced):
    client.ask("DescribeGroups", groups=[f"g{number}" for number in range(MOST_ITEMS + 7)])
    (row,) = traced.requests()
    assert row["request"]["groups"][-1] == "and 7 more" and len(row["request"]["groups"]) == MOST_ITEMS + 1
