"""Record batches of magic 2: the 61-byte header, its checks, and building a batch from records.

Layout: KIP-98, and "Message format" in Kafka's documentation. A batch stays one piece from the producer to the segment
and on to the consumer. A broker changes only the first 16 bytes (base offset, leader epoch), which the checksum does
not cover.

`parse_header` reads the header, `validate` checks one batch, `build_batch` makes one. `crc32c` is the C function of the
`crc32c` package. `log/append_rules.py` has the further rules of a log: sizes, timestamps, keys.
"""

from __future__ import annotations

from collections import namedtuple
from struct import Struct

from pykafkad import errors
from pykafkad.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Buffer = bytes | bytearray | memoryview
    # crc32c(data, checksum of what stands before the data = 0)
    Checksum = Callable[..., int]

HEADER_SIZE_BYTES = 61
# The length field counts the bytes after itself: without the offset (8) and the length (4).
LENGTH_OVERHEAD_BYTES = 12
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35
MAGIC = 2
# The smallest record: length, attributes, timestamp delta, offset delta, key length, value length, header count.
MIN_RECORD_SIZE_BYTES = 7

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = 0x7FFFFFFF

# Types of the control records that end a transaction: the second int16 of the key.
CONTROL_ABORT = 0
CONTROL_COMMIT = 1

HEADER = Struct(">qiiBIHiqqqhii")
# The part that a leader writes on append: base offset, length (unchanged), leader epoch.
PREFIX = Struct(">qii")
# The part of the header that the checksum covers: attributes to record count.
CHECKED_HEADER = Struct(">Hiqqqhii")
CONTROL_KEY = Struct(">hh")
_UINT32 = Struct(">I")
_UINT16 = Struct(">H")
_INT64 = Struct(">q")


class BatchHeader(
    namedtuple(
        "BatchHeader",
        (
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
        ),
    )
):
    """The 61-byte header as stored. The properties are derived from the fields."""

    __slots__ = ()

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The size of the whole batch."""
        return self.length + LENGTH_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def end_offset(self) -> int:
        """The offset that follows the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 without a producer id."""
        return advance_sequence(self.base_sequence, self.last_offset_delta) if self.base_sequence >= 0 else NO_SEQUENCE


def _load_crc32c() -> Checksum:
    # Importing the package runs an __init__ that imports importlib.metadata, email and argparse: more than 20 ms of a
    # start for one C function. So the extension module is loaded by its path. The package is the fallback.
    import sys
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

    for folder in sys.path:
        for suffix in EXTENSION_SUFFIXES:
            path = f"{folder or '.'}/crc32c/_crc32c{suffix}"
            loader = ExtensionFileLoader("crc32c._crc32c", path)
            try:
                module: Any = loader.create_module(ModuleSpec("crc32c._crc32c", loader, origin=path))
                loader.exec_module(module)
            except ImportError:
                continue
            function: Checksum = module.crc32c
            return function
    from crc32c import crc32c

    return crc32c


crc32c: Checksum = _load_crc32c()


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Reads the header at `position` without checking it. Fewer than 61 bytes raise `struct.error`."""
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def advance_sequence(sequence: int, by: int) -> int:
    """Adds to a sequence number, wrapping from 2^31-1 to 0."""
    return (sequence + by) & MAX_SEQUENCE


def validate(view: Buffer) -> BatchHeader:
    """Checks one whole batch that fills `view` exactly: length, magic, checksum.

    Raises `KafkaError(CORRUPT_MESSAGE)` with the reason.
    """
    size = len(view)
    if size < HEADER_SIZE_BYTES:
        raise KafkaError(
            errors.CORRUPT_MESSAGE, f"batch of {size} bytes is shorter than its header of {HEADER_SIZE_BYTES}"
        )
    header = parse_header(view)
    if header.length != size - LENGTH_OVERHEAD_BYTES:
        raise KafkaError(
            errors.CORRUPT_MESSAGE,
            f"batch of {size} bytes has length {header.length + LENGTH_OVERHEAD_BYTES} in its header",
        )
    if header.magic != MAGIC:
        raise KafkaError(errors.CORRUPT_MESSAGE, f"batch magic is {header.magic}, not {MAGIC}")
    found = crc32c(view[ATTRIBUTES_POSITION:])
    if found != header.crc:
        raise KafkaError(errors.CORRUPT_MESSAGE, f"batch checksum is {header.crc:#010x} but should be {found:#010x}")
    return header


def set_max_timestamp(view: bytearray | memoryview, max_timestamp_ms: int, *, log_append_time: bool) -> None:
    """Writes the timestamp type, the max timestamp and the new checksum."""
    (attributes,) = _UINT16.unpack_from(view, ATTRIBUTES_POSITION)
    attributes = attributes | LOG_APPEND_TIME_BIT if log_append_time else attributes & ~LOG_APPEND_TIME_BIT
    _UINT16.pack_into(view, ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(view, MAX_TIMESTAMP_POSITION, max_timestamp_ms)
    with memoryview(view) as whole:
        _UINT32.pack_into(view, CRC_POSITION, crc32c(whole[ATTRIBUTES_POSITION:]))


def control_key(control_type: int) -> bytes:
    """The key of a control record: version 0 and the type."""
    return CONTROL_KEY.pack(0, control_type)


def build_batch(
    records: Sequence[Any],
    *,
    base_offset: int = 0,
    timestamp_ms: int = 0,
    codec: int = 0,
    level: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time: bool = False,
) -> bytearray:
    """Builds one batch of `records`: each is `(key, value)`, `(key, value, headers)` or `(key, value, headers,
    timestamp_ms)`.

    Keys and values are bytes or None; headers are a sequence of `(name: str, value: bytes | None)`. Records without a
    timestamp get `timestamp_ms`. `codec` is one of `compression.CODECS`, `level` its level (None: the default). With
    `log_append_time`, `timestamp_ms` is the batch's max timestamp and holds for all its records.
    """
    from pykafkad.wire.records import encode_record

    first = records[0]
    base_timestamp_ms = max_timestamp_ms = first[3] if len(first) > 3 else timestamp_ms
    records_out = bytearray()
    for offset_delta, record in enumerate(records):
        record_timestamp_ms = record[3] if len(record) > 3 else timestamp_ms
        if record_timestamp_ms > max_timestamp_ms:
            max_timestamp_ms = record_timestamp_ms
        encode_record(
            records_out,
            offset_delta,
            record_timestamp_ms - base_timestamp_ms,
            record[0],
            record[1],
            record[2] if len(record) > 2 else (),
        )
    body: Buffer = records_out
    if codec:
        from pykafkad.wire.compression import compress

        body = compress(codec, body, level)
    attributes = (
        codec
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0)
        | (LOG_APPEND_TIME_BIT if log_append_time else 0)
    )
    checked = CHECKED_HEADER.pack(
        attributes,
        len(records) - 1,
        base_timestamp_ms,
        timestamp_ms if log_append_time else max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return _header(checked, body, base_offset, leader_epoch) + body


def header_of(body: Buffer, record_count: int, *, base_offset: int, timestamp_ms: int, leader_epoch: int) -> bytearray:
    """The header of `body`: uncompressed records with one timestamp and no producer.

    It is for code that encodes a long batch step by step.
    """
    checked = CHECKED_HEADER.pack(
        0, record_count - 1, timestamp_ms, timestamp_ms, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, record_count
    )
    return _header(checked, body, base_offset, leader_epoch)


def _header(checked: bytes, body: Buffer, base_offset: int, leader_epoch: int) -> bytearray:
    length = HEADER_SIZE_BYTES - LENGTH_OVERHEAD_BYTES + len(body)
    header = bytearray(PREFIX.pack(base_offset, length, leader_epoch))
    header.append(MAGIC)
    header += _UINT32.pack(crc32c(body, crc32c(checked)))
    header += checked
    return header
