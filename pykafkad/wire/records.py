"""Records inside a batch: reading them, decompressing a body up to a limit, writing one.

Layout: KIP-98, and "Message format" in Kafka's documentation. Every length is compared with the bytes that are left
before anything is sliced. A wrong length or count raises `KafkaError(INVALID_RECORD)`.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire.batch import CODEC_MASK, HEADER_SIZE_BYTES, LOG_APPEND_TIME_BIT, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pykafkad.wire.batch import BatchHeader, Buffer

# The limit of a decompressed batch. A zstd batch of one megabyte can hold 32 GiB of zeros, so reading stops here. Kafka
# has no such limit; batches of correct clients are far below it.
MAX_OPENED_BYTES = 64 * 1024 * 1024

# The limit of records in a compressed batch. Two kilobytes of zstd can hold four million empty records, which would
# block the loop for half a minute. A megabyte of the shortest useful records is below this limit.
MAX_OPENED_RECORDS = 250_000


class Record(namedtuple("Record", ("offset", "timestamp_ms", "key", "value", "headers"))):
    """One record. `headers` is a list of (name, value)."""

    __slots__ = ()

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def _append_varint(out: bytearray, value: int) -> None:
    # Zigzag, then seven bits a byte, lowest first: the same bytes serve varint and varlong.
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def encode_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Sequence[tuple[str, Buffer | None]] = (),
) -> None:
    """Appends one record, with its length in front, to `out`."""
    body = bytearray(1)
    _append_varint(body, timestamp_delta)
    _append_varint(body, offset_delta)
    for field in (key, value):
        if field is None:
            body.append(1)
        else:
            _append_varint(body, len(field))
            body += field
    _append_varint(body, len(headers))
    for name, content in headers:
        encoded = name.encode()
        _append_varint(body, len(encoded))
        body += encoded
        if content is None:
            body.append(1)
        else:
            _append_varint(body, len(content))
            body += content
    _append_varint(out, len(body))
    out += body


def _invalid(text: str) -> KafkaError:
    return KafkaError(errors.INVALID_RECORD, text)


def _read_varint(body: Buffer, position: int, max_bytes: int = 5) -> tuple[int, int]:
    value = shift = 0
    for count in range(max_bytes):
        byte = body[position + count]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + count + 1
        shift += 7
    raise _invalid(f"a varint at byte {position} of the records is longer than {max_bytes} bytes")


def _read_field(body: Buffer, position: int, end: int, what: str) -> tuple[bytes | None, int]:
    length, position = _read_varint(body, position)
    if length < 0:
        return None, position
    if length > end - position:
        raise _invalid(f"a {what} has {length} bytes where its record has {end - position} left")
    return bytes(body[position : position + length]), position + length


def open_body(view: Buffer, header: BatchHeader, max_bytes: int = MAX_OPENED_BYTES) -> Buffer:
    """The bytes of a batch's records, decompressed where a codec is set: `bytes`, or a slice of `view`.

    Raises `KafkaError`: UNSUPPORTED_COMPRESSION_TYPE for an unknown codec, CORRUPT_MESSAGE for bytes that do not
    decompress, MESSAGE_TOO_LARGE above `max_bytes`.
    """
    codec = header.attributes & CODEC_MASK
    body = view[HEADER_SIZE_BYTES : header.length + 12]
    if codec == 0:
        return body
    from pykafkad.wire.compression import decompress

    return decompress(codec, body, max_bytes)


def iterate_records(
    view: Buffer, header: BatchHeader | None = None, max_bytes: int = MAX_OPENED_BYTES
) -> Iterator[Record]:
    """Yields the `Record`s of the batch at the start of `view`, with absolute offsets and timestamps.

    Checks lengths, counts, and that nothing follows the last record: `KafkaError(INVALID_RECORD)`. A compressed batch
    of more than `MAX_OPENED_RECORDS` is `KafkaError(MESSAGE_TOO_LARGE)`.
    """
    if header is None:
        header = parse_header(view)
    if header.record_count > MAX_OPENED_RECORDS and header.attributes & CODEC_MASK:
        raise KafkaError(
            errors.MESSAGE_TOO_LARGE,
            f"a compressed batch has {header.record_count} records; at most {MAX_OPENED_RECORDS} are allowed",
        )
    body = open_body(view, header, max_bytes)
    position, size = 0, len(body)
    log_append_time = header.attributes & LOG_APPEND_TIME_BIT
    try:
        for _ in range(header.record_count):
            length, position = _read_varint(body, position)
            end = position + length
            if length < 0 or end > size:
                raise _invalid(f"a record has {length} bytes where {size - position} are left")
            yield _read_record(body, position, end, header, log_append_time)
            position = end
    except IndexError:
        raise _invalid(f"the batch ends before the last of {header.record_count} records") from None
    if position != size:
        raise _invalid(f"{size - position} bytes follow the last of {header.record_count} records")


def _read_record(body: Buffer, position: int, end: int, header: BatchHeader, log_append_time: int) -> Record:
    timestamp_delta, position = _read_varint(body, position + 1, 10)
    offset_delta, position = _read_varint(body, position)
    key, position = _read_field(body, position, end, "key")
    value, position = _read_field(body, position, end, "value")
    count, position = _read_varint(body, position)
    headers = []
    # A header takes at least two bytes, so a count above the bytes that are left is wrong.
    if count < 0 or count > end - position:
        raise _invalid(f"a record has {count} headers in {end - position} bytes")
    for _ in range(count):
        name, position = _read_field(body, position, end, "header name")
        if name is None:
            raise _invalid("a header name is null")
        content, position = _read_field(body, position, end, "header value")
        try:
            headers.append((name.decode(), content))
        except UnicodeDecodeError:
            raise _invalid("a header name is not UTF-8") from None
    if position != end:
        raise _invalid(f"a record's fields end at byte {position} but its length says {end}")
    timestamp_ms = header.max_timestamp_ms if log_append_time else header.base_timestamp_ms + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp_ms, key, value, headers)
