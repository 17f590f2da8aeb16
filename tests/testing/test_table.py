"""A topic as an Arrow table: `Broker.table`, and what it says of records that are something else."""

import datetime
import re

import pyarrow
import pytest

from pykafkad.testing import Broker, NewRecord


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker, request):
    return re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)


def test_bytes_as_they_are(broker, topic):
    broker.create_topic(topic, 2)
    broker.produce(
        topic,
        NewRecord(b"\xff", key=b"k", partition=1, timestamp_ms=1_700_000_000_123, headers=[("h", b"1"), ("h", None)]),
        NewRecord(None, partition=0, timestamp_ms=0),
    )
    found = broker.table(topic)
    assert found.schema.field("timestamp").type == pyarrow.timestamp("ms", tz="UTC")
    assert found.to_pylist() == [
        {
            "partition": 0,
            "offset": 0,
            "timestamp": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
            "key": None,
            "value": None,
            "headers": [],
        },
        {
            "partition": 1,
            "offset": 0,
            "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC),
            "key": b"k",
            "value": b"\xff",
            "headers": [{"name": "h", "value": b"1"}, {"name": "h", "value": None}],
        },
    ]
    assert broker.table(topic, 1).column("value").to_pylist() == [b"\xff"]


def test_json_objects_become_fields(broker, topic):
    broker.produce(topic, ("a", '{"amount": 5, "at": "x"}'), ("b", '{"amount": 7, "extra": [1]}'), ("c", None))
    found = broker.table(topic, key="text", value="json")
    assert found.column("key").to_pylist() == ["a", "b", "c"]
    assert found.column("value").to_pylist() == [
        {"amount": 5, "at": "x", "extra": None},
        {"amount": 7, "at": None, "extra": [1]},
        None,
    ]


def test_a_topic_without_records_has_the_columns(broker, topic):
    broker.create_topic(topic)
    found = broker.table(topic, value="text")
    assert found.num_rows == 0
    assert found.column_names == ["partition", "offset", "timestamp", "key", "value", "headers"]


@pytest.mark.parametrize(
    "values, content, message",
    [
        ([b"ok", b"a\xff"], "text", "the value of {}-0@1 is no UTF-8 text: invalid start byte at byte 1"),
        ([b"{}", b"{"], "json", "the value of {}-0@1 is no JSON: Expecting property name"),
        ([b"1", b'"x"'], "json", "values are JSON of different types, which are no column: "),
        ([b"[" * 100_000], "json", "the value of {}-0@0 is no JSON: "),
        ([b"18446744073709551616"], "json", "values are JSON of different types, which are no column: "),
    ],
)
def test_a_record_that_is_something_else_is_named(broker, topic, values, content, message):
    broker.produce(topic, *values)
    with pytest.raises(ValueError, match="^" + re.escape(message.format(topic))):
        broker.table(topic, value=content)


def test_a_word_that_is_none_is_refused_before_the_topic_is_read(broker):
    with pytest.raises(ValueError, match="^value='avro': must be one of bytes, text, json$"):
        broker.table("nowhere", value="avro")


def test_records_of_aborted_transactions_can_be_left_out(broker, topic):
    broker.produce(topic, b"1")
    assert broker.table(topic, committed_only=True).num_rows == 1
