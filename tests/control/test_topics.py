"""Topics, records, groups and the way back to the start, by the control API."""

from __future__ import annotations

from base64 import b64encode

import pytest

from pykafkad.control import values
from pykafkad.testing import NewRecord
from pykafkad.testing.records import Found, Wanted


def base64(content: bytes) -> str:
    """As JSON has it."""
    return b64encode(content).decode()


def test_topics_come_and_go(api, broker):
    """Created with settings, listed, deleted."""
    assert api.get("/topics").body == {"topics": [{"name": "orders", "partitions": 3}]}
    created = api.post("/topics", name="bills", partitions=2, settings={"cleanup.policy": "compact"})
    assert (created.status, created.body) == (201, {"name": "bills", "partitions": 2})
    assert api.post("/topics", name="one").body["partitions"] == 1
    assert broker.topics() == {"orders": 3, "bills": 2, "one": 1}
    assert api.delete("/topics/bills").body == {"done": True}
    assert broker.topics() == {"orders": 3, "one": 1}
    again = api.post("/topics", name="one")
    assert (again.status, again.error["kafka_error"]) == (409, "TOPIC_ALREADY_EXISTS")
    gone = api.delete("/topics/bills")
    assert (gone.status, gone.error["kafka_error"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    refused = api.post("/topics", name="two", settings={"cleanup.policy": "burn"})
    assert (refused.status, refused.error["kafka_error"]) == (400, "INVALID_CONFIG")


def test_records_of_any_bytes_are_written_and_read(api, broker):
    """As text where they are UTF-8, and always as base64; a tombstone has neither."""
    answer = api.post(
        "/topics/orders/records",
        records=[
            {
                "key": "käse",
                "value": "one",
                "headers": [{"name": "h", "value_base64": base64(b"\xff")}],
                "partition": 1,
            },
            {"key_base64": base64(b"\xfe"), "value": None, "partition": 1, "timestamp_ms": 77},
            {"value": "", "partition": 1},
        ],
    )
    written = answer.body["records"]
    assert [each["partition"] for each in written] == [1, 1, 1]
    found = api.get("/topics/orders/records?partition=1").body
    assert found["left_out"] == 0
    first, second, third = found["records"][-3:]
    assert (first["key"], first["key_base64"], first["value"]) == ("käse", base64("käse".encode()), "one")
    assert first["headers"] == [{"name": "h", "value": None, "value_base64": base64(b"\xff")}]
    assert (second["key"], second["key_base64"]) == (None, base64(b"\xfe"))
    assert (second["value"], second["value_base64"], second["timestamp_ms"]) == (None, None, 77)
    assert (third["key_base64"], third["value"], third["value_base64"]) == (None, "", "")
    assert [record.offset for record in broker.records("orders", 1)][-3:] == [each["offset"] for each in written]


def test_of_many_records_the_first_are_answered(api, broker):
    """And how many more there are."""
    broker.create_topic("many")
    broker.produce("many", *map(str, range(7)))
    found = api.get("/topics/many/records?limit=5").body
    assert [each["value"] for each in found["records"]] == ["0", "1", "2", "3", "4"] and found["left_out"] == 2


def test_groups_are_listed_described_and_committed_for(api):
    """A name with a slash is written %2F."""
    offsets = [{"topic": "orders", "partition": 0, "offset": 0}, {"topic": "orders", "partition": 1, "offset": 0}]
    assert api.put("/groups/a%2Fb/offsets", offsets=offsets).body == {"done": True}
    assert api.get("/groups").body == {"groups": ["a/b"]}
    found = api.get("/groups/a%2Fb").body
    assert (found["name"], found["state"], found["offsets"]) == ("a/b", "Empty", offsets)
    assert sum(each["records"] for each in found["lag"]) <= 2
    missing = api.get("/groups/none")
    assert (missing.status, missing.error["what"]) == (404, "group none: there is none")


def test_reset_goes_back_to_the_start(api, broker):
    """As in Python."""
    api.post("/topics", name="more")
    api.post("/topics/orders/records", records=[{"value": "late"}])
    assert api.send("POST", "/reset").body == {"done": True}
    assert broker.topics() == {"orders": 3}
    assert sorted(each.value for each in broker.records("orders")) == [b"alone", b"value"]


@pytest.mark.parametrize(
    ("method", "path", "body", "what", "where", "allowed"),
    [
        ("POST", "/topics", {}, "name is missing", "body", "name"),
        ("POST", "/topics", {"name": 7}, "7 is no string", "body.name", "string"),
        (
            "POST",
            "/topics",
            {"name": "a", "partitions": 0},
            "0 is out of range",
            "body.partitions",
            "from 1 to 1000000",
        ),
        ("POST", "/topics", {"name": "a", "partitions": True}, "True is no integer", "body.partitions", "integer"),
        ("POST", "/topics", {"name": "a", "partitons": 1}, "did you mean partitions?", "body", "partitions, settings"),
        ("POST", "/topics", {"name": "a", "settings": {"x": 1}}, "1 is no string", "body.settings.x", "string"),
        ("POST", "/topics", {"name": "a", "settings": {"\ud800": "x"}}, "as UTF-8", "body.settings", "text"),
        ("POST", "/topics", {"name": "a", "settings": {"x": "\ud800"}}, "as UTF-8", "body.settings.x", "text"),
        (
            "POST",
            "/topics",
            {"name": "a", "settings": {"x" * 8001: "x"}},
            "a text of 8001 characters",
            "body.settings",
            "at most 8000 characters",
        ),
        ("POST", "/topics", [], "[] is no object", "body", "object"),
        ("GET", "/topics/orders/records?limit=1_0", None, "'1_0' is no integer", "query limit", "integer"),
        ("GET", "/topics/orders/records?limit=%D9%A3", None, "is no integer", "query limit", "integer"),
        ("GET", "/topics/orders/records?limit=%201", None, "' 1' is no integer", "query limit", "integer"),
        ("GET", "/topics/orders/records?limit=many", None, "'many' is no integer", "query limit", "integer"),
        ("GET", "/topics/orders/records?limit=0", None, "0 is out of range", "query limit", "from 1 to 10000"),
        ("GET", "/topics/orders/records?committed_only=1", None, "no boolean", "query committed_only", "boolean"),
        ("GET", "/topics/orders/records?partition=3", None, "orders has the partitions 0 to 2, not 3", "", ""),
        ("GET", "/topics/orders/records?offset=3", None, "offset: 3 is that of one partition; say which", "", ""),
        (
            "GET",
            "/topics/orders/records?offset=3&partition=1&last=true",
            None,
            "offset: 3 and last are both there; give one of them",
            "",
            "",
        ),
        ("POST", "/topics/orders/records", {"records": []}, "a list of 0", "body.records", "1 to 10000 items"),
        (
            "POST",
            "/topics/orders/records",
            {"records": [{"value": "a", "value_base64": "YQ=="}]},
            "value and value_base64 are both there",
            "body.records[0]",
            "one of them",
        ),
        (
            "POST",
            "/topics/orders/records",
            {"records": [{"value": "a"}, {"key_base64": "?"}]},
            "it is not base64",
            "body.records[1].key_base64",
            "base64",
        ),
        (
            "POST",
            "/topics/orders/records",
            {"records": [{"value": "\ud800"}]},
            "UTF-8",
            "body.records[0].value",
            "text",
        ),
        ("POST", "/waits/records", {"topic": "orders", "count": 0}, "0 is out of range", "body.count", "from 1"),
        (
            "POST",
            "/waits/topic",
            {"topic": "a", "timeout_seconds": 601},
            "601 is out of range",
            "body.timeout_seconds",
            "above 0 to 600.0",
        ),
    ],
)
def test_bad_input_is_named(api, method, path, body, what, where, allowed):
    """What is wrong, where in the request, and what is allowed there."""
    import json

    answer = api.send(method, path, None if body is None else json.dumps(body).encode())
    assert answer.status == 400
    assert what in answer.error["what"] and answer.error["where"] == where and allowed in answer.error["allowed"]


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b'{"name": NaN1}'])
def test_what_is_no_json_is_refused(api, content):
    """Also what is nested without end."""
    answer = api.send("POST", "/topics", content)
    assert answer.status == 400 and answer.error["where"] == "body" and "not JSON" in answer.error["what"]


def test_what_is_asked_reaches_the_call(api, broker, monkeypatch):
    """Nothing else is read."""
    seen = []
    monkeypatch.setattr(type(broker), "find_records", lambda _, topic, wanted: seen.append(wanted) or Found([]))
    api.get("/topics/orders/records")
    api.get("/topics/orders/records?committed_only=true&partition=1&offset=7&limit=3")
    api.get("/topics/orders/records?last=true&limit=3")
    assert seen == [Wanted(limit=10_000), Wanted(1, 7, 3, isolation_level=1), Wanted(None, None, 3, last=True)]


def test_the_last_records_and_those_from_an_offset(api, broker):
    """Of several partitions the newest ones; how many others there are is told."""
    broker.create_topic("many", 2)
    broker.produce("many", *(NewRecord(str(n), partition=n % 2, timestamp_ms=n) for n in range(20)))

    def asked(query):
        found = api.get(f"/topics/many/records?{query}").body
        return [each["value"] for each in found["records"]], found["left_out"]

    assert asked("last=true&limit=3") == (["18", "17", "19"], 17)
    assert asked("last=true&limit=2&partition=0") == (["16", "18"], 8)
    assert asked("partition=1&offset=8") == (["17", "19"], 0)
    assert asked("partition=1&offset=8&limit=1") == (["17"], 1)
    assert asked("partition=1&offset=99") == ([], 0)
    assert asked("limit=11") == ([*map(str, range(0, 20, 2)), "1"], 9)


def test_a_record_as_json_is_read_back_the_same():
    """What is read may be written again."""
    record = NewRecord(b"v\xff", b"k", [("h", None), ("h", b"x")], 1, 5)
    encoded = {
        **values._bytes("key", record.key),
        **values._bytes("value", record.value),
        "headers": [{"name": name, **values._bytes("value", value)} for name, value in record.headers],
        "partition": 1,
        "timestamp_ms": 5,
    }
    encoded["key"] = None
    encoded["headers"][1]["value"] = None
    assert values.to_record(encoded, "") == record
