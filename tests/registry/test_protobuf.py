"""Protobuf in the registry: what is a schema, in which form it is kept, and what is compatible."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import descriptor_pb2, wrappers_pb2

from pykafkad.registry import protobuf_compiler, protobuf_differences, protobuf_schemas, registry
from tests.registry.asked import Asked

ORDER = """syntax = "proto3";
package shop;

message Order {
  int32 amount = 1;
}
"""
EVERYTHING = """syntax = "proto2";
package all.of_it;

import "google/protobuf/descriptor.proto";
import public "google/protobuf/timestamp.proto";

option java_package = "com.example";

message Outer {
  reserved 7;
  reserved 9 to 11;
  reserved 1000 to max;
  reserved "gone";

  option deprecated = true;
  option (.all.of_it.note) = "it\\'s \\"old\\"";

  required string id = 1 [default = "a\\"b", json_name = "ID"];
  optional .all.of_it.Outer.Kind kind = 2 [default = B];
  repeated int64 numbers = 3 [packed = true, (.all.of_it.rule) = { least: 1 words: "x" words: "y" }];
  map<string, .google.protobuf.Timestamp> times = 4;
  optional bytes raw = 12 [default = "\\000\\377"];
  optional double ratio = 13 [default = inf];

  oneof choice {
    string text = 5;
    .all.of_it.Outer inner = 6;
  }

  optional group Old = 14 {
    optional int32 n = 1;
  }

  extensions 100 to 199;

  extend .all.of_it.Outer {
    optional int32 more = 100;
  }

  message Nothing {}
  enum Kind {
    option allow_alias = true;
    A = 0;
    B = 1 [deprecated = true];
    C = 1;
  }
}
message Rule {
  optional int32 least = 1;
  repeated string words = 2;
}

extend .google.protobuf.MessageOptions {
  optional string note = 50000;
}
extend .google.protobuf.FieldOptions {
  optional .all.of_it.Rule rule = 50001;
}

service Shop {
  rpc Buy (.all.of_it.Outer) returns (stream .all.of_it.Rule);
  rpc Look (stream .all.of_it.Rule) returns (.all.of_it.Outer) {
    option deprecated = true;
  }
}
"""
EDITION = """edition = "2023";
package later;

message Small {
  reserved gone;

  int32 a = 1 [features = { field_presence: IMPLICIT }];
}
"""


@pytest.fixture
def ask():
    return Asked()


def proto(*lines, syntax="proto3"):
    return f'syntax = "{syntax}";\n' + "\n".join(lines)


def message(*fields, name="A", syntax="proto3"):
    return proto(f"message {name} {{", *fields, "}", syntax=syntax)


@pytest.mark.long
@pytest.mark.parametrize("text", [ORDER, EVERYTHING, EDITION], ids=["small", "everything", "edition"])
def test_a_schema_is_kept_in_one_form(ask, text):
    """Which is a schema again, of which protoc makes the same; comments and white space do not count."""
    other = text.replace("\n\n", "\n// a comment\n").replace("  ", " /* here */ ")
    assert ask.register("s", other, "PROTOBUF") == ask.register("s", text, "PROTOBUF") == 1
    described = ask("GET", "/subjects/s/versions/1")[1]
    assert (described["schemaType"], described["schema"]) == ("PROTOBUF", text)
    parsed, again = protobuf_schemas.parse(other, ()), protobuf_schemas.parse(described["schema"], ())
    assert parsed.value == again.value


@pytest.mark.parametrize("text", [ORDER, EVERYTHING], ids=["small", "everything"])
def test_a_descriptor_is_a_schema_too(ask, text):
    """In base64, as confluent-kafka registers it; and it is given back so where that is asked for."""
    assert ask.register("s", text, "PROTOBUF") == 1
    for path in ("/schemas/ids/1", "/subjects/s/versions/latest"):
        content = ask("GET", f"{path}?format=serialized")[1]["schema"]
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(content))
        assert file.package == ("shop" if text is ORDER else "all.of_it")
        assert ask.register("s", content, "PROTOBUF") == 1
    body = {"schema": content, "schemaType": "PROTOBUF"}
    for path in ("/subjects/s/versions", "/subjects/s"):
        assert ask("POST", path, body)[1]["schema"] == content, "as it was given"
        assert ask("POST", f"{path}?format=other", body)[1]["schema"] == text
    assert ask("GET", "/schemas/ids/1?format=other")[1]["schema"] == text
    assert (
        ask("POST", "/subjects/s?format=serialized", {"schema": text, "schemaType": "PROTOBUF"})[1]["schema"] == content
    )
    assert ask.bytes("GET", "/schemas/ids/1/schema?format=serialized")[2].decode() == content


def test_a_descriptor_that_a_library_carries(ask):
    """Written by another protoc, without names for JSON."""
    file = descriptor_pb2.FileDescriptorProto.FromString(wrappers_pb2.DESCRIPTOR.serialized_pb)
    content = base64.b64encode(file.SerializeToString()).decode()
    assert ask.register("s", content, "PROTOBUF") == 1
    assert "message StringValue {\n  string value = 1;\n}\n" in ask("GET", "/schemas/ids/1")[1]["schema"]


@pytest.mark.parametrize(
    "text, told",
    [
        ("nonsense!", "no Protobuf schema: schema.proto:1:1"),
        (message("int32 a = 1;", "int32 b = 1;"), "Field number 1 has already been used"),
        (message("Missing a = 1;"), '"Missing" is not defined'),
        (proto('import "other.proto";'), "other.proto: File not found"),
        (base64.b64encode(b"\xff\xff\xff").decode(), "no file's descriptor"),
        ("A" * 4000 + "=", "no Protobuf schema"),
    ],
)
def test_what_is_no_schema(ask, text, told):
    status, answer = ask("POST", "/subjects/s/versions", {"schema": text, "schemaType": "PROTOBUF"})
    assert (status, answer["error_code"]) == (422, 42201) and told in answer["message"], answer
    assert "/tmp" not in answer["message"]


def test_a_descriptor_that_contradicts_itself(ask):
    """It is refused, or protoc says why not; a type that protoc would have found by its name may be left out."""
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3", public_dependency=[3])
    assert ask.register("s", base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF") == 42201
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    made = file.message_type.add(name="A")
    made.field.add(name="a", number=1, type_name=".A", label=1)
    assert ask.register("s", base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF") == 1
    assert "  .A a = 1;\n" in ask("GET", "/schemas/ids/1")[1]["schema"]
    made.nested_type.add(name="Entry").options.map_entry = True
    made.field.add(name="b", number=2, type=11, type_name=".A.Entry", label=3)
    assert ask.register("s", base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF") == 42201


def test_references(ask):
    """A schema imports others by the names of its references, and these what they refer to."""
    ask.register("inner", proto("package in;", "message I { int32 n = 1; }"), "PROTOBUF")
    middle = proto('import "dir/inner.proto";', "message M { in.I i = 1; }")
    ask.register("middle", middle, "PROTOBUF", [{"name": "dir/inner.proto", "subject": "inner", "version": 1}])
    outer = proto('import "middle.proto";', "message O { M m = 1; }")
    assert ask.register("outer", outer, "PROTOBUF") == 42201
    references = [{"name": "middle.proto", "subject": "middle", "version": 1}]
    assert ask.register("outer", outer, "PROTOBUF", references) == 3
    assert ask("GET", "/schemas/ids/3")[1]["references"] == references
    # A field whose message has changed in the file where it is.
    assert ask.register("inner", proto("package in;", "message I { string n = 1; }"), "PROTOBUF") == 40901
    ask("PUT", "/config/inner", {"compatibility": "NONE"})
    assert ask.register("inner", proto("package in;", "message I { string n = 1; }"), "PROTOBUF") == 4
    references = [{"name": "dir/inner.proto", "subject": "inner", "version": 2}]
    assert ask.register("middle", middle, "PROTOBUF", references) == 40901


@pytest.mark.parametrize("name", ["../x.proto", "/etc/x.proto", "a//b", "a/./b", "", "a\\b", "x" * 201, "a\0b"])
def test_a_reference_names_a_file_of_its_own(name):
    with pytest.raises(ValueError, match=r"is no name that an import can have"):
        protobuf_compiler.compiled(ORDER, ((name, ORDER),))


@pytest.mark.long
def test_normalized_schemas_are_the_same_in_any_order(ask):
    first = proto('import "google/protobuf/any.proto";', 'import "google/protobuf/empty.proto";') + (
        'option java_package = "a"; option go_package = "b"; message A { string b = 2; int32 a = 1; reserved 9, 5; }'
    )
    second = proto('import "google/protobuf/empty.proto";', 'import "google/protobuf/any.proto";') + (
        'option go_package = "b"; option java_package = "a"; message A { reserved 5, 9; int32 a = 1; string b = 2; }'
    )
    body = {"schema": first, "schemaType": "PROTOBUF"}
    assert ask("POST", "/subjects/s/versions?normalize=true", body)[1]["id"] == 1
    body["schema"] = second
    assert ask("POST", "/subjects/s?normalize=true", body)[1]["version"] == 1
    assert ask("POST", "/subjects/s/versions?normalize=true", body)[1]["id"] == 1
    assert ask("POST", "/subjects/s/versions", {**body, "schema": first})[1]["id"] == 2
    # The order of messages counts, since what is serialized names a message by its place.
    one, other = "message A {} message B {}", "message B {} message A {}"
    assert ask("POST", "/subjects/t/versions?normalize=true", {**body, "schema": proto(one)})[1]["id"] == 3
    assert ask("POST", "/subjects/t?normalize=true", {**body, "schema": proto(other)})[0] == 404


def one_of(*fields, name="x"):
    return f"oneof {name} {{ {' '.join(fields)} }}"


def changes(earlier, later, earlier_files=(), later_files=()):
    before = protobuf_schemas.parse(earlier, earlier_files).value
    return [
        f"{each.kind} {each.place}"
        for each in protobuf_differences.differences(before, protobuf_schemas.parse(later, later_files).value)
    ]


A, B = "int32 a = 1;", "int32 b = 2;"
LIKE = ("int32", "int64", "uint32", "uint64", "bool"), ("sint32", "sint64"), ("string", "bytes"), (
    ("fixed32", "sfixed32")
), ("fixed64", "sfixed64"), ("float",), ("double",)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    "earlier, later, found",
    [
        (proto("package a;"), proto("package b;"), ["PACKAGE_CHANGED #/"]),
        (message(), proto(), ["MESSAGE_REMOVED #/A"]),
        (proto(), message(), ["MESSAGE_ADDED #/A"]),
        (
            proto("message A {} message B {}"),
            proto("message B {} message A {}"),
            ["MESSAGE_MOVED #/A", "MESSAGE_MOVED #/B"],
        ),
        (message("message B {}"), message(), ["MESSAGE_REMOVED #/A/B"]),
        (proto("enum E { Z = 0; }"), proto(), ["ENUM_REMOVED #/E"]),
        (proto(), proto("enum E { Z = 0; }"), ["ENUM_ADDED #/E"]),
        (
            proto("enum E { Z = 0; Y = 1; X = 2; }"),
            proto("enum E { Z = 0; W = 2; V = 3; }"),
            ["ENUM_CONST_REMOVED #/E/1", "ENUM_CONST_CHANGED #/E/2", "ENUM_CONST_ADDED #/E/3"],
        ),
        (message(A), message(), ["FIELD_REMOVED #/A/1"]),
        (message(), message(A), ["FIELD_ADDED #/A/1"]),
        (message(A), message("int32 b = 1;"), ["FIELD_NAME_CHANGED #/A/1"]),
        (message(A), message("map<string, int32> a = 1;"), ["FIELD_KIND_CHANGED #/A/1"]),
        (message(A), message("A a = 1;"), ["FIELD_KIND_CHANGED #/A/1"]),
        (
            message("map<string, int32> a = 1;"),
            message("map<string, string> a = 1;"),
            ["FIELD_SCALAR_KIND_CHANGED #/A/1"],
        ),
        (message("map<bool, int32> a = 1;"), message("map<int32, bool> a = 1;"), []),
        (message(A), message("repeated int32 a = 1;"), []),
        (message("optional int32 a = 1;"), message("repeated int32 a = 1;"), ["FIELD_NUMERIC_LABEL_CHANGED #/A/1"]),
        (
            message("optional string a = 1;"),
            message("repeated string a = 1;"),
            ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/A/1"],
        ),
        (
            message("required int32 a = 1;", syntax="proto2"),
            message("required int32 b = 2;", syntax="proto2"),
            ["REQUIRED_FIELD_REMOVED #/A/1", "REQUIRED_FIELD_ADDED #/A/2"],
        ),
        (
            message("message B {} message C {} B a = 1;"),
            message("message B {} message C {} C a = 1;"),
            ["FIELD_NAMED_TYPE_CHANGED #/A/1"],
        ),
        (message("enum E { Z = 0; } E a = 1;"), message("enum E { Z = 0; } int64 a = 1;"), []),
        (message(one_of(A)), message(one_of(A, name="y")), ["ONEOF_REMOVED #/A/x", "ONEOF_ADDED #/A/y"]),
        (message(one_of(A)), message(A), ["ONEOF_REMOVED #/A/x", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/A/1"]),
        (message(one_of(A, B)), message(one_of(A)), ["ONEOF_FIELD_REMOVED #/A/x/2"]),
        (message(one_of(A, B)), message(), ["ONEOF_REMOVED #/A/x"]),
        (message(one_of(A)), message(one_of(A, B)), ["ONEOF_FIELD_ADDED #/A/x/2"]),
        (message(A), message(one_of(A)), ["ONEOF_ADDED #/A/x"]),
        (message(A, B), message(one_of(A, B)), ["MULTIPLE_FIELDS_MOVED_TO_ONEOF #/A/x", "ONEOF_ADDED #/A/x"]),
        (message(A, one_of(B)), message(one_of(A, B)), ["FIELD_MOVED_TO_EXISTING_ONEOF #/A/x"]),
        (
            message(one_of(A), one_of(B, name="y")),
            message(one_of(A, B)),
            ["FIELD_MOVED_TO_EXISTING_ONEOF #/A/x", "ONEOF_REMOVED #/A/y"],
        ),
        (message(one_of(A)), message(one_of("string a = 1;")), ["FIELD_SCALAR_KIND_CHANGED #/A/x/1"]),
        (
            message("optional group G = 1 { optional int32 a = 1; }", syntax="proto2"),
            message("optional group G = 1 { optional string a = 1; }", syntax="proto2"),
            ["FIELD_SCALAR_KIND_CHANGED #/A/G/1"],
        ),
    ],
)
def test_what_has_changed(earlier, later, found):
    """Place and kind of each difference, and whether the registry takes the later schema."""
    assert changes(earlier, later) == found
    ask = Asked()
    ask.register("s", earlier, "PROTOBUF")
    compatible = all(each.split()[0] in protobuf_differences.COMPATIBLE for each in found)
    body = {"schema": later, "schemaType": "PROTOBUF"}
    tested = ask("POST", "/compatibility/subjects/s/versions/latest?verbose=true", body)[1]
    assert tested["is_compatible"] == compatible
    assert compatible or found[0].split()[0] in tested["messages"][0]


@pytest.mark.long
def test_scalar_types_that_are_encoded_alike():
    """Each takes the place of those of its row, and of no other."""
    kinds = [(kind, number) for number, row in enumerate(LIKE) for kind in row]
    earlier = message(*(f"{kind} f{number} = {number + 1};" for number, (kind, _) in enumerate(kinds)))
    for other, row in kinds:
        later = message(*(f"{other} f{number} = {number + 1};" for number in range(len(kinds))))
        wanted = [f"FIELD_SCALAR_KIND_CHANGED #/A/{n + 1}" for n, (_, its) in enumerate(kinds) if its != row]
        assert changes(earlier, later) == wanted


@pytest.mark.long
def test_messages_of_other_files_are_compared_where_fields_have_them():
    """Also those that refer to themselves."""
    text = proto('import "b.proto";', "message A { p.B.C b = 1; }")
    before = (("b.proto", proto("package p;", "message B { message C { C c = 1; int32 n = 2; } }")),)
    after = (("b.proto", proto("package p;", "message B { message C { C c = 1; string n = 2; } }")),)
    found = ["FIELD_SCALAR_KIND_CHANGED #/B/C/2", "FIELD_NAMED_TYPE_CHANGED #/A/1"]
    assert changes(text, text, before, after) == found
    assert changes(text, text, before, before) == []


@pytest.mark.long
def test_files_that_take_too_long_to_compare(monkeypatch):
    monkeypatch.setattr(protobuf_differences, "MOST_STEPS", 3)
    text = proto(*(f"message M{number} {{}}" for number in range(3)))
    assert changes(text, text) == []
    with pytest.raises(ValueError, match="more than 3 messages"):
        changes(text + "message N {}", text + "message N {}")


def test_a_compiler_that_does_not_end(monkeypatch):
    monkeypatch.setattr(protobuf_compiler, "LIMIT_SECONDS", 0.0001)
    with pytest.raises(ValueError, match=r"it takes protoc more than 0.0001 s"):
        protobuf_compiler.compiled(ORDER + "// not asked before\n", ())


def test_a_subject_keeps_its_kind(ask):
    ask.register("s", ORDER, "PROTOBUF")
    assert ask.register("s", '"int"') == 40901
    assert ask("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])


def test_without_its_package_it_says_what_to_install(monkeypatch, ask):
    told = "the package grpcio-tools is not installed; pip install 'pykafkad[registry]'"
    monkeypatch.setattr(registry.extras, "missing", lambda name: told if name == "grpc_tools.protoc" else None)
    status, answer = ask("POST", "/subjects/s/versions", {"schema": ORDER, "schemaType": "PROTOBUF"})
    assert (status, answer["message"]) == (422, f"Invalid schema type PROTOBUF: {told}")
