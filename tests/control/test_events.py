"""What the page asks for: its files, the event stream, the timeline, one topic, settings, one traced request."""

from __future__ import annotations

import json
import re
import socket
import threading
from base64 import b64decode
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from pykafkad.control import events, page_calls, route
from pykafkad.testing import Broker, NewRecord
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import WireClient
from tests.architecture.source import PROJECT
from tests.control.http_client import Client

FOLDER = PROJECT / "pykafkad/control/page"


class Stream:
    """Events as they come."""

    def __init__(self, api, query):
        parts = urlsplit(api.url)
        self.connection = HTTPConnection(parts.hostname, parts.port, timeout=60)
        self.connection.request("GET", f"/events?{query}", headers={"Authorization": f"Bearer {api.token}"})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200 and self.answer.headers["Content-Type"] == "text/event-stream"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answer.close()
        self.connection.close()

    def next(self, name, is_it=lambda _: True):
        """The data of the next event of that name that is the one; those before it are passed over."""
        found = ""
        for line in self.answer:
            if line.startswith(b"event: "):
                found = line[7:].decode().strip()
            elif line.startswith(b"data: ") and found == name:
                data = json.loads(line[6:])
                if is_it(data):
                    return data
        raise AssertionError(f"the stream ended before {name}")


def test_the_page_and_its_files_need_no_token_and_run_nothing_else(broker):
    """The policy allows nothing but the page's own files, and nobody frames it."""
    stranger = Client(broker.control_url, None)
    page = stranger.get("/")
    assert page.status == 200 and page.type == "text/html; charset=utf-8"
    for path in ("/", *(f"/page/{name}" for name in page_calls.FILES)):
        answer = stranger.get(path)
        assert answer.status == 200 and answer.headers["content-security-policy"] == page_calls.POLICY
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page_calls.POLICY and "unsafe" not in page_calls.POLICY
    assert stranger.get("/page/none.js").status == 401 and stranger.get("/events").status == 401
    assert stranger.get("/page/..%2f__init__.py").status == 401


def test_every_file_is_served_and_none_asks_for_another_place():
    """Scripts in files alone, no address of another server, no markup that is made of texts."""
    assert {each.name for each in FOLDER.iterdir()} == {"index.html", *page_calls.FILES}
    for each in FOLDER.iterdir():
        text = each.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text), each
        assert each.suffix != ".html" or not re.search(r"<style|style=|onclick|<script(?! type=\"module\" src)", text)


@pytest.mark.long
def test_lists_are_told_whole_and_then_as_they_change(api, broker):
    """What is new, what is different, what is gone."""
    with Stream(api, "of=topics,counts") as stream:
        assert stream.next("state") == {"is_running": True, "bootstrap": broker.bootstrap}
        assert stream.next("counts")["topics"] == 1
        first = stream.next("topics")
        (orders,) = first["rows"]
        assert (orders["name"], orders["partitions"], orders["records"], orders["is_internal"]) == (
            "orders",
            3,
            2,
            False,
        )
        broker.create_topic("more", 2)
        changed = stream.next("topics")
        assert [each["name"] for each in changed["rows"]] == ["more"] and changed["gone"] == []
        broker.produce("more", "x")
        assert stream.next("topics")["rows"][0]["records"] == 1
        broker.delete_topic("more")
        assert stream.next("topics", lambda data: data["gone"])["gone"] == ["more"]


@pytest.mark.long
def test_a_tail_begins_with_the_last_records_and_goes_on(api, broker, monkeypatch):
    """Keys and values are bytes; of long ones the beginning. Of very many the last."""
    monkeypatch.setattr(events, "FIRST_RECORDS", 2)
    monkeypatch.setattr(events, "MOST_RECORDS", 3)
    broker.create_topic("one")
    broker.produce("one", *map(str, range(5)))
    with Stream(api, "topic=one&of=") as stream:
        assert stream.next("topic")["partitions"][0]["end_offset"] == 5
        first = stream.next("records")
        assert [b64decode(each["value"]) for each in first["records"]] == [b"3", b"4"] and first["left_out"] == 3
        broker.produce("one", NewRecord(b"\xff" * 5000, None, {"h": b"1"}))
        (record,) = stream.next("records")["records"]
        assert record["key"] is None and record["value_bytes"] == 5000 and len(b64decode(record["value"])) == 4096
        assert record["headers"] == [{"name": "h", "value": "MQ=="}] and record["offset"] == 5
        broker.produce("one", *map(str, range(10)))
        many = stream.next("records")
        assert [b64decode(each["value"]) for each in many["records"]] == [b"7", b"8", b"9"] and many["left_out"] == 7
        broker.delete_topic("one")
        assert stream.next("topic", lambda data: data is None) is None


def test_the_timeline_tells_what_happened(api, broker):
    """Topics, faults that fired and calls of the API, with the client's names."""
    before = max((each["number"] for each in api.get("/timeline").body["events"]), default=0)
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), client_id="app")
    api.post("/faults", kind="answer", apis=["ListGroups"], error="COORDINATOR_NOT_AVAILABLE")
    client.ask("ListGroups")
    client.close()
    api.post("/topics", name="new", partitions=2)
    found = api.get(f"/timeline?after={before}").body["events"]
    told = {each["event"]: each["fields"] for each in found}
    assert told["addFault"] == {
        "kind": "answer",
        "error": "COORDINATOR_NOT_AVAILABLE",
        "times": "1",
        "probability": "1.0",
        "seed": "0",
    }
    assert told["fault-fired"] == {"kind": "answer", "api": "ListGroups", "client_id": "app"}
    assert told["topic-created"] == {"topic": "new", "partitions": "2", "client": "pykafkad.testing"}
    assert told["createTopic"]["name"] == "new"
    numbers = [each["number"] for each in found]
    assert numbers == sorted(numbers) and numbers[0] > before
    with Stream(api, "of=timeline") as stream:
        assert stream.next("timeline")[-1]["number"] == numbers[-1]


def test_a_group_is_told_as_it_changes(api, broker):
    """With its offsets and lag; one that is not there is null."""
    with Stream(api, "of=groups&group=readers") as stream:
        assert stream.next("group") is None
        broker.commit("readers", {("orders", index): 0 for index in range(3)})
        found = stream.next("group")
        assert sum(each["records"] for each in found["lag"]) == 2 and found["state"] == "Empty"
    with Stream(api, "of=groups") as stream:
        (row,) = stream.next("groups")["rows"]
        assert row == {"name": "readers", "type": "classic", "state": "Empty", "members": 0, "lag": 2}


def test_traced_requests_are_told_once_and_decoded_one_by_one(api, broker):
    """With their numbers, which go on after a clear."""
    api.send("POST", "/trace/start")
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), client_id="traced")
    with Stream(api, "of=trace") as stream:
        assert stream.next("trace-state") == {"is_on": True}
        client.ask("ListGroups")
        (first,) = stream.next("trace")
        assert (first["api"], first["client_id"], first["is_answered"], first["errors"]) == (
            "ListGroups",
            "traced",
            True,
            [],
        )
        client.ask("Metadata", topics=None)
        (second,) = stream.next("trace")
        assert second["number"] == first["number"] + 1 and second["api"] == "Metadata"
    found = api.get(f"/trace/{second['number']}").body
    assert found["api"] == "Metadata" and found["answer"]["topics"][0]["name"] == "orders"
    api.delete("/trace")
    assert api.get(f"/trace/{second['number']}").status == 404
    client.ask("ListGroups")
    client.close()
    assert api.get(f"/trace/{second['number'] + 1}").body["api"] == "ListGroups"
    api.send("POST", "/trace/stop")


def test_connections_topics_and_settings(api, broker):
    """As they are, and what they are by default."""
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), client_id="who")
    client.ask("ListGroups")
    assert any(each["principal"] == "User:ANONYMOUS" for each in api.get("/connections").body["connections"])
    client.close()
    broker.create_topic("kept", 1, {"retention.ms": "1000"})
    found = api.get("/topics/kept").body
    assert found["settings"] == {"retention.ms": "1000"} and found["partitions"][0]["high_watermark"] == 0
    assert api.get("/topics/none").status == 404
    rows = {each["name"]: each for each in api.get("/topics/kept/config").body["settings"]}
    assert (rows["retention.ms"]["value"], rows["retention.ms"]["source"]) == ("1000", "topic")
    assert rows["cleanup.policy"]["source"] == "default"
    assert any(each["name"] == "log.retention.ms" for each in api.get("/config").body["settings"])
    assert api.get("/topics/none/config").error["kafka_error"] == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize(
    ("query", "what", "allowed"),
    [
        ("of=topic", "there is no part 'topic'; did you mean topics?", ", ".join(events.PARTS)),
        ("partition=1", "there is no topic whose partition that could be", "with a topic"),
        ("partition=x&topic=a", "'x' is no integer", "integer"),
    ],
)
def test_what_no_stream_tells_is_refused(api, query, what, allowed):
    """At once, with what is allowed."""
    answer = api.get(f"/events?{query}")
    assert answer.status == 400 and answer.error["what"] == what and answer.error["allowed"] == allowed


def test_a_partition_that_is_not_there_is_told_in_the_stream(api):
    """Others go on."""
    with Stream(api, "topic=orders&partition=7") as stream:
        assert stream.next("records-error") == "orders has the partitions 0 to 2, not 7"


@pytest.mark.long
def test_only_so_many_streams_at_a_time(api, broker):
    """One more is refused; when one has gone there is room again, and others are answered all the time."""
    until(lambda: broker._control.control.streams, lambda seen: seen == 0, "no streams", 60)
    streams = [Stream(api, "of=counts") for _ in range(route.MOST_STREAMS)]
    refused = api.get("/events")
    assert refused.status == 429 and refused.error["allowed"] == f"{route.MOST_STREAMS} at a time"
    assert api.get("/status").status == 200
    streams.pop().__exit__()
    until(lambda: broker._control.control.streams, lambda seen: seen < route.MOST_STREAMS, "room", 60)
    streams.append(Stream(api, "of=counts"))
    for each in streams:
        each.__exit__()


def test_streams_end_with_their_broker_and_leave_nothing():
    """Whether they are read or not; and they see a restart."""
    before = threading.active_count()
    with Broker(control=True) as own:
        api = Client(own.control_url, own.control_token)
        stream = Stream(api, "of=counts")
        stream.next("counts")
        own.restart()
        own.create_topic("later")
        assert stream.next("counts", lambda data: data["topics"] == 1)["connections"] >= 0
        parts = urlsplit(own.control_url)
        deaf = socket.create_connection((parts.hostname, parts.port), 60)
        deaf.sendall(f"GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.token}\r\n\r\n".encode())
        until(lambda: own._control.control.streams, lambda seen: seen == 2, "two streams", 60)
    stream.__exit__()
    deaf.close()
    assert own._control.control.streams == 0
    until(threading.active_count, lambda seen: seen <= before, "end of all threads", 60)


@pytest.mark.long
def test_a_broker_in_a_process_of_its_own_is_told_of_too():
    """Lists, timeline, topics and trace cross the pipe."""
    with Broker(own_process=True, control=True, topics=["orders"]) as own:
        api = Client(own.control_url, own.control_token)
        api.send("POST", "/trace/start")
        with Stream(api, "of=topics,groups,connections,timeline,trace&topic=orders") as stream:
            assert stream.next("topics")["rows"][0]["name"] == "orders"
            own.produce("orders", "x")
            found = stream.next("records", lambda data: data["records"])
            assert b64decode(found["records"][0]["value"]) == b"x"
        api.post("/topics", name="more")
        assert [each["event"] for each in api.get("/timeline").body["events"]][-1] == "createTopic"
