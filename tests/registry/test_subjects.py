"""Subjects, versions, ids, references and deletions, as Confluent's registry answers."""

import json

import pytest

from pykafkad.registry import registry
from pykafkad.registry.application import CONTENT_TYPE, MOST_BODY_BYTES
from tests.registry.asked import Asked, record

A = record("A", x="int")
B = record("B", x="int")


@pytest.fixture
def ask():
    return Asked()


def test_equal_schemas_have_one_id_in_all_subjects(ask):
    assert ask.register("s", A) == 1
    assert ask.register("s", json.dumps(A, indent=4)) == 1, "white space does not count"
    assert ask.register("t", B) == 2
    assert ask.register("t2", A) == 1
    assert ask("GET", "/subjects/s/versions") == (200, [1])
    assert ask("GET", "/schemas/ids/1/subjects") == (200, ["s", "t2"])
    assert ask("GET", "/schemas/ids/1/versions") == (
        200,
        [{"subject": "s", "version": 1}, {"subject": "t2", "version": 1}],
    )
    assert len(ask.store.records) == 3, "what is there already is not written again"


def test_what_is_registered_is_read_back(ask):
    ask.register("s", A)
    text = json.dumps(A, separators=(",", ":"))
    whole = {"subject": "s", "version": 1, "id": 1, "schema": text}
    assert ask("GET", "/subjects") == (200, ["s"])
    for version in ("1", "latest", "-1"):
        assert ask("GET", f"/subjects/s/versions/{version}") == (200, whole)
    assert ask("POST", "/subjects/s", {"schema": json.dumps(A)}) == (200, whole)
    assert ask("GET", "/schemas/ids/1") == (200, {"schema": text})
    assert ask("GET", "/schemas/ids/1?fetchMaxId=true") == (200, {"maxId": 1, "schema": text})
    assert ask("GET", "/schemas") == (200, [whole])
    status, headers, content = ask.bytes("GET", "/schemas/ids/1/schema")
    assert (status, headers["Content-Type"], content.decode()) == (200, CONTENT_TYPE, text)
    assert ask.bytes("GET", "/subjects/s/versions/1/schema")[2].decode() == text
    assert ask.bytes("HEAD", "/subjects")[2] == b""


def test_it_is_all_there_after_a_restart(ask):
    ask.register("s", A)
    ask("PUT", "/config/s", {"compatibility": "FULL"})
    ask("PUT", "/mode/s", {"mode": "READONLY"})
    again = ask.again()
    assert again("GET", "/subjects/s/versions/1")[1]["id"] == 1
    assert again("GET", "/config/s") == (200, {"compatibilityLevel": "FULL"})
    assert again("GET", "/mode/s") == (200, {"mode": "READONLY"})
    assert again.register("other", B) == 2


@pytest.mark.parametrize(
    "method, path, code",
    [
        ("GET", "/subjects/none/versions", 40401),
        ("GET", "/subjects/none/versions/1", 40401),
        ("DELETE", "/subjects/none", 40401),
        ("GET", "/subjects/s/versions/2", 40402),
        ("GET", "/subjects/s/versions/0", 42202),
        ("GET", "/subjects/s/versions/first", 42202),
        ("GET", "/subjects/s/versions/" + "9" * 5000, 42202),
        ("GET", "/schemas/ids/2", 40403),
        ("GET", "/schemas/ids/x", 404),
        ("GET", "/config/s", 40408),
        ("GET", "/mode/s", 40409),
        ("DELETE", "/config/s", 40401),
        ("GET", "/nothing", 404),
        ("DELETE", "/subjects", 405),
        ("GET", "/subjects/%ff/versions", 400),
        ("GET", "/subjects?offset=x", 400),
    ],
)
def test_what_is_not_there_has_its_code(ask, method, path, code):
    ask.register("s", A)
    status, answer = ask(method, path)
    assert (answer["error_code"], status) == (code, int(str(code)[:3]))


def test_a_subject_may_be_any_text(ask):
    assert ask.register("a%2Fb%20%C3%A9", A) == 1
    assert ask("GET", "/subjects") == (200, ["a/b é"])
    assert ask("GET", "/subjects?subjectPrefix=a/") == (200, ["a/b é"])
    assert ask("GET", "/subjects?subjectPrefix=b") == (200, [])


def test_pages(ask):
    for name in "abc":
        ask.register(name, A)
    assert ask("GET", "/subjects?offset=1&limit=1") == (200, ["b"])
    assert ask("GET", "/subjects?offset=1") == (200, ["b", "c"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"schema": ""},
        {"schema": 5},
        [],
        {"schema": "{"},
        {"schema": '{"type": "record", "name": "A"}'},
        {"schema": '{"type": "enum", "name": "E", "symbols": ["A", "A"]}'},
        {"schema": '"nope"'},
        {"schema": "[" * 50_000},
        {"schema": '"int"', "schemaType": "THRIFT"},
        {"schema": '"int"', "schemaType": 5},
        {"schema": '"int"', "references": 5},
        {"schema": '"int"', "references": [{"name": "n"}]},
        {"schema": '"int"', "references": [{"name": "n", "subject": "none", "version": 1}]},
        {"schema": '"int"', "id": "one"},
        {"schema": "5", "schemaType": "JSON"},
        {"schema": '{"type": 5}', "schemaType": "JSON"},
    ],
)
def test_what_is_no_schema_is_refused(ask, body):
    status, answer = ask("POST", "/subjects/s/versions", body)
    assert (status, answer["error_code"]) == (422, 42201), answer
    assert ask.store.records == []


def test_what_is_no_json_is_refused(ask):
    assert ask.bytes("POST", "/subjects/s/versions", b"{")[0] == 400
    assert ask.bytes("POST", "/subjects/s/versions", b" " * (MOST_BODY_BYTES + 1))[0] == 413


def test_deleted_softly_and_then_for_good(ask):
    ask.register("s", A)
    ask.register("s", record("A", x="int", y=("int", 1)))
    assert ask("DELETE", "/subjects/s/versions/1?permanent=true")[1]["error_code"] == 40407
    assert ask("DELETE", "/subjects/s/versions/1") == (200, 1)
    assert ask("DELETE", "/subjects/s/versions/1")[1]["error_code"] == 40406
    assert ask("GET", "/subjects/s/versions") == (200, [2])
    assert ask("GET", "/subjects/s/versions?deleted=true") == (200, [1, 2])
    assert ask("GET", "/subjects/s/versions?deletedOnly=true") == (200, [1])
    assert ask("GET", "/subjects/s/versions/1?deleted=true")[0] == 200
    assert ask("GET", "/schemas/ids/1")[0] == 200, "records that have it can still be read"
    assert ask("DELETE", "/subjects/s/versions/1?permanent=true") == (200, 1)
    assert ask("GET", "/schemas/ids/1")[1]["error_code"] == 40403
    assert ask("DELETE", "/subjects/s?permanent=true")[1]["error_code"] == 40405
    assert ask("DELETE", "/subjects/s") == (200, [2])
    assert ask("DELETE", "/subjects/s")[1]["error_code"] == 40404
    assert ask("GET", "/subjects") == (200, [])
    assert ask("GET", "/subjects?deleted=true") == (200, ["s"])
    assert ask("GET", "/subjects?deletedOnly=true") == (200, ["s"])
    again = ask.again()
    assert again("GET", "/subjects?deletedOnly=true") == (200, ["s"])
    assert ask("DELETE", "/subjects/s?permanent=true") == (200, [2])
    assert ask("GET", "/subjects?deleted=true") == (200, [])
    assert ask.register("s", B) == 3, "no id is given twice"


def test_a_subject_that_is_registered_again_goes_on_counting(ask):
    ask.register("s", A)
    ask("DELETE", "/subjects/s")
    assert ask.register("s", A) == 1
    assert ask("GET", "/subjects/s/versions") == (200, [2])


def test_references_lead_to_other_subjects(ask):
    ask.register("inner", {"type": "record", "name": "Inner", "namespace": "n", "fields": []})
    used = [{"name": "n.Inner", "subject": "inner", "version": 1}]
    assert ask.register("middle", record("Middle", inner="n.Inner"), references=used) == 2
    deeper = [{"name": "Middle", "subject": "middle", "version": 1}]
    assert ask.register("outer", record("Outer", middle="Middle"), references=deeper) == 3
    assert ask("GET", "/subjects/inner/versions/1/referencedby") == (200, [2])
    assert ask("GET", "/schemas/ids/2")[1]["references"] == used
    assert ask.register("outer", record("Outer", middle="Middle"), references=used) == 42201
    for path in ("/subjects/inner", "/subjects/inner/versions/1"):
        assert ask("DELETE", path)[1]["error_code"] == 42206
    ask("DELETE", "/subjects/outer")
    ask("DELETE", "/subjects/middle")
    assert ask("DELETE", "/subjects/inner") == (200, [1])


def test_references_that_never_end_are_refused(ask, monkeypatch):
    monkeypatch.setattr(registry, "MOST_REFERENCES", 3)
    previous = None
    for number in range(6):
        used = [] if previous is None else [{"name": previous, "subject": previous, "version": 1}]
        fields = {} if previous is None else {"f": previous}
        answer = ask.register(f"S{number}", record(f"S{number}", **fields), references=used)
        assert answer == (number + 1 if number < 4 else 42201)
        previous = f"S{number}"
        if number == 4:
            break


def test_two_that_refer_to_each_other_end(ask):
    """No registry writes such records; somebody else may."""
    value = {"subject": "a", "version": 1, "id": 1, "schema": '"int"', "deleted": False}
    for name, other in (("a", "b"), ("b", "a")):
        refers = [{"name": other, "subject": other, "version": 1}]
        key = json.dumps({"keytype": "SCHEMA", "subject": name, "version": 1, "magic": 1}).encode()
        ask.store.records.append((key, json.dumps(value | {"subject": name, "references": refers}).encode()))
    used = [{"name": "a", "subject": "a", "version": 1}]
    assert ask.register("c", '"string"', references=used) == 2


def test_records_of_others_are_named():
    ask = Asked()
    ask.store.records.append((b"key", b"value"))
    with pytest.raises(AssertionError, match="a bug in GET /subjects") as told:
        ask("GET", "/subjects")
    assert isinstance(told.value.__cause__, ValueError)


def test_modes(ask):
    ask.register("s", A)
    assert ask("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert ask("PUT", "/mode/s", {"mode": "readonly"}) == (200, {"mode": "READONLY"})
    assert ask.register("s", B) == 42205
    assert ask("DELETE", "/subjects/s")[1]["error_code"] == 42205
    assert ask.register("t", B) == 2
    assert ask("GET", "/mode/t?defaultToGlobal=true") == (200, {"mode": "READWRITE"})
    assert ask("DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    assert ask("PUT", "/mode", {"mode": "sometimes"})[1]["error_code"] == 42204
    assert ask("PUT", "/mode", {"mode": "IMPORT"})[1]["error_code"] == 42205, "there are subjects"
    assert ask("PUT", "/mode/new", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    assert ask.register("new", A) == 42205, "an import names ids"
    assert ask.register("new", A, id=2, version=7) == 42205, "that id has another schema"
    assert ask.register("new", record("C"), id=40, version=7) == 40
    assert ask("GET", "/subjects/new/versions") == (200, [7])
    assert ask.register("s", record("A", x="int", z=("int", 1)), id=3) == 42205, "no import there"
    assert ask.register("s", record("A", x="int", z=("int", 1))) == 41
