"""Records inside a batch: valid and malformed bodies."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire.batch import HEADER_SIZE_BYTES, build_batch, parse_header
from pykafkad.wire.compression import ZSTD, compress
from pykafkad.wire.records import MAX_OPENED_RECORDS, encode_record, iterate_records
from tests.seeds import examples


def with_body(body: bytes, count=1) -> bytes:
    """A batch header of `count` records before these bytes."""
    header = bytearray(build_batch([(None, None)] * count)[:HEADER_SIZE_BYTES])
    header[8:12] = (HEADER_SIZE_BYTES - 12 + len(body)).to_bytes(4, "big")
    return bytes(header) + body


def record(*rest: int) -> bytes:
    """A record with its length, attributes, timestamp delta and offset delta before these bytes."""
    return bytes([2 * (3 + len(rest)), 0, 0, 0, *rest])


GOOD = record(1, 1, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        GOOD[:-1],
        GOOD + b"\0",
        b"\x01" + GOOD,
        b"\x80\x80\x80\x80\x80\x01" + GOOD,
        record(20, 1, 0),
        record(1, 20, 0),
        record(1, 1, 20),
        record(1, 1, 1),
        record(1, 1, 0, 0),
        record(1, 1),
        record(1, 1, 2, 1, 1),
        record(1, 1, 2, 20, 1),
        record(1, 1, 2, 2, 0xFF, 1),
        record(1, 1, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F),
        b"\x00",
    ],
    ids=bytes.hex,
)
def test_false_lengths_and_counts_are_invalid_records(body):
    """Lengths of records, keys, values and headers, header counts, endless varints, null header names, extra bytes.

    Nothing is read beyond the batch.
    """
    with pytest.raises(KafkaError) as caught:
        list(iterate_records(with_body(body) + GOOD * 3))
    assert caught.value.code == errors.INVALID_RECORD


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (record(20, 1, 0), "a key has 10 bytes where its record has 2 left"),
        (record(1, 20, 0), "a value has 10 bytes where its record has 1 left"),
        (record(1, 1, 2, 20, 1), "a header name has 10 bytes where its record has 1 left"),
    ],
    ids=["key", "value", "header-name"],
)
def test_a_field_that_reaches_beyond_its_record_is_named(body, text):
    """The field is refused by its own length, before its bytes are read from the next record."""
    with pytest.raises(KafkaError, match=text):
        list(iterate_records(with_body(body + GOOD * 4)))


def test_a_valid_body_is_read():
    assert [tuple(found) for found in iterate_records(with_body(GOOD))] == [(0, 0, None, None, [])]


@pytest.mark.parametrize("count", [0, 2, 2**31 - 1])
def test_the_record_count_must_match_the_body(count):
    header = parse_header(with_body(GOOD))._replace(record_count=count)
    with pytest.raises(KafkaError) as caught:
        list(iterate_records(with_body(GOOD), header))
    assert caught.value.code == errors.INVALID_RECORD


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60), st.integers(0, 4), st.integers(1, 3))
def test_any_bytes_are_records_or_raise_a_kafka_error(body, codec, count):
    batch = bytearray(with_body(body, count))
    batch[22] = codec
    try:
        found = list(iterate_records(bytes(batch)))
    except KafkaError as error:
        assert error.code in (errors.INVALID_RECORD, errors.CORRUPT_MESSAGE)
    else:
        assert len(found) == count


@given(st.integers(-(2**62), 2**62), st.integers(0, 2**31 - 1))
def test_deltas_of_any_size_round_trip(timestamp_delta, offset_delta):
    out = bytearray()
    encode_record(out, offset_delta, timestamp_delta, None, b"v")
    header = parse_header(with_body(bytes(out)))._replace(base_timestamp_ms=0)
    (found,) = iterate_records(with_body(bytes(out)), header)
    assert (found.offset, found.timestamp_ms) == (offset_delta, timestamp_delta)


def test_a_compressed_batch_with_too_many_records_is_refused():
    """A few hundred bytes of zstd can hold a million empty records, which would take long to read."""
    for count, fits in ((1000, True), (MAX_OPENED_RECORDS + 1, False)):
        batch = bytearray(with_body(compress(ZSTD, GOOD * count)))
        assert len(batch) < 1000
        batch[22] = ZSTD
        header = parse_header(batch)._replace(record_count=count)
        if fits:
            assert len(list(iterate_records(batch, header))) == count
        else:
            with pytest.raises(KafkaError) as caught:
                next(iterate_records(batch, header))
            assert caught.value.code == errors.MESSAGE_TOO_LARGE
