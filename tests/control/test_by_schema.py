"""Records by the schemas of the broker's registry: read, told as they come, and written."""

from __future__ import annotations

import json
from base64 import b64encode
from urllib.request import Request, urlopen

import pytest

from pykafkad.control import by_schema, events
from pykafkad.control.by_schema import BySchema, name_of
from pykafkad.registry.registry_client import RegistryClient
from pykafkad.registry.schema import Schema
from pykafkad.testing import Broker
from tests.cli.test_oauth import Served
from tests.control.http_client import Client
from tests.control.test_events import Stream

ORDER = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}  # fmt: skip
PAYMENT = {"title": "Payment", "type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
SHIPMENT = 'syntax = "proto3";\nmessage Shipment { string order = 1; }\nmessage Other { int32 n = 1; }'


@pytest.fixture(scope="module")
def shared():
    with Broker(control=True, registry=True, topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture
def broker(shared):
    shared.reset()
    shared._control.control.by_schema._until = 0.0
    return shared


@pytest.fixture
def api(broker):
    return Client(broker.control_url, broker.control_token)


def register(broker, subject, content, kind="AVRO"):
    """The id of a schema."""
    text = content if isinstance(content, str) else json.dumps(content)
    return RegistryClient(broker.registry_url).register(subject, Schema(kind, text))


def write(api, value, topic="orders", **more):
    text = value if isinstance(value, str) else json.dumps(value)
    return api.post(f"/topics/{topic}/records", records=[{"value": text}], **more)


def read(api, topic="orders", query="?by_schema=true"):
    return api.get(f"/topics/{topic}/records{query}").body["records"]


@pytest.mark.parametrize(
    ("kind", "schema", "name", "value"),
    [
        ("AVRO", ORDER, "shop.Order", {"id": 9007199254740993, "note": "é"}),
        ("JSON", PAYMENT, "Payment", {"order": 7}),
        ("PROTOBUF", SHIPMENT, "Shipment", {"order": "7"}),
    ],
)
def test_what_is_written_by_a_schema_is_read_by_it(broker, api, kind, schema, name, value):
    schema_id = register(broker, "orders-value", schema, kind)
    register(broker, "keys", {"type": "string"})
    body = {
        "records": [{"key": '"k"', "value": json.dumps(value)}, {"key": None, "value": None}],
        "key_schema": {"subject": "keys"},
        "value_schema": {"subject": "orders-value"},
    }
    assert api.post("/topics/orders/records", **body).status == 200
    first, tombstone = read(api)
    told = first["value_by_schema"]
    assert (told["id"], told["type"], told["name"], told["problem"]) == (schema_id, kind, name, None)
    assert json.loads(told["json"]) == value and not told["is_cut"]
    assert (first["key_by_schema"]["json"], first["key_by_schema"]["name"]) == ('"k"', "")
    assert tombstone["value_by_schema"] is tombstone["key_by_schema"] is tombstone["value"] is None
    assert broker.records("orders")[0].value[:5] == b"\0" + schema_id.to_bytes(4, "big")
    assert [each["value_by_schema"] for each in read(api, query="")] == [None, None]


def test_a_message_of_protobuf_is_chosen(broker, api):
    register(broker, "orders-value", SHIPMENT, "PROTOBUF")
    assert write(api, {"n": 3}, value_schema={"subject": "orders-value", "message": "Other"}).status == 200
    assert json.loads(read(api)[0]["value_by_schema"]["json"]) == {"n": 3}


def test_schemas_of_a_topic(broker, api):
    assert api.get("/topics/orders/schemas").body == {
        "has_registry": True, "key": None, "value": None, "subjects": []
    }  # fmt: skip
    schema_id = register(broker, "orders-value", ORDER)
    register(broker, "other", PAYMENT, "JSON")
    found = api.get("/topics/orders/schemas").body
    assert found["subjects"] == ["orders-value", "other"]
    assert {**found["value"], "schema": json.loads(found["value"]["schema"])} == {
        "subject": "orders-value", "id": schema_id, "type": "AVRO", "name": "shop.Order", "schema": ORDER
    }  # fmt: skip
    described = api.get(f"/schemas/{schema_id}").body
    assert (described["name"], json.loads(described["schema"])) == ("shop.Order", ORDER)


def test_what_cannot_be_written_is_said(broker, api):
    register(broker, "orders-value", ORDER)
    by = {"value_schema": {"subject": "orders-value"}}
    for value, more, status, what, where in (
        ({"id": "x"}, by, 400, "it is not what the schema 1 says: ", "body.records[0].value"),
        ("{", by, 400, "it is no JSON: ", "body.records[0].value"),
        ("1", {"value_schema": {"subject": "none"}}, 404, "refuses: Subject 'none' not found", "body.value_schema"),
        ("1", {"key_schema": {"subject": "none"}}, 404, "Subject 'none' not found", "body.key_schema"),
        ("1", {"value_schema": {"subject": "orders-value", "message": "M"}}, 400, "no messages", "body.value_schema"),
        ("1", {"value_schema": {"name": "x"}}, 400, "", "body.value_schema"),
    ):
        answer = write(api, value, **more)
        error = answer.body["error"]
        assert answer.status == status and what in error["what"] and error["where"].startswith(where), error
    both = {"records": [{"value_base64": "AA=="}], **by}
    error = api.post("/topics/orders/records", **both).body["error"]
    assert error["what"] == "value_base64 is there, and value_schema" and error["allowed"] == "value with JSON"
    assert broker.records("orders") == []
    assert api.get("/schemas/99").status == 404


def test_bytes_that_only_look_like_it(broker, api):
    """Of what begins with another byte, or is shorter, nothing is said."""
    register(broker, "orders-value", ORDER)
    contents = [b"\0\0\0\0\x63abc", b"\0\0\0\0\1", b"\1\0\0\0\1", b"\0\0\0", b"", b"text"]
    body = {"records": [{"value_base64": b64encode(each).decode()} for each in contents]}
    assert api.post("/topics/orders/records", **body).status == 200
    told = [each["value_by_schema"] for each in read(api)]
    assert "knows no schema with the id 99" in told[0]["problem"] and told[0]["json"] is None
    assert told[1]["problem"].startswith("it is not what the schema 1 says: ")
    assert told[2:] == [None] * 4


def test_a_stream_tells_it(broker, api):
    register(broker, "orders-value", ORDER)
    long = "x" * (events.MOST_JSON_CHARACTERS + 1)
    for note in ("short", long):
        assert write(api, {"id": 1, "note": note}, value_schema={"subject": "orders-value"}).status == 200
    with Stream(api, "of=counts&topic=orders") as stream:
        records = stream.next("records")["records"]
    told = [each["value_by_schema"] for each in records]
    assert json.loads(told[0]["json"]) == {"id": 1, "note": "short"}
    assert (told[1]["json"], told[1]["is_cut"]) == (None, True)
    assert json.loads(read(api)[1]["value_by_schema"]["json"])["note"] == long


def test_after_a_reset_an_id_may_be_another_schema(broker, api):
    now = [0.0]
    reader = BySchema(lambda: broker.registry_url, lambda: now[0])
    register(broker, "orders-value", ORDER)
    data = b"\0\0\0\0\1\x0e\0"
    assert json.loads(reader.shown(data)["json"]) == {"id": 7, "note": None}
    broker.reset()
    register(broker, "orders-value", {"type": "record", "name": "Two", "fields": [{"name": "n", "type": "long"}]})
    now[0] = by_schema.KEPT_SECONDS
    assert reader.shown(data[:-1])["name"] == "Two"


def test_before_the_registry_is_served_it_is_a_problem():
    assert BySchema(lambda: "").shown(b"\0\0\0\0\1")["problem"] == "the registry is not served yet"


def test_without_a_registry_nothing_is_said():
    with Broker(control=True, topics={"orders": 1}) as broker:
        api = Client(broker.control_url, broker.control_token)
        broker.produce("orders", b"\0\0\0\0\1abc")
        assert read(api)[0]["value_by_schema"] is None
        assert api.get("/topics/orders/schemas").body["has_registry"] is False
        assert api.get("/schemas/1").body["error"]["what"] == "this broker has no schema registry"
        error = write(api, "1", value_schema={"subject": "orders-value"}).body["error"]
        assert (error["what"], error["where"]) == ("this broker has no schema registry", "body.value_schema")


def test_names_of_schemas():
    for kind, text, name in (
        ("AVRO", '{"type": "record", "name": "a.B", "namespace": "c", "fields": []}', "a.B"),
        ("AVRO", '"string"', ""),
        ("AVRO", "{", ""),
        ("JSON", "true", ""),
        ("JSON", '{"title": "T"}', "T"),
        ("PROTOBUF", 'syntax = "proto3";\n  message M {}', "M"),
        ("PROTOBUF", "", ""),
    ):
        assert name_of(Schema(kind, text)) == name


@pytest.mark.long
def test_serve_has_both():
    with Served("--control", "127.0.0.1:0", "--registry", "127.0.0.1:0", "--topic", "orders") as served:
        words = dict(each.partition("=")[::2] for each in served.line.split() if "=" in each)
        url = words["schema.registry.url"]
        asked = Request(f"{url}/subjects/orders-value/versions", json.dumps({"schema": json.dumps(ORDER)}).encode(),
                        {"Content-Type": "application/json"})  # fmt: skip
        with urlopen(asked) as answer:
            assert json.load(answer)["id"] == 1
        api = Client(words["control"], words["control.token"])
        assert write(api, {"id": 5}, value_schema={"subject": "orders-value"}).status == 200
        assert json.loads(read(api)[0]["value_by_schema"]["json"]) == {"id": 5, "note": None}
