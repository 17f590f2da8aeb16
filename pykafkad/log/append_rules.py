"""The rules that a batch must pass before it is appended: the slow path of `PartitionLog.append`.

A batch takes this path when a comparison of the fast path failed, or when the topic's settings require opening it:
compacted topics, LogAppendTime, a lower bound on timestamps, recompression. `check` raises `KafkaError` with the code
that Kafka 4.3.1 answers, or returns the batch to append, which may differ from the one that the client sent.

Order and codes (LogValidator, UnifiedLog, ProduceRequest in Kafka 4.3.1):

| what is wrong | code |
|---|---|
| no whole batch; a magic below 2; a second batch after the first | 87 |
| zstd below Produce 7 | 76 |
| a length below the smallest, a magic above 2 | 2 |
| base offset not 0 | 87 |
| above `max.message.bytes` | 10 |
| header cut short, wrong checksum | 2 |
| a codec outside the table; a body that does not decompress | -1 |
| last offset delta negative, record count not positive or not delta + 1, control batch, negative sequence | 87 |
| records without key on a compacted topic | 87 with record errors |
| timestamps out of range, LogAppendTime set by the client | 32 with record errors |
| records with wrong lengths, or bytes left over after the last record | 87 |
| still above `max.message.bytes` after recompression | 10 |
| above `segment.bytes` | 18 |

Messages of an older format, which versions below 3 carry, become a batch first (`message_conversion.py`).

Where we differ: Kafka walks every record of every batch. This broker opens a batch only if the topic's settings require
it, so broken records inside a batch with a valid checksum are noticed by consumers only. A compressed body whose first
bytes do not fit its codec is opened, and refused. Records may decompress to at most `records.MAX_OPENED_BYTES`.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE_BYTES,
    LENGTH_OVERHEAD_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MIN_RECORD_SIZE_BYTES,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    build_batch,
    crc32c,
    parse_header,
    set_max_timestamp,
)
from pykafkad.wire.compression import CODECS, FRAME_STARTS, IDS, ZSTD
from pykafkad.wire.records import MAX_OPENED_BYTES, iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.log_config import LogConfig
    from pykafkad.wire.records import Record

    Buffer = bytes | bytearray | memoryview
    Writable = bytearray | memoryview
    Checked = tuple[Writable, BatchHeader, int]


class NotOneBatch(KafkaError):
    """The records are not exactly one batch of magic 2. Kafka refuses them before it looks at the log."""


class OpenElsewhere(KafkaError):
    """The batch must be opened, and opening so many records would block the loop for too long.

    The caller calls `check` on another thread and passes its result to `append` as `checked`. Clients never see this
    error."""

    def __init__(self) -> None:
        super().__init__(errors.UNKNOWN_SERVER_ERROR)


# The first version of Produce that takes record batches only, and the first that takes zstd.
BATCHES_SINCE = 3
ZSTD_SINCE = 7

LONG_RECORDS = 10_000
"""Batches with more records are not opened on the loop: this many take about 20 ms."""

# The smallest length field of any batch format, and the position of the magic byte in all of them.
_MIN_LENGTH = 14
_MAGIC_POSITION = 16
_COUNT_POSITION = HEADER_SIZE_BYTES - 4
# How many record errors Kafka quotes in the error message of the whole batch.
_SHOWN_ERRORS = 3
_NEVER_MS = 1 << 62


def check(
    records: Writable, settings: LogConfig, now_ms: int, produce_version: int, from_client: bool, where: str
) -> Checked:
    """The batch to append as `(batch, header, log_append_time_ms)`.

    `batch` is a slice of `records`, or a view of a rewritten batch. `log_append_time_ms` is -1 with CreateTime. With
    `from_client` False the checks are skipped that only a client's batch can fail.
    """
    if produce_version < BATCHES_SINCE:
        from pykafkad.log.message_conversion import batch_of

        records, produce_version = batch_of(records, settings, where), ZSTD_SINCE
    batch = _one_batch(records, produce_version)
    header = _check_header(batch, settings, from_client, where)
    stamped = settings.message_timestamp_type == "LogAppendTime"
    target = _target_codec(settings.compression_type, header)
    opened: list[Record] = []
    must_open = target != header.codec or (from_client and _asks_to_open(settings, header, bytes(batch[61:63]), now_ms))
    if must_open:
        opened = _open(batch, header)
        if from_client:
            _check_records(opened, header, settings, now_ms, where)
    if target != header.codec:
        batch = _recompress(opened, header, target, settings, now_ms if stamped else NO_TIMESTAMP, where)
    elif stamped:
        batch = _with_max_timestamp(batch, now_ms, log_append_time=True)
    elif must_open and from_client:
        latest_ms = max((record.timestamp_ms for record in opened), default=NO_TIMESTAMP)
        if latest_ms != header.max_timestamp_ms:
            batch = _with_max_timestamp(batch, latest_ms, log_append_time=False)
    if len(batch) > settings.segment_bytes:
        raise KafkaError(
            errors.RECORD_LIST_TOO_LARGE,
            f"batch of {len(batch)} bytes for {where} is above segment.bytes of {settings.segment_bytes}",
        )
    return batch, parse_header(batch), now_ms if stamped else NO_TIMESTAMP


def is_long(records: Buffer, produce_version: int = BATCHES_SINCE) -> bool:
    """Whether the batch may hold more than `LONG_RECORDS` records, or messages of an older format take as long."""
    if produce_version < BATCHES_SINCE:
        from pykafkad.log.message_conversion import is_long_set

        return is_long_set(records)
    if len(records) <= HEADER_SIZE_BYTES:
        return False
    count = int.from_bytes(records[_COUNT_POSITION:HEADER_SIZE_BYTES], "big", signed=True)
    is_compressed = records[ATTRIBUTES_POSITION + 1] & CODEC_MASK
    return count > LONG_RECORDS and (
        bool(is_compressed) or count * MIN_RECORD_SIZE_BYTES <= len(records) - HEADER_SIZE_BYTES
    )


def is_transactional(records: Buffer) -> bool:
    """Whether `records` begin with a whole batch of a transaction."""
    return (
        len(records) >= HEADER_SIZE_BYTES
        and records[_MAGIC_POSITION] == MAGIC
        and bool(records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_BIT)
        and int.from_bytes(records[8:LENGTH_OVERHEAD_BYTES], "big", signed=True) + LENGTH_OVERHEAD_BYTES <= len(records)
    )


def _one_batch(records: Writable, produce_version: int) -> Writable:
    """The one whole batch at the start of `records`. An incomplete batch after it is dropped, as in Kafka."""
    size = _batch_size(records, 0)
    if size is None:
        raise NotOneBatch(
            errors.INVALID_RECORD,
            f"Produce {produce_version} needs one record batch per partition, {len(records)} bytes hold none",
        )
    if records[_MAGIC_POSITION] != MAGIC:
        raise NotOneBatch(
            errors.INVALID_RECORD, f"Produce {produce_version} takes magic {MAGIC} only, not {records[_MAGIC_POSITION]}"
        )
    codec = records[ATTRIBUTES_POSITION + 1] & CODEC_MASK
    if produce_version < ZSTD_SINCE and codec >= ZSTD:
        if codec not in CODECS:
            raise NotOneBatch(errors.UNKNOWN_SERVER_ERROR, f"a batch names the unknown codec {codec}")
        raise NotOneBatch(
            errors.UNSUPPORTED_COMPRESSION_TYPE, f"Produce {produce_version} does not take zstd, which begins with 7"
        )
    if _batch_size(records, size) is not None:
        raise NotOneBatch(
            errors.INVALID_RECORD, f"Produce {produce_version} takes exactly one record batch per partition"
        )
    return records if size == len(records) else records[:size]


def _batch_size(records: Buffer, position: int) -> int | None:
    """Size of the batch at `position`, None when it is incomplete. Raises `KafkaError` for bytes that are no batch."""
    left = len(records) - position
    if left < LENGTH_OVERHEAD_BYTES:
        return None
    # Kafka fails on the first batch while it parses the request, on a later one when it validates the batch.
    error = KafkaError if position else NotOneBatch
    length = int.from_bytes(records[position + 8 : position + LENGTH_OVERHEAD_BYTES], "big", signed=True)
    if length < _MIN_LENGTH:
        raise error(errors.CORRUPT_MESSAGE, f"a batch length of {length} is below the smallest of {_MIN_LENGTH}")
    if left <= _MAGIC_POSITION:
        return None
    if not 0 <= records[position + _MAGIC_POSITION] <= MAGIC:
        raise error(errors.CORRUPT_MESSAGE, f"a batch has the unknown magic {records[position + _MAGIC_POSITION]}")
    size = length + LENGTH_OVERHEAD_BYTES
    return size if left >= size else None


def _check_header(batch: Buffer, settings: LogConfig, from_client: bool, where: str) -> BatchHeader:
    size = len(batch)
    if from_client and any(batch[:8]):
        raise KafkaError(errors.INVALID_RECORD, f"base offset of a batch for {where} should be 0")
    if size > settings.max_message_bytes:
        raise KafkaError(
            errors.MESSAGE_TOO_LARGE,
            f"batch of {size} bytes for {where} is above max.message.bytes of {settings.max_message_bytes}",
        )
    if size < HEADER_SIZE_BYTES:
        raise KafkaError(errors.CORRUPT_MESSAGE, f"batch of {size} bytes for {where} is shorter than its header")
    header = parse_header(batch)
    if crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:
        raise KafkaError(errors.CORRUPT_MESSAGE, f"batch for {where} does not match its checksum {header.crc:#010x}")
    if header.codec not in CODECS:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, f"batch for {where} names the unknown codec {header.codec}")
    if from_client:
        _check_client_header(header, size, where)
    return header


def _check_client_header(header: BatchHeader, size: int, where: str) -> None:
    problem = None
    if header.last_offset_delta < 0:
        problem = f"a last offset delta of {header.last_offset_delta}"
    elif header.record_count <= 0:
        problem = f"a record count of {header.record_count}"
    elif header.record_count != header.last_offset_delta + 1:
        problem = f"{header.record_count} records and a last offset delta of {header.last_offset_delta}"
    elif header.is_control:
        problem = "the control bit, which clients may not set"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        problem = f"producer id {header.producer_id} with sequence {header.base_sequence}"
    elif not header.codec and header.record_count * MIN_RECORD_SIZE_BYTES > size - HEADER_SIZE_BYTES:
        problem = f"{header.record_count} records in {size - HEADER_SIZE_BYTES} bytes"
    if problem:
        raise KafkaError(errors.INVALID_RECORD, f"batch for {where} has {problem}")


def _target_codec(compression_type: str, header: BatchHeader) -> int:
    # The broker's own control batches keep their codec.
    if compression_type == "producer" or header.attributes & CONTROL_BIT:
        return header.codec
    return IDS["none" if compression_type == "uncompressed" else compression_type]


def _asks_to_open(settings: LogConfig, header: BatchHeader, first_bytes: bytes, now_ms: int) -> bool:
    return (
        "compact" in settings.cleanup_policy
        or settings.message_timestamp_before_max_ms < _NEVER_MS
        or header.max_timestamp_ms > now_ms + settings.message_timestamp_after_max_ms
        or header.max_timestamp_ms < header.base_timestamp_ms
        or header.has_log_append_time
        or (header.codec != 0 and first_bytes != FRAME_STARTS[header.codec])
    )


def _open(batch: Buffer, header: BatchHeader) -> list[Record]:
    try:
        return list(iterate_records(batch, header, MAX_OPENED_BYTES))
    except KafkaError as error:
        if error.code == errors.CORRUPT_MESSAGE:
            # In Kafka, a body that its codec cannot decompress is an unexpected error.
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR, error.text) from None
        raise


def _check_records(records: list[Record], header: BatchHeader, settings: LogConfig, now_ms: int, where: str) -> None:
    needs_key = "compact" in settings.cleanup_policy
    create_time = settings.message_timestamp_type == "CreateTime"
    earliest_ms = now_ms - settings.message_timestamp_before_max_ms
    latest_ms = now_ms + settings.message_timestamp_after_max_ms
    record_errors, timestamps = [], False
    for index, record in enumerate(records):
        if needs_key and record.key is None:
            record_errors.append(
                (index, f"Compacted topic cannot accept message without key in topic partition {where}.")
            )
        elif create_time and record.timestamp_ms != NO_TIMESTAMP:
            if not earliest_ms <= record.timestamp_ms <= latest_ms:
                timestamps = True
                record_errors.append(
                    (index, f"Timestamp {record.timestamp_ms} is outside [{earliest_ms}, {latest_ms}].")
                )
        elif header.attributes & LOG_APPEND_TIME_BIT:
            timestamps = True
            record_errors.append((index, "The timestamp type LogAppendTime is the broker's to set."))
    if timestamps:
        raise KafkaError(
            errors.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", record_errors
        )
    if record_errors:
        shown = "; ".join(f"record {index}: {text}" for index, text in record_errors[:_SHOWN_ERRORS])
        raise KafkaError(
            errors.INVALID_RECORD,
            f"{len(record_errors)} records have been rejected, of which the first: {shown}",
            record_errors,
        )


def _with_max_timestamp(batch: Buffer, max_timestamp_ms: int, *, log_append_time: bool) -> memoryview:
    # The change is made on a copy, because a batch that is refused later for its sequence must stay unchanged.
    copy = bytearray(batch)
    set_max_timestamp(copy, max_timestamp_ms, log_append_time=log_append_time)
    return memoryview(copy)


def _recompress(
    records: list[Record], header: BatchHeader, codec: int, settings: LogConfig, log_append_time_ms: int, where: str
) -> memoryview:
    """The same records in another codec, with the compression level of the topic's settings."""
    levels = {
        "gzip": settings.compression_gzip_level,
        "lz4": settings.compression_lz4_level,
        "zstd": settings.compression_zstd_level,
    }
    stamped = log_append_time_ms != NO_TIMESTAMP
    batch = build_batch(
        [(record.key, record.value, record.headers, record.timestamp_ms) for record in records],
        codec=codec,
        timestamp_ms=log_append_time_ms if stamped else 0,
        level=levels.get(CODECS[codec][0]),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        log_append_time=stamped,
        is_transactional=bool(header.attributes & TRANSACTIONAL_BIT),
    )
    if len(batch) > settings.max_message_bytes:
        raise KafkaError(
            errors.MESSAGE_TOO_LARGE,
            f"batch of {len(batch)} bytes for {where}, recompressed as {CODECS[codec][0]}, "
            f"is above max.message.bytes of {settings.max_message_bytes}",
        )
    return memoryview(batch)
