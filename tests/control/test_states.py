"""Saved states, the clock, the trace and the report, by the control API."""

from __future__ import annotations

import json
import struct
import threading

import pytest

from pykafkad.server import trace_formats
from pykafkad.testing import Broker, Topic
from pykafkad.testing.wire_client import WireClient
from tests.control.http_client import Client


def test_a_state_is_saved_returned_to_and_forgotten(api, broker):
    """Everything, or one topic."""
    assert api.post("/snapshots", name="prepared").status == 201
    taken = api.post("/snapshots", name="prepared")
    assert (taken.status, "prepared" in taken.error["what"]) == (400, True)
    broker.create_topic("more")
    broker.produce("orders", "late")
    assert api.post("/snapshots/prepared/restore", topic="orders").body == {"done": True}
    assert len(broker.records("orders")) == 2 and "more" in broker.topics()
    fault = api.post("/faults", kind="close_before", apis=["Fetch"]).body
    colon = api.post("/snapshots/prepared%3Aorders/restore")
    assert colon.status == 400 and "'prepared:orders' has a colon" in colon.error["what"]
    assert api.get(f"/faults/{fault['number']}").body["has_ended"] is False
    assert api.post("/snapshots/prepared/restore").body == {"done": True}
    assert broker.topics() == {"orders": 3}
    assert api.get(f"/faults/{fault['number']}").status == 404
    assert api.delete("/snapshots/prepared").body == {"done": True}
    gone = api.post("/snapshots/prepared/restore")
    assert gone.status == 400 and gone.error["kafka_error"]


def test_ways_back_are_gone_one_after_another(api, broker):
    """Also when many ask at a time: each is done, and nobody meets another's half."""
    assert api.post("/snapshots", name="start").status == 201
    found = []
    paths = ["/reset", "/snapshots/start/restore"] * 4
    threads = [threading.Thread(target=lambda path=path: found.append(api.send("POST", path).status)) for path in paths]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [200] * len(paths) and broker.topics() == {"orders": 3}
    assert api.delete("/snapshots/start").status == 200


def test_time_passes_for_the_broker():
    """Retention is done; the clock is not set back."""
    with Broker(topics={"brief": Topic(1, {"retention.ms": "3600000"})}, control=True) as own:
        api = Client(own.control_url, own.control_token)
        api.post("/topics/brief/records", records=[{"value": "one"}])
        assert api.get("/clock").body == {"ahead_seconds": 0}
        assert api.post("/clock/advance", seconds=7200).body["ahead_seconds"] == pytest.approx(7200)
        assert api.get("/topics/brief/records").body["records"] == []
        assert api.get("/status").body["clock_ahead_seconds"] == pytest.approx(7200)
        refused = api.post("/clock/advance", seconds=-1)
        assert (refused.status, refused.error["where"]) == (400, "body.seconds")


def test_requests_are_traced_in_every_form(api, broker, monkeypatch):
    """Those of clients, and not those of the API itself."""
    empty = api.get("/trace").body
    assert empty["is_on"] is False
    assert api.send("POST", "/trace/start").body == {"is_on": True}
    api.delete("/trace")
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), client_id="traced")
    for _ in range(3):
        client.ask("ListGroups")
    client.close()
    api.get("/topics")
    assert api.send("POST", "/trace/stop").body == {"is_on": False}
    found = api.get("/trace").body
    assert [(each["client_id"], each["api"]) for each in found["requests"]] == [("traced", "ListGroups")] * 3
    last = api.get("/trace?limit=1").body
    with monkeypatch.context() as patched:
        decode, decoded = trace_formats.fields, []
        patched.setattr(trace_formats, "fields", lambda *given: decoded.append(given) or decode(*given))
        api.get("/trace?limit=1")
        assert len(decoded) == 1
    assert last["requests"] == found["requests"][-1:] != found["requests"][:1] and last["left_out"] == 2
    assert api.get("/trace.txt").body.decode().count(" ListGroups v") == 3
    lines = api.get("/trace.jsonl").body.decode().splitlines()
    assert [json.loads(line)["correlation_id"] for line in lines] == [1, 2, 3]
    assert struct.unpack("<I", api.get("/trace.pcap").body[:4])[0] in (0xA1B2C3D4, 0xA1B23C4D, 0xD4C3B2A1, 0x4D3CB2A1)
    assert api.delete("/trace").body == {"is_on": False}
    assert api.get("/trace").body["requests"] == []


def test_the_report_is_that_of_python(api, broker):
    """What people read when a test has failed."""
    answer = api.get("/report")
    assert answer.body.decode() == f"{broker.report()}\n" and "topic orders" in answer.body.decode()
