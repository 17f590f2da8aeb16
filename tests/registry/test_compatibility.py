"""Levels of compatibility, and what is compatible in Avro and JSON Schema."""

import json
import sys

import pytest

from pykafkad.registry import json_differences, json_schemas
from tests.registry.asked import Asked, record

FIRST = record("A", x="int")
MORE = record("A", x="int", y="int")
MORE_WITH_DEFAULT = record("A", x="int", y=("int", 1))


@pytest.fixture
def ask():
    return Asked()


@pytest.mark.parametrize(
    "level, earlier, later, is_compatible",
    [
        ("BACKWARD", FIRST, MORE_WITH_DEFAULT, True),
        ("BACKWARD", FIRST, MORE, False),
        ("BACKWARD", MORE, FIRST, True),
        ("FORWARD", FIRST, MORE, True),
        ("FORWARD", MORE, FIRST, False),
        ("FULL", FIRST, MORE_WITH_DEFAULT, True),
        ("FULL", FIRST, MORE, False),
        ("FULL", MORE, FIRST, False),
        ("NONE", FIRST, record("B", z="string"), True),
        ("BACKWARD", record("A", x="int"), record("A", x="long"), True),
        ("BACKWARD", record("A", x="long"), record("A", x="int"), False),
    ],
)
def test_levels(ask, level, earlier, later, is_compatible):
    assert ask("PUT", "/config/s", {"compatibility": level.lower()}) == (200, {"compatibility": level})
    ask.register("s", earlier)
    body = {"schema": json.dumps(later)}
    status, tested = ask("POST", "/compatibility/subjects/s/versions/latest?verbose=true", body)
    assert (status, tested["is_compatible"], bool(tested["messages"])) == (200, is_compatible, not is_compatible)
    assert ask("POST", "/compatibility/subjects/s/versions", body)[1] == {"is_compatible": is_compatible}
    assert ask.register("s", later) == (2 if is_compatible else 40901)


def test_transitive_levels_ask_every_version(ask):
    """The second version drops a default that the third one would need to read the first."""
    ask.register("s", FIRST)
    ask.register("s", MORE_WITH_DEFAULT)
    assert ask("POST", "/compatibility/subjects/s/versions", {"schema": json.dumps(MORE)})[1]["is_compatible"]
    ask("PUT", "/config", {"compatibility": "BACKWARD_TRANSITIVE"})
    assert ask("GET", "/config/s?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD_TRANSITIVE"})
    assert ask.register("s", MORE) == 40901
    assert ask("DELETE", "/config") == (200, {"compatibilityLevel": "BACKWARD_TRANSITIVE"})
    assert ask.register("s", MORE) == 3


def test_a_level_that_is_none_is_refused(ask):
    assert ask("PUT", "/config", {"compatibility": "SOMETIMES"})[1]["error_code"] == 42203
    assert ask("PUT", "/config", {})[1]["error_code"] == 42203
    assert ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})


def test_a_subject_keeps_its_kind(ask):
    ask.register("s", '{"type": "object"}', "JSON")
    assert ask.register("s", FIRST) == 40901
    assert ask("GET", "/subjects/s/versions/1")[1]["schemaType"] == "JSON"


def closed(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


STRING, NUMBER = {"type": "string"}, {"type": "number"}


@pytest.mark.parametrize(
    "earlier, later, kinds",
    [
        (STRING, {}, []),
        (False, STRING, []),
        (STRING, False, ["TYPE_CHANGED"]),
        ({}, STRING, ["TYPE_CHANGED"]),
        (STRING, {**STRING, "title": "t", "default": ""}, []),
        ({"type": "integer"}, NUMBER, []),
        (NUMBER, {"type": "integer"}, ["TYPE_NARROWED"]),
        ({**STRING, "maxLength": 5}, {**STRING, "maxLength": 4}, ["MAX_LENGTH_DECREASED"]),
        (STRING, {**STRING, "minLength": 1}, ["MIN_LENGTH_ADDED"]),
        ({**STRING, "pattern": "a"}, {**STRING, "pattern": "b"}, ["PATTERN_CHANGED"]),
        ({**NUMBER, "multipleOf": 4}, {**NUMBER, "multipleOf": 2}, []),
        ({**NUMBER, "multipleOf": 4}, {**NUMBER, "multipleOf": 3}, ["MULTIPLE_OF_CHANGED"]),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, []),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, ["ENUM_ARRAY_CHANGED"]),
        ({"enum": ["a"]}, STRING, []),
        ({"enum": ["a", 1]}, STRING, ["TYPE_CHANGED"]),
        ({"enum": [True]}, {"type": "integer"}, ["TYPE_CHANGED"]),
        ({"const": 1}, {"const": 2}, ["CONST_CHANGED"]),
        ({"not": NUMBER}, {"not": {"type": "integer"}}, []),
        ({"not": {"type": "integer"}}, {"not": NUMBER}, ["NOT_TYPE_EXTENDED"]),
        (closed(a=STRING), closed(a=STRING, b=STRING), []),
        (closed(a=STRING, b=STRING), closed(a=STRING), ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
        ({"properties": {"a": STRING}}, {"properties": {}}, []),
        ({"properties": {}}, {"properties": {"a": STRING}}, ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
        ({"properties": {}}, {"properties": {"a": True}}, []),
        (
            closed(a=STRING),
            {**closed(a=STRING, b=STRING), "required": ["b"]},
            ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"],
        ),
        (closed(a=STRING), {**closed(a=STRING), "required": ["a"]}, ["REQUIRED_ATTRIBUTE_ADDED"]),
        ({"type": "object"}, closed(), ["ADDITIONAL_PROPERTIES_REMOVED"]),
        ({"type": "object"}, {"type": "object", "additionalProperties": STRING}, ["ADDITIONAL_PROPERTIES_NARROWED"]),
        ({"dependentRequired": {"a": ["b"]}}, {"dependentRequired": {"a": ["b", "c"]}}, ["DEPENDENCY_ARRAY_EXTENDED"]),
        ({"type": "array", "items": STRING}, {"type": "array", "items": NUMBER}, ["TYPE_CHANGED"]),
        ({"type": "array"}, {"type": "array", "uniqueItems": True}, ["UNIQUE_ITEMS_ADDED"]),
        ({"type": ["string", "null"]}, {"type": ["null", "number", "string"]}, []),
        ({"type": ["string", "null"]}, STRING, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]),
        (STRING, {"anyOf": [NUMBER, STRING]}, []),
        ({"oneOf": [NUMBER, STRING]}, {"oneOf": [STRING]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]),
        ({"allOf": [NUMBER, {"minimum": 1}]}, NUMBER, []),
        (NUMBER, {"allOf": [NUMBER, {"minimum": 1}]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]),
    ],
)  # fmt: skip
def test_json_schemas(earlier, later, kinds):
    """The kinds of differences have Confluent's names."""
    assert [each.kind for each in json_differences.differences(earlier, {}, later, {})] == kinds


def test_references_of_json_schemas_are_followed(ask):
    earlier = {"$defs": {"n": NUMBER}, "properties": {"a": {"$ref": "#/$defs/n"}}}
    later = {"properties": {"a": {"$ref": "other.json#/definitions/i"}}}
    other = {"definitions": {"i": {"type": "integer"}}}
    (found,) = json_differences.differences(earlier, {}, later, {"other.json": other})
    assert (found.kind, found.text) == ("TYPE_NARROWED", "#/properties/a/: number became integer")
    ask.register("other", json.dumps(other), "JSON")
    ask.register("s", json.dumps(earlier), "JSON")
    used = [{"name": "other.json", "subject": "other", "version": 1}]
    assert ask.register("s", json.dumps(later), "JSON", used) == 40901
    assert ask.register("t", json.dumps(later), "JSON", used) == 3


def test_a_schema_that_refers_to_itself_ends():
    tree = {"properties": {"left": {"$ref": "#"}, "value": NUMBER}}
    assert json_differences.differences(tree, {}, tree, {}) == []
    narrower = {"properties": {"left": {"$ref": "#"}, "value": {"type": "integer"}}}
    assert [each.kind for each in json_differences.differences(tree, {}, narrower, {})] == ["TYPE_NARROWED"]


@pytest.mark.parametrize(
    "schema, message",
    [
        ({"$ref": "#/$defs/none"}, "#/$defs/none: there is nothing"),
        ({"title": "text", "$ref": "#/title"}, "leads to what is no schema"),
        ({"$ref": "none.json"}, "none.json: nothing of that name is referred to"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "leads to itself"),
    ],
)
def test_references_to_nothing_are_named(ask, schema, message):
    with pytest.raises(ValueError, match=message.replace("$", r"\$")):
        json_differences.differences(schema, {}, STRING, {})
    ask.register("s", json.dumps(schema), "JSON")
    assert ask.register("s", json.dumps(STRING), "JSON") == 42201


def test_too_many_combinations_are_refused():
    def nested(depth):
        return STRING if not depth else {"anyOf": [{"properties": {"a": nested(depth - 1)}}] * 6}

    with pytest.raises(ValueError, match="combined in more than 20000 ways"):
        json_differences.differences(nested(6), {}, {"anyOf": [NUMBER, *nested(6)["anyOf"]]}, {})


@pytest.mark.parametrize(
    "pattern, kinds", [("^(a+)+b$", ["PROPERTY_ADDED_NOT_COVERED"]), ("^x", ["OPTIONAL_PROPERTY_ADDED"])]
)
def test_patterns_of_properties_are_matched_in_linear_time(pattern, kinds):
    """Python's own expressions would take years for the first."""
    name = "a" * 60 + "b"
    earlier = {"type": "object", "patternProperties": {pattern: NUMBER}}
    later = {**earlier, "properties": {name: STRING}}
    found = json_differences.differences(earlier, {}, later, {})
    assert [each.kind.split("_TO_OPEN")[0].split("_BY_")[0] for each in found] == kinds
    never = {"type": "object", "patternProperties": {"^(a+)+$": NUMBER}}
    assert json_differences.differences(never, {}, {**never, "properties": {"a" * 60 + "!": True}}, {}) == []


def test_patterns_that_take_for_ever_or_need_a_library_are_refused(monkeypatch):
    for pattern, message in ((r"(a)\1", r"patternProperties: the pattern \(a\)"), ("a", "pip install")):
        earlier = {"type": "object", "patternProperties": {pattern: NUMBER}}
        with pytest.raises(ValueError, match=message):
            json_differences.differences(earlier, {}, {**earlier, "properties": {"a": STRING}}, {})
        monkeypatch.setitem(sys.modules, "re2", None)
        json_differences.regular_expressions.compiled.cache_clear()


def test_true_is_not_one():
    found = json_differences.differences({"enum": [True, {"a": 1}]}, {}, {"enum": [1, {"a": 1}]}, {})
    assert [each.kind for each in found] == ["ENUM_ARRAY_CHANGED"]
    assert json_differences.differences({"enum": [1.0]}, {}, {"enum": [1]}, {}) == []


def test_schemas_that_take_too_long_are_refused(ask, monkeypatch):
    monkeypatch.setattr(json_differences, "MOST_WORK", 100)
    ask.register("s", json.dumps({"enum": list(range(200))}), "JSON")
    status, answer = ask("POST", "/subjects/s/versions", {"schema": '{"enum": [1]}', "schemaType": "JSON"})
    assert (status, answer["error_code"]) == (422, 42201) and "too large to be compared" in answer["message"]


def test_schemas_of_too_many_objects_are_refused(ask):
    many = {"properties": {f"p{number}": {} for number in range(json_schemas.MOST_PARTS)}}
    assert ask.register("s", json.dumps(many), "JSON") == 42201


def test_schemas_that_are_too_deep_are_refused(ask, monkeypatch):
    """Whatever finds it first."""

    def deep(depth, inner):
        return inner if not depth else {"properties": {"a": deep(depth - 1, inner)}}

    assert ask.register("s", json.dumps(deep(400, STRING)), "JSON") == 42201
    ask.register("t", json.dumps(STRING), "JSON")

    def too_deep(*_):
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(json_differences, "differences", too_deep)
    assert ask.register("t", json.dumps(NUMBER), "JSON") == 42201
