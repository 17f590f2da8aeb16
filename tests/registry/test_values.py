"""Values by the schemas of a registry: read as JSON, and written from it."""

from __future__ import annotations

import contextlib
import json
import random
import struct

import pytest

from pykafkad.registry import schema_values
from pykafkad.registry.protobuf_values import read_indexes, written_indexes
from pykafkad.registry.registry_client import RegistryClient, RegistryFailure
from pykafkad.registry.schema import AVRO, JSON_SCHEMA, PROTOBUF, Reference, Schema
from pykafkad.registry.schema_values import NotBySchema, SchemaValues
from pykafkad.testing import Broker
from tests.registry.asked import record


class Known:
    """A registry with these schemas; `subjects` are those that others refer to."""

    url = "http://known"

    def __init__(self, *schemas, **subjects):
        self.schemas = dict(enumerate(schemas, 1))
        self.subjects = subjects
        self.asked = []

    def by_id(self, schema_id):
        self.asked.append(schema_id)
        if schema_id not in self.schemas:
            raise RegistryFailure("nobody has it", 404)
        return self.schemas[schema_id]

    def texts(self, references):
        return [(each.name, self.subjects[each.subject]) for each in references]


def written(schema, value, message=None, **subjects):
    """A value by the only schema of a registry."""
    return SchemaValues(Known(schema, **subjects)).encoder(1, schema, message)(value)


def there_and_back(schema, value, message=None, **subjects):
    data = written(schema, value, message, **subjects)
    found = SchemaValues(Known(schema, **subjects)).decoded(data)
    assert found.schema_id == 1
    return found.value


def avro(schema, *references):
    return Schema(AVRO, json.dumps(schema), references)


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    "schema, value",
    [
        ("int", 5),
        ("double", 0.5),
        ("string", "grüezi"),
        ("bytes", "text"),
        ("bytes", {"hex": "ff00"}),
        ({"type": "fixed", "name": "F", "size": 2}, {"hex": "fffe"}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "array", "items": "long"}, [1, 2]),
        ({"type": "map", "values": ["null", "string"]}, {"a": None, "b": "c"}),
        (["null", "int", "string"], "text"),
        (["null", "bytes", "string"], "text"),
        (["null", logical("int", "date"), "string"], "no date"),
        (logical("int", "date"), "2026-01-31"),
        (logical("int", "time-millis"), "12:30:00.500000"),
        (logical("long", "timestamp-micros"), "2026-01-31T12:30:00.000001+00:00"),
        (logical("bytes", "decimal", precision=6, scale=2), "-12.50"),
        (
            record("A", x="int", y={"type": "array", "items": record("B", z=["null", "string"])}),
            {"x": 1, "y": [{"z": "a"}]},
        ),
    ],
)
def test_avro(schema, value):
    assert there_and_back(avro(schema), value) == value


def test_avro_fields_that_are_left_out_have_their_default():
    assert there_and_back(avro(record("A", x=("int", 7), y=(["null", "int"], None))), {}) == {"x": 7, "y": None}


def test_references_are_read():
    inner = json.dumps(record("In", n="int"))
    schema = avro(record("Out", i="In"), Reference("In", "inner", 1))
    assert there_and_back(schema, {"i": {"n": 3}}, inner=inner) == {"i": {"n": 3}}
    schema = Schema(JSON_SCHEMA, '{"properties": {"i": {"$ref": "in.json"}}}', (Reference("in.json", "inner", 1),))
    inner = '{"type": "integer"}'
    assert there_and_back(schema, {"i": 3}, inner=inner) == {"i": 3}
    with pytest.raises(NotBySchema, match="'x' is not of type 'integer' at i"):
        written(schema, {"i": "x"}, inner=inner)
    outer = 'syntax = "proto3"; import "in.proto"; message O { I i = 1; }'
    schema = Schema(PROTOBUF, outer, (Reference("in.proto", "inner", 1),))
    inner = 'syntax = "proto3"; message I { int32 n = 1; }'
    assert there_and_back(schema, {"i": {"n": 3}}, inner=inner) == {"i": {"n": 3}}


SHOP = Schema(
    PROTOBUF,
    'syntax = "proto3"; package shop; message Unused { map<string, int32> m = 1; } '
    "message Order { message Line { int64 big = 1; bytes raw = 2; } Line line = 1; }",
)


@pytest.mark.parametrize(
    "message, indexes, value",
    [
        (None, (0,), {"m": {"a": 1}}),
        ("Order", (1,), {"line": {"big": "5", "raw": "/w=="}}),
        ("shop.Order.Line", (1, 0), {"big": "-1"}),
    ],
)
def test_protobuf_says_which_message_it_is(message, indexes, value):
    data = written(SHOP, value, message)
    assert read_indexes(data[5:])[0] == indexes
    assert there_and_back(SHOP, value, message) == value


@pytest.mark.parametrize("indexes, data", [((0,), "00"), ((1,), "0202"), ((1, 0), "040200"), ((200,), "029003")])
def test_indexes_of_messages(indexes, data):
    """As Confluent's serializers write them: zigzag, and one byte for the first message."""
    assert written_indexes(indexes) == bytes.fromhex(data)
    assert read_indexes(bytes.fromhex(data) + b"rest") == (indexes, len(data) // 2)


@pytest.mark.parametrize("data", ["", "80", "8080808080", "01", "ce01" + "00" * 103, "ffffffffffff01"])
def test_indexes_that_cannot_be(data):
    with pytest.raises(ValueError):
        read_indexes(bytes.fromhex(data))


@pytest.mark.parametrize(
    "schema, value, told",
    [
        (avro("int"), "5", "is not an example of the schema"),
        (avro(record("A", x="int")), {"x": 1, "y": 2}, "A has no field y"),
        (avro(record("A", x="int")), {}, "is not an example of the schema"),
        (avro("bytes"), {"hex": "x"}, "non-hexadecimal"),
        (avro(logical("int", "date")), "tomorrow", "Invalid isoformat"),
        (avro(logical("bytes", "decimal", precision=6, scale=2)), "much", "ConversionSyntax"),
        (Schema(JSON_SCHEMA, '{"required": ["a"]}'), {}, "'a' is a required property"),
        (Schema(JSON_SCHEMA, '{"$ref": "gone.json"}'), 1, "which is not there"),
        (SHOP, {"other": 1}, "has no field named"),
        (SHOP, 5, "object"),
    ],
)
def test_values_that_a_schema_does_not_allow(schema, value, told):
    with pytest.raises(NotBySchema, match=told):
        written(schema, value)


@pytest.mark.parametrize(
    "schema, data, told",
    [
        (avro("string"), b"\x10abc", "schema 1 says"),
        (avro("int"), b"\x02\x02", "1 bytes are left"),
        (avro("string"), b"", "schema 1 says"),
        (avro({"type": "enum", "name": "E", "symbols": ["A"]}), b"\x20", "schema 1 says"),
        (Schema(JSON_SCHEMA, "{}"), b"{", "schema 1 says"),
        (SHOP, b"\x00\xff", "schema 1 says"),
        (SHOP, b"\x02\x08", "no message at 4"),
        (Schema("THRIFT", ""), b"", "schemas of the type THRIFT are not known here"),
    ],
)
def test_bytes_that_are_not_what_the_schema_says(schema, data, told):
    with pytest.raises(NotBySchema, match=told):
        SchemaValues(Known(schema)).decoded(struct.pack(">bI", 0, 1) + data)


def test_a_value_that_says_it_has_billions_of_items():
    """Of nulls, which take no bytes: the library has a limit."""
    schema = avro({"type": "array", "items": "null"})
    assert there_and_back(schema, [None] * 999) == [None] * 999
    data = struct.pack(">bI", 0, 1) + b"\xfe" + b"\xff" * 8 + b"\x01"
    with pytest.raises(NotBySchema, match="the schema 1 says: Cannot read more than"):
        SchemaValues(Known(schema)).decoded(data)


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00\x00", b"\x01\x00\x00\x00\x01\x02", b'{"a": 1}'])
def test_bytes_without_a_schema(data):
    with pytest.raises(NotBySchema, match="does not begin with 0 and the id of a schema"):
        SchemaValues(Known()).decoded(data)


def test_an_unknown_id_is_asked_for_again_and_a_known_one_is_not(monkeypatch):
    known = Known()
    values = SchemaValues(known)
    data = struct.pack(">bI", 0, 1) + b"\x0a"
    with pytest.raises(NotBySchema, match="the registry http://known knows no schema with the id 1"):
        values.decoded(data)
    known.schemas[1] = avro("int")
    assert [values.decoded(data).value for _ in range(3)] == [5, 5, 5]
    assert known.asked == [1, 1]
    monkeypatch.setattr(schema_values, "MOST_SCHEMAS", 1)
    known.schemas[2] = avro("long")
    assert values.decoded(struct.pack(">bI", 0, 2) + b"\x0a").value == 5
    assert values.decoded(data).value == 5
    assert known.asked == [1, 1, 2, 1]


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(schema_values.extras, "missing", lambda name: f"{name} is missing")
    with pytest.raises(NotBySchema, match="the schema 1 cannot be used: grpc_tools|google"):
        SchemaValues(Known(SHOP)).decoded(struct.pack(">bI", 0, 1))


@pytest.mark.parametrize("url", ["nope", "localhost:8081", "ftp://host", "http://", ""])
def test_what_is_no_url(url):
    with pytest.raises(ValueError, match="must be a URL such as"):
        RegistryClient(url)


def test_a_login_is_not_shown():
    client = RegistryClient("http://alice:se%40cret@127.0.0.1:1/base/")
    assert client.url == "http://127.0.0.1:1/base"
    with pytest.raises(RegistryFailure, match=r"the registry http://127.0.0.1:1/base does not answer") as told:
        client.by_id(1)
    assert "cret" not in str(told.value) and told.value.status == 0


def test_a_registry_is_asked():
    with Broker(registry=True) as broker:
        client = RegistryClient(broker.registry_url)
        inner = Schema(AVRO, json.dumps(record("In", n="int"), separators=(",", ":")))
        assert client.register("inner/one", inner) == 1
        assert client.version("inner/one") == (1, inner) == client.version("inner/one", 1)
        reference = Reference("In", "inner/one", 1)
        assert client.texts((reference, reference)) == [("In", inner.text)]
        assert client.by_id(1) == inner
        with pytest.raises(RegistryFailure, match="Schema 9 not found") as told:
            client.by_id(9)
        assert told.value.status == 404
        with pytest.raises(RegistryFailure, match="Invalid schema"):
            client.register("s", Schema(AVRO, "{"))


GARBAGE = (
    avro(
        record(
            "A", x="int", y=["null", "string", {"type": "map", "values": "bytes"}], z={"type": "array", "items": "long"}
        )
    ),
    avro(record("L", d=logical("int", "date"), t=logical("long", "timestamp-millis"), u=logical("int", "time-millis"))),
    avro(record("D", d=logical("bytes", "decimal", precision=6, scale=2), u=logical("string", "uuid"))),
    avro({"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}),
    Schema(JSON_SCHEMA, "{}"),
    SHOP,
)


@pytest.mark.parametrize("schema", GARBAGE, ids=range(len(GARBAGE)))
def test_any_bytes_are_a_value_or_are_refused(schema):
    """Nothing else comes of them; and what they are as JSON can be printed."""
    values, chance = SchemaValues(Known(schema)), random.Random(7)
    for length in range(300):
        data = (
            chance.randbytes(length % 40) if length % 2 else bytes(chance.choices(b"\0\1\2\4\6\x0a\x12", k=length % 40))
        )
        with contextlib.suppress(NotBySchema):
            json.dumps(values.decoded(struct.pack(">bI", 0, 1) + data).value)
    with contextlib.suppress(NotBySchema):
        values.decoded(struct.pack(">bI", 0, 1) + b"\x02" * 5000)


@pytest.mark.parametrize(
    "schema",
    [
        Schema(JSON_SCHEMA, "5"),
        Schema(JSON_SCHEMA, '{"type": "nonsense"}'),
        Schema(JSON_SCHEMA, '{"pattern": "("}'),
        Schema(
            PROTOBUF,
            'syntax = "proto2"; message A { optional int32 a = 1 [json_name = "x"];'
            ' optional int32 b = 2 [json_name = "x"]; }',
        ),
    ],
)
def test_schemas_that_a_registry_may_hold_and_nobody_can_use(schema):
    """The error is the one that commands tell of."""
    with pytest.raises(NotBySchema):
        written(schema, "text")
