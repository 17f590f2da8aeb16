"""Messages of magic 0 and 1, beside kafka-python's reader and writer of them."""

from __future__ import annotations

import warnings

import pytest

from pykafkad.errors import KafkaError, name
from pykafkad.wire import message_sets
from pykafkad.wire.compression import CODECS, LZ4, ZSTD
from pykafkad.wire.records import Record

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

RECORDS = [Record(10, 1000, b"k", b"v" * 40, []), Record(11, 1005, None, b"", []), Record(14, 1002, b"", None, [])]
OLD_CODECS = [codec for codec in CODECS if codec != ZSTD]
CORRUPT = "CORRUPT_MESSAGE"
# kafka-python needs one more package for lz4 of magic 0; compat_tests/test_old_formats.py has Kafka read and write it.
SHARED = [(magic, codec) for magic in (0, 1) for codec in OLD_CODECS if (magic, codec) != (0, LZ4)]


def read(content: bytes) -> list[message_sets.Message]:
    found = []
    for position, size, _ in message_sets.sizes(content):
        message = message_sets.message_at(content, position, size)
        found += message_sets.opened(message) if message.codec else [message]
    return found


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_what_is_written_is_read(magic: int, codec: int) -> None:
    content = message_sets.written(RECORDS, magic, codec, 8)
    found = read(content + content[:20])
    assert [(each.offset, each.key, each.value) for each in found] == [(each[0], each[2], each[3]) for each in RECORDS]
    assert [each.timestamp_ms for each in found] == ([-1] * 3 if magic == 0 else [1000, 1005, 1002])
    assert all(each.is_intact for each in found)


@pytest.mark.parametrize(("magic", "codec"), SHARED)
def test_kafka_python_reads_what_is_written(magic: int, codec: int) -> None:
    content = message_sets.written(RECORDS, magic, codec, 8)
    found = []
    for position, size, _ in message_sets.sizes(content):
        batch = LegacyRecordBatch(memoryview(content)[position : position + size], magic)
        assert batch.validate_crc()
        found += [(each.offset, each.timestamp, each.key, each.value) for each in batch]
    times = [1000, 1005, 1002] if magic else [None] * 3
    assert found == [(each[0], at, each[2], each[3]) for each, at in zip(RECORDS, times, strict=True)]


@pytest.mark.parametrize(("magic", "codec"), SHARED)
def test_what_kafka_python_writes_is_read(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for index, record in enumerate(RECORDS):
        builder.append(index, timestamp=record.timestamp_ms, key=record.key, value=record.value)
    found = read(bytes(builder.build()))
    # A producer's wrapper has no offset yet, so those inside begin below zero.
    assert [(each.offset - found[0].offset, each.key, each.value) for each in found] == [
        (index, record.key, record.value) for index, record in enumerate(RECORDS)
    ]


def test_the_time_of_an_append_is_that_of_every_message() -> None:
    found = read(message_sets.written(RECORDS, 1, 1, 8, 7777))
    assert [each.timestamp_ms for each in found] == [7777] * 3 and all(each.has_log_append_time for each in found)


def test_a_header_of_lz4_is_wrong_in_magic_0() -> None:
    """KAFKA-3160: readers of that time expect it so."""
    frames = []
    for magic in (0, 1):
        content = message_sets.written(RECORDS, magic, LZ4, 8)
        frames.append(message_sets.message_at(content, 0, len(content)).value)
    assert frames[0][:6] == frames[1][:6] and frames[0][6] != frames[1][6]


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"0123456789abcdef", 0xC2C45B69)],
)
def test_checksums_of_headers(data: bytes, expected: int) -> None:
    assert message_sets._xxhash32(data) == expected


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\0" * 8 + b"\0\0\0\x03" + b"\0" * 10, CORRUPT),
        (b"\0" * 8 + b"\0\0\0\x20" + b"\0\0\0\0\x07" + b"\0" * 40, CORRUPT),
        (b"\0" * 8 + b"\0\0\0\x0e" + b"\0" * 4 + b"\0\0" + b"\0\0\0\x09" + b"\0\0\0\x09", CORRUPT),
    ],
)
def test_bytes_that_are_no_messages(content: bytes, code: str) -> None:
    with pytest.raises(KafkaError) as caught:
        read(content)
    assert name(caught.value.code) == code


def test_what_a_compressed_message_may_not_be() -> None:
    wrapper = message_sets.Message(5, 1, ZSTD, 0, None, b"x", True)
    for wrong, code in (
        (wrapper, "INVALID_RECORD"),
        (wrapper._replace(attributes=1, value=None), "INVALID_RECORD"),
        (wrapper._replace(attributes=1), CORRUPT),
    ):
        with pytest.raises(KafkaError) as caught:
            message_sets.opened(wrong)
        assert name(caught.value.code) == code


def test_a_compressed_message_has_at_most_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    content = message_sets.written(RECORDS, 1, 1, 8)
    monkeypatch.setattr(message_sets, "MAX_OPENED_RECORDS", 3)
    assert len(read(content)) == 3
    monkeypatch.setattr(message_sets, "MAX_OPENED_RECORDS", 2)
    with pytest.raises(KafkaError, match="more than 2 messages"):
        read(content)
