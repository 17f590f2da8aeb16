"""Between messages of magic 0 and 1 and record batches, as Kafka did before 4.0.

The log has record batches only. What a producer of Kafka 0.10 sends is made one batch when it is appended
(`batch_of`), and what a consumer of that time reads is made messages (`messages_of`). A broker that does not act as a
release before 4.0 never imports this.

Errors of `batch_of`, in the order of Kafka 3.9:

| what is wrong | code |
|---|---|
| a size below the smallest, a magic above 2 | 2 |
| a message above `max.message.bytes` | 10 |
| a wrong checksum | 2 |
| different magics; a compressed message or a batch that is not alone | 87 |
| an unknown codec | -1 |
| zstd; a compressed message without messages, or with others than its own magic | 87 |
| a body that does not decompress | -1 |
| a wrong checksum inside | 2 |
| a compressed message inside a compressed one | 87 |
| the time of the append, set by the client, in a topic with LogAppendTime | 32 |

What `append_rules` asks of every batch comes after that.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire import message_sets
from pykafkad.wire.batch import (
    CODEC_MASK,
    HEADER_SIZE_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    build_batch,
    parse_header,
)
from pykafkad.wire.compression import CODECS, ZSTD
from pykafkad.wire.records import iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.log.log_config import LogConfig
    from pykafkad.wire.message_sets import Message

    Buffer = bytes | bytearray | memoryview
    Writable = bytearray | memoryview

# Longer sets are not converted on the loop. A compressed kilobyte can hold forty thousand messages.
LONG_SET_BYTES = 64 * 1024
LONG_COMPRESSED_BYTES = 1024
_ATTRIBUTES_POSITION = 17


def is_long_set(records: Buffer) -> bool:
    """Whether converting a set may block the loop for too long."""
    is_compressed = len(records) > _ATTRIBUTES_POSITION and records[_ATTRIBUTES_POSITION] & CODEC_MASK
    return len(records) > (LONG_COMPRESSED_BYTES if is_compressed else LONG_SET_BYTES)


def has_messages(records: Buffer) -> bool:
    """Whether there is a whole message. Kafka accepts a set without one, and appends nothing."""
    return next(message_sets.sizes(records), None) is not None


def batch_of(records: Writable, settings: LogConfig, where: str) -> Writable:
    """The batch with the messages of a set. A batch of magic 2, which Kafka takes too, is returned as it is."""
    found = list(message_sets.sizes(records))
    if found and found[0][2] == MAGIC and len(found) == 1:
        return records[: found[0][1]]
    messages = _checked(records, found, settings, where)
    codec = next((message.codec for message in reversed(messages) if message.codec), 0)
    if len({magic for *_, magic in found}) > 1 or (len(found) > 1 and (codec or found[0][2] == MAGIC)):
        raise KafkaError(errors.INVALID_RECORD, f"the messages for {where} are not of one kind, or one is compressed")
    if not messages:
        raise KafkaError(errors.INVALID_RECORD, f"there is no message for {where}")
    if codec not in CODECS:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, f"a message for {where} names the unknown codec {codec}")
    claims_time = any(message.has_log_append_time for message in messages)
    if codec:
        messages = _opened(messages[0], where)
    if settings.message_timestamp_type == "LogAppendTime" and claims_time:
        raise KafkaError(errors.INVALID_TIMESTAMP, f"a producer may not set the time of the append for {where}")
    rows = [(message.key, message.value, (), message.timestamp_ms) for message in messages]
    return memoryview(build_batch(rows, codec=codec))


def _checked(records: Buffer, found: list[tuple[int, int, int]], settings: LogConfig, where: str) -> list[Message]:
    """The messages of a set, those of magic 2 left out, with their sizes and checksums checked."""
    messages = []
    for position, size, magic in found:
        if size > settings.max_message_bytes:
            raise KafkaError(
                errors.MESSAGE_TOO_LARGE,
                f"message of {size} bytes for {where} is above max.message.bytes of {settings.max_message_bytes}",
            )
        if magic != MAGIC:
            message = message_sets.message_at(records, position, size)
            if not message.is_intact:
                raise KafkaError(errors.CORRUPT_MESSAGE, f"a message for {where} does not match its checksum")
            messages.append(message)
    return messages


def _opened(wrapper: Message, where: str) -> list[Message]:
    try:
        messages = message_sets.opened(wrapper)
    except KafkaError as error:
        if error.code == errors.CORRUPT_MESSAGE:
            # In Kafka, a body that its codec cannot decompress is an unexpected error.
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR, error.text) from None
        raise
    for message in messages:
        if not message.is_intact:
            raise KafkaError(errors.CORRUPT_MESSAGE, f"a compressed message for {where} does not match its checksum")
        if message.codec:
            raise KafkaError(errors.INVALID_RECORD, f"a compressed message for {where} is inside a compressed one")
    return messages


def messages_of(batches: bytes, magic: int, fetch_offset: int) -> bytes:
    """The records of whole batches as messages of a magic.

    Control batches are left out, and records below `fetch_offset` where that costs nothing. As in Kafka they are not
    longer than the batches, unless the first alone is, so the last may be cut short. They end before a batch with zstd.
    Raises `KafkaError(UNSUPPORTED_COMPRESSION_TYPE)` if that is the first with records.
    """
    out = bytearray()
    size_limit = len(batches)
    for batch in _batches(batches):
        header = parse_header(batch)
        if header.is_control:
            continue
        if header.codec == ZSTD:
            if out:
                break
            text = f"a batch with zstd cannot be made messages of magic {magic}"
            raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE, text)
        found = [record for record in iterate_records(batch, header) if header.codec or record.offset >= fetch_offset]
        if found:
            time_ms = header.max_timestamp_ms if header.has_log_append_time else -1
            written = message_sets.written(found, magic, header.codec, header.base_offset, time_ms)
            if not out:
                size_limit = max(size_limit, len(written))
            out += written
    return bytes(out[:size_limit])


def _batches(content: bytes) -> Iterator[memoryview]:
    view = memoryview(content)
    position = 0
    while len(view) - position >= HEADER_SIZE_BYTES:
        size = int.from_bytes(view[position + 8 : position + LENGTH_OVERHEAD_BYTES], "big") + LENGTH_OVERHEAD_BYTES
        yield view[position : position + size]
        position += size
