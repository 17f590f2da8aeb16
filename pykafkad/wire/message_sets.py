"""Messages of magic 0 and 1, from before Kafka 0.11: reading and writing sets of them.

A broker meets them only when it acts as a release that still has Produce 0 to 2 and Fetch 0 to 3.

Layout: "Message format" in Kafka's older documentation, KIP-31 (relative offsets), KIP-32 (timestamps). A set is a
sequence of messages without a count; what follows the last whole one is ignored. A compressed message (a wrapper) holds
a set. Its offset is that of the last message inside. Inside of magic 1, offsets are relative.

In a frame of lz4 of magic 0, the checksum of the frame's header is wrong, because it also covers the frame's magic
number (KAFKA-3160). It is set right before such a frame is read, and wrong when one is written.
"""

from __future__ import annotations

from collections import namedtuple
from struct import Struct
from zlib import crc32

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire.batch import CODEC_MASK, LOG_APPEND_TIME_BIT, NO_TIMESTAMP
from pykafkad.wire.compression import LZ4, ZSTD, compress, decompress
from pykafkad.wire.records import MAX_OPENED_BYTES, MAX_OPENED_RECORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pykafkad.wire.records import Record

    Buffer = bytes | bytearray | memoryview

# Offset and size, checksum, magic and attributes.
_HEAD = Struct(">qiIbb")
OVERHEAD_BYTES = 12
_CHECKED_POSITION = OVERHEAD_BYTES + 4
_INT64 = Struct(">q")
_INT32 = Struct(">i")
# Checksum, magic, attributes, and the lengths of key and value.
_MIN_SIZE = 14


class Message(namedtuple("Message", ("offset", "magic", "attributes", "timestamp_ms", "key", "value", "is_intact"))):
    """One message. `is_intact` says whether its checksum is right."""

    __slots__ = ()

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    is_intact: bool

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME_BIT)


def sizes(view: Buffer) -> Iterator[tuple[int, int, int]]:
    """Position, size and magic of each whole message, or batch of magic 2, of a set.

    Raises `KafkaError(CORRUPT_MESSAGE)` for bytes that are neither.
    """
    position, end = 0, len(view)
    while end - position > _CHECKED_POSITION:
        (length,) = _INT32.unpack_from(view, position + 8)
        if length < _MIN_SIZE:
            raise KafkaError(errors.CORRUPT_MESSAGE, f"a message's size of {length} is below the smallest, {_MIN_SIZE}")
        magic = view[position + _CHECKED_POSITION]
        if magic > 2:
            raise KafkaError(errors.CORRUPT_MESSAGE, f"a message has the unknown magic {magic}")
        size = length + OVERHEAD_BYTES
        if size > end - position:
            return
        yield position, size, magic
        position += size


def message_at(view: Buffer, position: int, size: int) -> Message:
    """The message of magic 0 or 1 there. Raises `KafkaError(CORRUPT_MESSAGE)` if its lengths do not fit."""
    end = position + size
    offset, _, checksum, magic, attributes = _HEAD.unpack_from(view, position)
    is_intact = crc32(view[position + _CHECKED_POSITION : end]) == checksum
    at = position + _HEAD.size
    timestamp_ms = NO_TIMESTAMP
    if magic and end - at >= 8:
        (timestamp_ms,) = _INT64.unpack_from(view, at)
        at += 8
    fields: list[bytes | None] = []
    for _ in range(2):
        length = _INT32.unpack_from(view, at)[0] if end - at >= 4 else end
        at += 4
        if length > end - at:
            raise KafkaError(errors.CORRUPT_MESSAGE, f"a message's fields are longer than its {size} bytes")
        fields.append(None if length < 0 else bytes(view[at : at + length]))
        at += max(length, 0)
    return Message(offset, magic, attributes, timestamp_ms, fields[0], fields[1], is_intact)


def opened(wrapper: Message) -> list[Message]:
    """The messages in a compressed one, with the wrapper's time where that is the time of the append.

    Raises `KafkaError`: INVALID_RECORD for what a wrapper may not hold, as well as the errors of `decompress`.
    """
    if wrapper.codec == ZSTD or not wrapper.value:
        what = "uses zstd" if wrapper.codec == ZSTD else "is empty"
        raise KafkaError(errors.INVALID_RECORD, f"a compressed message of magic {wrapper.magic} {what}")
    content = wrapper.value
    if wrapper.codec == LZ4 and wrapper.magic == 0:
        content = _with_header_checksum(content, covers_magic=False)
    inside = decompress(wrapper.codec, content, MAX_OPENED_BYTES)
    found: list[Message] = []
    for position, size, magic in sizes(inside):
        if magic != wrapper.magic:
            text = f"a message of magic {magic} is in a compressed one of magic {wrapper.magic}"
            raise KafkaError(errors.INVALID_RECORD, text)
        if len(found) == MAX_OPENED_RECORDS:
            text = f"a compressed message has more than {MAX_OPENED_RECORDS} messages"
            raise KafkaError(errors.MESSAGE_TOO_LARGE, text)
        message = message_at(inside, position, size)
        if wrapper.has_log_append_time:
            message = message._replace(timestamp_ms=wrapper.timestamp_ms)
        found.append(message)
    if not found:
        raise KafkaError(errors.INVALID_RECORD, "a compressed message has no messages")
    if wrapper.magic:
        # Relative offsets begin wherever the client liked, and the last one is the wrapper's.
        first = wrapper.offset - found[-1].offset
        found = [message._replace(offset=first + message.offset) for message in found]
    return found


def written(
    records: Sequence[Record], magic: int, codec: int, base_offset: int, append_time_ms: int = NO_TIMESTAMP
) -> bytes:
    """A set with the records in the format of `magic`, in one compressed message if there is a codec.

    Headers have no place in it. `append_time_ms` is the time of an append, which is then that of every message.
    """
    out = bytearray()
    kind = LOG_APPEND_TIME_BIT if append_time_ms != NO_TIMESTAMP and magic else 0
    for record in records:
        time_ms = record.timestamp_ms if append_time_ms == NO_TIMESTAMP else append_time_ms
        offset = record.offset - base_offset if codec and magic else record.offset
        _append(out, offset, magic, kind, time_ms, record.key, record.value)
    if not codec:
        return bytes(out)
    content = compress(codec, out)
    if codec == LZ4 and not magic:
        content = _with_header_checksum(content, covers_magic=True)
    latest_ms = max(record.timestamp_ms for record in records)
    wrapper = bytearray()
    time_ms = latest_ms if append_time_ms == NO_TIMESTAMP else append_time_ms
    _append(wrapper, records[-1].offset, magic, codec | kind, time_ms, None, content)
    return bytes(wrapper)


def _append(
    out: bytearray, offset: int, magic: int, attributes: int, time_ms: int, key: bytes | None, value: bytes | None
) -> None:
    body = bytearray((magic, attributes))
    if magic:
        body += _INT64.pack(time_ms)
    for field in (key, value):
        body += _INT32.pack(-1 if field is None else len(field))
        body += field or b""
    out += _INT64.pack(offset) + _INT32.pack(len(body) + 4) + crc32(body).to_bytes(4, "big") + body


def _with_header_checksum(frame: bytes, *, covers_magic: bool) -> bytes:
    """A frame of lz4 with the checksum of its header made anew; of the frame's magic number too, or not."""
    if len(frame) < 7:
        return frame
    flags = frame[4]
    end = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    checksum = _xxhash32(frame[0 if covers_magic else 4 : end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


_MASK = 0xFFFFFFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def _xxhash32(data: bytes) -> int:
    """XXH32 with seed 0 of up to 31 bytes: a frame's header has at most 18."""
    at = 0
    value = _PRIME_5
    if len(data) >= 16:
        lanes = [_PRIME_1 + _PRIME_2, _PRIME_2, 0, -_PRIME_1]
        for index, lane in enumerate(lanes):
            word = int.from_bytes(data[4 * index : 4 * index + 4], "little")
            lanes[index] = _rotated(lane + word * _PRIME_2, 13) * _PRIME_1
        value = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        at = 16
    value += len(data)
    while len(data) - at >= 4:
        value = _rotated(value + int.from_bytes(data[at : at + 4], "little") * _PRIME_3, 17) * _PRIME_4
        at += 4
    for byte in data[at:]:
        value = _rotated(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16
