"""The 61-byte header, building a batch, and the checksum. kafka-python's own codec is the second opinion."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings, strategies as st

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire.batch import (
    HEADER_SIZE_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAX_SEQUENCE,
    PREFIX,
    advance_sequence,
    build_batch,
    control_key,
    crc32c,
    parse_header,
    set_max_timestamp,
    validate,
)
from pykafkad.wire.records import iterate_records
from tests.seeds import examples
from tests.wire.kafka_python import DefaultRecordBatch, DefaultRecordBatchBuilder

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
RECORDS = st.lists(
    st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=200), HEADERS, st.integers(0, 2**45)),
    min_size=1,
    max_size=20,
)


def test_crc32c_is_castagnoli():
    """The check value of CRC-32C is right, and a checksum can continue from a first part."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(memoryview(b"x123456789")[1:]) == 0xE3069283


def test_the_header_has_the_layout_of_kip_98():
    """Every field is at its place, big-endian."""
    batch = build_batch(
        [(b"k", b"v"), (None, None)],
        base_offset=7,
        timestamp_ms=1000,
        leader_epoch=3,
        producer_id=11,
        producer_epoch=2,
        base_sequence=5,
        is_transactional=True,
    )
    assert struct.unpack_from(">qiiB", batch) == (7, len(batch) - 12, 3, 2)
    assert struct.unpack_from(">I", batch, 17)[0] == crc32c(batch[21:])
    assert struct.unpack_from(">hiqqqhii", batch, 21) == (0x10, 1, 1000, 1000, 11, 2, 5, 2)
    assert batch[HEADER_SIZE_BYTES:] == bytes.fromhex("10 00 00 00 02 6b 02 76 000c 00 00 02 01 01 00")
    header = parse_header(batch)
    assert (header.size_bytes, header.last_offset, header.end_offset, header.last_sequence) == (len(batch), 8, 9, 6)
    assert (header.codec, header.is_transactional, header.is_control, header.has_log_append_time) == (
        0,
        True,
        False,
        False,
    )


@settings(max_examples=examples(100), deadline=None)
@given(RECORDS, st.integers(0, 4))
def test_kafka_python_reads_our_batches(rows, codec):
    batch = build_batch(rows, codec=codec)
    theirs = DefaultRecordBatch(bytes(batch))
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in theirs] == [
        (offset, timestamp_ms, key, value, headers) for offset, (key, value, headers, timestamp_ms) in enumerate(rows)
    ]


@settings(max_examples=examples(100), deadline=None)
@given(RECORDS, st.integers(0, 4))
def test_we_read_kafka_pythons_batches(rows, codec):
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=4,
        producer_epoch=1,
        base_sequence=9,
        batch_size=1 << 20,
    )
    for offset, (key, value, headers, timestamp_ms) in enumerate(rows):
        builder.append(offset, timestamp_ms, key, value, headers)
    built = memoryview(builder.build())
    header = validate(built)
    assert (header.record_count, header.producer_id, header.base_sequence) == (len(rows), 4, 9)
    assert [tuple(record) for record in iterate_records(built, header)] == [
        (offset, timestamp_ms, key, value, headers) for offset, (key, value, headers, timestamp_ms) in enumerate(rows)
    ]


def test_the_checksum_does_not_cover_the_leaders_fields():
    batch = memoryview(build_batch([(None, b"v")] * 3))
    PREFIX.pack_into(batch, 0, 1 << 40, len(batch) - LENGTH_OVERHEAD_BYTES, 12)
    header = validate(batch)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 12)


def test_setting_the_timestamp_updates_the_checksum():
    batch = memoryview(build_batch([(None, b"v", (), 10), (None, b"v", (), 30)]))
    set_max_timestamp(batch, 99, log_append_time=True)
    header = validate(batch)
    assert (header.has_log_append_time, header.base_timestamp_ms, header.max_timestamp_ms) == (True, 10, 99)
    assert [record.timestamp_ms for record in iterate_records(batch)] == [99, 99]
    set_max_timestamp(batch, 30, log_append_time=False)
    assert [record.timestamp_ms for record in iterate_records(batch)] == [10, 30]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:60],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:16] + b"\1" + data[17:],
        lambda data: data[:30] + b"\xff" + data[31:],
        lambda data: b"",
    ],
)
def test_an_invalid_batch_is_corrupt(change):
    with pytest.raises(KafkaError) as caught:
        validate(change(bytes(build_batch([(b"k", b"v")]))))
    assert caught.value.code == errors.CORRUPT_MESSAGE


def test_sequence_numbers_wrap_to_zero():
    assert advance_sequence(MAX_SEQUENCE, 1) == 0
    assert advance_sequence(MAX_SEQUENCE - 1, 5) == 3
    assert advance_sequence(7, 0) == 7


def test_keys_of_control_records():
    assert control_key(2) == b"\0\0\0\2"
