"""`produce --registry` and `tail --registry`: what one writes, the other shows, and what neither can."""

from __future__ import annotations

import json

import pytest

from pykafkad.__main__ import main
from pykafkad.testing import Broker
from tests.registry.asked import record

# kafka-python reads its tables so.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]

SCHEMAS = {
    "order.avsc": json.dumps(record("Order", amount="int", city=("string", "Bern"))),
    "order.json": '{"type": "object", "properties": {"amount": {"type": "integer"}}}',
    "order.proto": 'syntax = "proto3"; message Order { int32 amount = 1; message Line { string city = 1; } }',
}


@pytest.fixture(scope="module")
def broker():
    with Broker(registry=True) as broker:
        yield broker


@pytest.fixture
def run(broker, capsys):
    """Run a command: exit code, standard output, standard error."""

    def run(command, *words, registry=True):
        where = ["--registry", broker.registry_url] if registry else []
        code = main([command, *words, *where, "--bootstrap", broker.bootstrap])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def tailed(run, topic):
    """The JSON lines of a topic."""
    code, output, errors = run("tail", topic, "--from", "start", "--stop-at-end", "--json")
    assert (code, errors) == (0, "")
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_of_a_file_is_registered_and_read(broker, run, tmp_path, name):
    path = tmp_path / name
    path.write_text(SCHEMAS[name])
    topic = f"topic-{name}"
    code, _, errors = run("produce", topic, '{"amount": 5}', "--schema", str(path))
    assert (code, errors) == (0, f"1 records written to {topic}\n")
    # The subject's latest schema is what counts without --schema.
    assert run("produce", topic, '{"amount": 6}')[0] == 0
    written = broker.records(topic)
    assert all(each.value[0] == 0 for each in written) and written[0].value[:5] == written[1].value[:5]
    lines = tailed(run, topic)
    assert [each["value"]["amount"] for each in lines] == [5, 6]
    assert all(each["value_schema_id"] == int.from_bytes(written[0].value[1:5], "big") for each in lines)
    code, output, _ = run("tail", topic, "--from", "start", "-n", "1")
    city = ',"city":"Bern"' if name == "order.avsc" else ""
    assert code == 0 and output.endswith(f'\tnull\t{{"amount":5{city}}}\n')


def test_json_records_keep_their_keys_and_tombstones(broker, run, tmp_path, monkeypatch):
    path = tmp_path / "order.avsc"
    path.write_text(SCHEMAS["order.avsc"])
    rows = ['{"key": "a", "value": {"amount": 1}}', '{"key": "a", "value": null}']
    assert run("produce", "keyed", *rows, "--json", "--schema", str(path))[0] == 0
    assert [(each.key, each.value is None) for each in broker.records("keyed")] == [(b"a", False), (b"a", True)]
    first, second = tailed(run, "keyed")
    assert (first["key"], first["value"]) == ("a", {"amount": 1, "city": "Bern"})
    assert second["value"] is None and "value_problem" not in second


@pytest.mark.long
def test_a_message_of_a_protobuf_schema(run, tmp_path):
    path = tmp_path / "order.proto"
    path.write_text(SCHEMAS["order.proto"])
    assert run("produce", "lines", '{"city": "Bern"}', "--schema", str(path), "--message", "Order.Line")[0] == 0
    assert tailed(run, "lines")[0]["value"] == {"city": "Bern"}
    code, _, errors = run("produce", "lines", "{}", "--message", "Nobody")
    assert code == 1 and "the schema has no message Nobody; it has Order, Order.Line" in errors


def test_what_no_schema_explains_is_shown_as_it_is_and_says_so(broker, run):
    """Bytes without an id, and an id that nobody has registered; a key may be without one."""
    broker.produce("strange", ("key", "plain"))
    broker.produce("strange", (None, b"\0\0\0\x03\xe7\xff"))
    first, second = tailed(run, "strange")
    assert (first["key"], first["value"]) == ("key", "plain") and "key_problem" not in first
    assert first["value_problem"] == "it does not begin with 0 and the id of a schema"
    unknown = f"the registry {broker.registry_url} knows no schema with the id 999"
    assert (second["value"], second["value_problem"]) == ({"hex": "00000003e7ff"}, unknown)
    output = run("tail", "strange", "--from", "start", "--stop-at-end")[1].splitlines()
    assert output[1].endswith(f"\t0x00000003e7ff (no value by a schema: {unknown})")
    assert output[0].endswith("\tkey\tplain (no value by a schema: it does not begin with 0 and the id of a schema)")


def test_keys_by_a_schema_are_read_too(broker, run, tmp_path):
    path = tmp_path / "order.json"
    path.write_text(SCHEMAS["order.json"])
    run("produce", "by-key", '{"amount": 1}', "--schema", str(path))
    value = broker.records("by-key")[0].value
    broker.produce("by-key", (value, value))
    line = tailed(run, "by-key")[1]
    assert line["key"] == line["value"] == {"amount": 1} and line["key_schema_id"] == line["value_schema_id"]


@pytest.mark.parametrize(
    "words, code, told",
    [
        (["x", "{"], 1, "line 1: its value is not JSON"),
        (["x", '{"amount": "much"}'], 1, "line 1: its value is not what the schema"),
        (["x", "--json", '{"value": {"amount": "much"}}'], 1, "its value is not what the schema"),
        (["x", "1", "--schema", "none-value"], 1, "--schema none-value: the registry"),
        (["unknown", "1"], 1, "--schema unknown-value: the registry"),
        (["x", "1", "--schema", "/nowhere/order.avsc"], 2, "--schema /nowhere/order.avsc: No such file"),
        (["x", "1", "--schema", "./order.txt"], 2, "a file with a schema is named *.avsc, *.json, *.proto"),
        (["x", "1", "--message", "M"], 1, "a schema of AVRO has no messages with names"),
    ],
)
def test_what_cannot_be_written(broker, run, tmp_path, words, code, told):
    path = tmp_path / "order.avsc"
    path.write_text(SCHEMAS["order.avsc"])
    assert run("produce", "x", '{"amount": 1}', "--schema", str(path))[0] == 0
    before = broker.records("x")
    found, _, errors = run("produce", *words)
    assert (found, told in errors) == (code, True), errors
    assert broker.records("x") == before


def test_options_that_need_a_registry(run):
    assert run("produce", "x", "1", "--schema", "s", registry=False)[::2] == (
        2,
        "pykafkad: --schema and --message need --registry URL\n",
    )
    assert run("tail", "x", "--registry", "nope", registry=False)[0] == 2


def test_a_registry_that_is_gone(broker, run):
    """Nothing is shown as if no schema explained it."""
    broker.produce("gone", (None, b"\0\0\0\0\x01x"))
    words = ("gone", "--from", "start", "--stop-at-end", "--registry", "http://127.0.0.1:1")
    code, output, errors = run("tail", *words, registry=False)
    assert (code, output) == (1, "") and "the registry http://127.0.0.1:1 does not answer: " in errors
