"""Which batches a log refuses, with which error code, and how it changes others. The codes are Kafka 4.3.1's."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log.append_rules import NotOneBatch
from pykafkad.wire.batch import HEADER, build_batch, crc32c
from pykafkad.wire.compression import CODECS, IDS
from tests.log.settings import NOW_MS, append, batch, content, open_directory, open_log
from tests.simulation.disk import MemoryDisk

FIELDS = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp_ms",
    "max_timestamp_ms",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)


@pytest.fixture
def new_log():
    return lambda **changes: open_log(open_directory(disk=MemoryDisk()), **changes)


def patched(right_checksum=True, source=None, **fields):
    """A batch of three records with header fields overwritten."""
    data = bytearray(source if source is not None else batch(3))
    header = dict(zip(FIELDS, HEADER.unpack_from(data), strict=False))
    header.update(fields)
    HEADER.pack_into(data, 0, *header.values())
    if right_checksum and "crc" not in fields:
        header["crc"] = crc32c(data[21:])
        HEADER.pack_into(data, 0, *header.values())
    return memoryview(data)


def refused(log, records, version=13, now_ms=NOW_MS):
    """The error of an append, which must neither use an offset nor change the batch."""
    before, end_offset = bytes(records), log.end_offset
    with pytest.raises(KafkaError) as caught:
        log.append(records, now_ms, produce_version=version)
    assert (bytes(records), log.end_offset, log.written_end_offset) == (before, end_offset, end_offset)
    return caught.value


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (b"", errors.INVALID_RECORD),
        (b"\0" * 11, errors.INVALID_RECORD),
        (bytes(batch(3))[:-1], errors.INVALID_RECORD),
        (bytes(batch(3))[:40], errors.INVALID_RECORD),
        (bytes(batch(3)) * 2, errors.INVALID_RECORD),
        (patched(magic=0), errors.INVALID_RECORD),
        (patched(magic=1), errors.INVALID_RECORD),
        (patched(magic=3), errors.CORRUPT_MESSAGE),
        (patched(magic=255), errors.CORRUPT_MESSAGE),
        (patched(length=-1), errors.CORRUPT_MESSAGE),
        (patched(length=13), errors.CORRUPT_MESSAGE),
        (patched(length=1 << 30), errors.INVALID_RECORD),
        (patched(length=30), errors.CORRUPT_MESSAGE),
        (patched(base_offset=1), errors.INVALID_RECORD),
        (patched(base_offset=-1), errors.INVALID_RECORD),
        (patched(crc=1), errors.CORRUPT_MESSAGE),
        (patched(attributes=5), errors.UNKNOWN_SERVER_ERROR),
        (patched(attributes=0x20), errors.INVALID_RECORD),
        (patched(attributes=0x10), errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (patched(last_offset_delta=-1), errors.INVALID_RECORD),
        (patched(last_offset_delta=1), errors.INVALID_RECORD),
        (patched(record_count=0), errors.INVALID_RECORD),
        (patched(record_count=-1), errors.INVALID_RECORD),
        (patched(record_count=4), errors.INVALID_RECORD),
        (patched(record_count=1 << 20, last_offset_delta=(1 << 20) - 1), errors.INVALID_RECORD),
        (patched(producer_id=5, producer_epoch=0), errors.INVALID_RECORD),
        (patched(source=batch(3, codec=IDS["gzip"]), attributes=IDS["zstd"]), errors.UNKNOWN_SERVER_ERROR),
        (patched(source=batch(3, codec=IDS["zstd"]), attributes=IDS["snappy"]), errors.UNKNOWN_SERVER_ERROR),
    ],
    ids=lambda value: "batch" if isinstance(value, memoryview) else str(value),
)
def test_a_malformed_batch_is_refused_with_kafkas_code(new_log, records, code):
    """The next valid batch gets the offset that the refused one would have had."""
    log = new_log()
    assert refused(log, memoryview(bytearray(records))).code == code
    assert append(log, batch(3)) == [0]


def test_an_incomplete_batch_after_a_whole_one_is_dropped(new_log):
    """Kafka trims incomplete batches too."""
    log = new_log()
    append(log, memoryview(bytearray(bytes(batch(3)) + bytes(batch(3))[:40])))
    assert (log.end_offset, len(content(log))) == (3, 1)


def test_records_that_are_no_batch_are_refused_before_the_log_is_looked_at(new_log):
    """The response then has no log start offset, as in Kafka."""
    assert isinstance(refused(new_log(), memoryview(bytearray())), NotOneBatch)
    assert isinstance(refused(new_log(), patched(length=0)), NotOneBatch)
    assert not isinstance(refused(new_log(), memoryview(bytearray(bytes(batch(3)) + b"\0" * 20))), NotOneBatch)
    assert not isinstance(refused(new_log(), patched(base_offset=1)), NotOneBatch)


@pytest.mark.parametrize("codec", CODECS)
def test_zstd_needs_produce_7(new_log, codec):
    """KIP-110: in older versions it is UNSUPPORTED_COMPRESSION_TYPE. All versions take every other codec."""
    log = new_log()
    if CODECS[codec][0] == "zstd":
        assert refused(log, batch(3, codec=codec), 6).code == errors.UNSUPPORTED_COMPRESSION_TYPE
    else:
        log.append(batch(3, codec=codec), NOW_MS, produce_version=3)
    log.append(batch(3, codec=codec), NOW_MS, produce_version=7)


def test_batches_above_the_size_limits_are_refused(new_log):
    """max.message.bytes is checked first, segment.bytes last."""
    size = len(batch(3))
    assert refused(new_log(max_message_bytes=size - 1), batch(3)).code == errors.MESSAGE_TOO_LARGE
    assert refused(new_log(segment_bytes=size - 1), batch(3)).code == errors.RECORD_LIST_TOO_LARGE
    assert append(new_log(max_message_bytes=size, segment_bytes=size), batch(3)) == [0]


def test_records_without_a_key_are_refused_on_a_compacted_topic(new_log):
    """The code is INVALID_RECORD, and the response names each such record."""
    log = new_log(cleanup_policy=frozenset(("compact",)))
    mixed = memoryview(build_batch([(b"k", b"v"), (None, b"v"), (b"k", None), (None, None)], timestamp_ms=NOW_MS))
    error = refused(log, mixed)
    assert (error.code, [index for index, _ in error.record_errors]) == (errors.INVALID_RECORD, [1, 3])
    assert append(log, memoryview(build_batch([(b"k", b"v"), (b"", None)], timestamp_ms=NOW_MS))) == [0]


@pytest.mark.parametrize(
    ("changes", "offsets_ms", "wrong"),
    [
        ({"message_timestamp_before_max_ms": 1000}, (0, -1001, -1000, -5000), [1, 3]),
        ({"message_timestamp_after_max_ms": 1000}, (0, 1001, 1000), [1]),
        ({"message_timestamp_before_max_ms": 1000}, (-1000, 0), []),
        ({}, (-NOW_MS, 3_600_000), []),
        ({}, (3_600_001,), [0]),
    ],
)
def test_timestamps_out_of_range_are_refused(new_log, changes, offsets_ms, wrong):
    """The code is INVALID_TIMESTAMP with each record outside [now - before.max, now + after.max]."""
    log = new_log(**changes)
    records = memoryview(build_batch([(None, b"v", (), NOW_MS + ms) for ms in offsets_ms]))
    if not wrong:
        assert append(log, records) == [0]
        return
    error = refused(log, records)
    assert (error.code, [index for index, _ in error.record_errors]) == (errors.INVALID_TIMESTAMP, wrong)


def test_records_without_a_timestamp_pass_the_range_check(new_log):
    append(new_log(message_timestamp_before_max_ms=10, message_timestamp_after_max_ms=10), batch(timestamp_ms=-1))


def test_a_client_may_not_set_the_timestamp_type_log_append_time(new_log):
    error = refused(new_log(), patched(attributes=0x08, base_timestamp_ms=-1, max_timestamp_ms=-1))
    assert (error.code, len(error.record_errors)) == (errors.INVALID_TIMESTAMP, 3)


def test_a_wrong_max_timestamp_is_corrected_when_the_batch_is_opened(new_log):
    """Kafka always recomputes it from the records; here that happens when a rule opens the batch."""
    log = new_log(message_timestamp_before_max_ms=1000)
    append(log, patched(max_timestamp_ms=NOW_MS + 500))
    assert content(log)[0][0].max_timestamp_ms == NOW_MS


def test_log_append_time_replaces_the_producers_timestamps(new_log):
    """The type bit, the max timestamp and the checksum change, and the response has the broker's time."""
    log = new_log(message_timestamp_type="LogAppendTime")
    result = log.append(batch(3, timestamp_ms=5), NOW_MS)
    log.write_pending()
    assert result.log_append_time_ms == NOW_MS
    header, records = content(log)[0]
    assert (header.has_log_append_time, header.max_timestamp_ms, header.base_timestamp_ms) == (True, NOW_MS, 5)
    assert {record.timestamp_ms for record in records} == {NOW_MS}
    data = log.read(0, 1000, end_offset=3).pread()
    assert crc32c(data[21:]) == header.crc


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", [row[0] for row in CODECS.values()])
@pytest.mark.parametrize("stamped", [False, True])
def test_the_broker_recompresses_to_the_topics_compression_type(new_log, source, target, stamped):
    """Keys, values, headers, timestamps and the producer stay. A batch of the right codec is not changed."""
    log = new_log(
        compression_type="uncompressed" if target == "none" else target,
        message_timestamp_type="LogAppendTime" if stamped else "CreateTime",
    )
    rows = [(b"k%d" % number, b"v" * 200, [("h", b"x"), ("n", None)], NOW_MS + number) for number in range(20)]
    sent = build_batch(rows, codec=source, producer_id=9, producer_epoch=2, base_sequence=0)
    append(log, memoryview(sent))
    header, records = content(log)[0]
    assert (header.codec, header.producer_id, header.producer_epoch, header.base_sequence) == (IDS[target], 9, 2, 0)
    assert [(record.key, record.value, record.headers) for record in records] == [row[:3] for row in rows]
    assert [record.timestamp_ms for record in records] == ([NOW_MS] * 20 if stamped else [row[3] for row in rows])
    assert log.producers[9].next_sequence == 20


@pytest.mark.parametrize(
    ("codec", "setting"),
    [("gzip", "compression_gzip_level"), ("lz4", "compression_lz4_level"), ("zstd", "compression_zstd_level")],
)
def test_compression_levels_are_applied(new_log, codec, setting):
    """KIP-390: a higher level makes no batch larger, and every level can be read."""
    sizes = []
    text = " ".join(str(number * 7919 % 1000) for number in range(4000)).encode()
    for level in (1, CODECS[IDS[codec]][2]):
        log = new_log(compression_type=codec, **{setting: level})
        append(log, memoryview(build_batch([(None, text)], timestamp_ms=NOW_MS)))
        sizes.append(log.size_bytes)
        assert content(log)[0][1][0].value == text
    assert sizes[1] < sizes[0]


def test_a_batch_that_recompression_makes_too_large_is_refused(new_log):
    """max.message.bytes applies to the stored batch too."""
    log = new_log(compression_type="uncompressed", max_message_bytes=1000)
    assert refused(log, batch(1, 5000, codec=IDS["gzip"])).code == errors.MESSAGE_TOO_LARGE


def test_malformed_records_are_refused_when_the_batch_is_opened(new_log):
    """A record length beyond the batch, and bytes after the last record, give INVALID_RECORD."""
    log = new_log(cleanup_policy=frozenset(("compact",)))
    whole = build_batch([(b"k", b"v" * 50)], timestamp_ms=NOW_MS)
    for position, byte in ((61, 0x7E), (61, 0x02), (65, 0x7E)):
        lying = bytearray(whole)
        lying[position] = byte
        assert refused(log, patched(source=lying)).code == errors.INVALID_RECORD


def test_a_decompression_bomb_is_refused(new_log, monkeypatch):
    """A small batch may hold gigabytes of zeros, so decompression stops at a limit."""
    monkeypatch.setattr("pykafkad.log.append_rules.MAX_OPENED_BYTES", 100_000)
    log = new_log(compression_type="uncompressed")
    for codec in (1, 2, 3, 4):
        assert refused(log, batch(1, 200_000, codec=codec)).code == errors.MESSAGE_TOO_LARGE


def test_a_batch_refused_for_its_sequence_is_not_changed(new_log):
    """Neither timestamp nor offset may be written into it, because the caller may try again."""
    log = new_log(message_timestamp_type="LogAppendTime")
    append(log, batch(producer_id=1, producer_epoch=0, base_sequence=0))
    assert (
        refused(log, batch(producer_id=1, producer_epoch=0, base_sequence=5)).code
        == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_the_fast_path_and_the_slow_path_store_the_same_bytes(new_log):
    """A batch that passes all rules of a topic is stored as on a topic without rules."""
    short, long = new_log(), new_log(message_timestamp_before_max_ms=1000)
    for codec in CODECS:
        for keywords in ({}, {"producer_id": codec, "producer_epoch": 1, "base_sequence": 3}):
            append(short, batch(3, 50, codec=codec, **keywords))
            append(long, batch(3, 50, codec=codec, **keywords))
    assert (
        short.read(0, 1 << 20, end_offset=short.end_offset).pread()
        == long.read(0, 1 << 20, end_offset=long.end_offset).pread()
    )
