"""Targets for decoders of bytes from strangers.

They are messages, headers, frames in pieces, batches, records, compressed bodies and stored records.
"""

from __future__ import annotations

import random
import struct
import zlib
from functools import cache
from types import SimpleNamespace

from pykafkad.coordinator import record_codec as coordinator_codec, transaction_records as transaction_codec
from pykafkad.coordinator.consumer_protocol import subscribed_topics
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.log import append_rules
from pykafkad.metadata import record_codec as metadata_codec
from pykafkad.server.connection import Connection
from pykafkad.server.frame_buffers import FrameBuffers
from pykafkad.wire import batch, compression, frames, messages, records
from tests.fuzz.requests import plain_batch
from tests.fuzz.target import Finding, Target
from tests.log.settings import NOW_MS, topic_settings
from tests.wire.values import Values, every_version

VERSIONS = every_version()
EXAMPLES_KEPT = 6
OPENED_BYTES = 1 << 20
MAX_FRAME_BYTES = 2000
_INDEX = struct.Struct(">H")
SETTINGS = (
    topic_settings(),
    topic_settings(cleanup_policy=frozenset(("compact",))),
    topic_settings(message_timestamp_type="LogAppendTime"),
    topic_settings(compression_type="gzip"),
    topic_settings(compression_type="uncompressed", message_timestamp_type="LogAppendTime"),
    topic_settings(message_timestamp_before_max_ms=3_600_000, max_message_bytes=500),
)


# Messages.


@cache
def _message_examples(index: int) -> list[bytes]:
    name, version = VERSIONS[index]
    values = Values(index)
    return [
        bytes(messages.encode(values.message(messages.stored_class(name), version), version))
        for _ in range(EXAMPLES_KEPT)
    ]


def message_example(draw: random.Random) -> bytes:
    """The number of a message and version, then valid bytes of it."""
    index = draw.randrange(len(VERSIONS))
    return _INDEX.pack(index) + draw.choice(_message_examples(index))


def check_message(data: bytes) -> bool:
    """The bytes give a value that encodes and decodes to itself, or ProtocolError."""
    if len(data) < 2:
        return False
    name, version = VERSIONS[_INDEX.unpack_from(data)[0] % len(VERSIONS)]
    cls = messages.stored_class(name)
    view = memoryview(data)[2:]
    try:
        message, end = messages.decoder(cls, version)(view, 0)
    except ProtocolError:
        return False
    if not 0 <= end <= len(view):
        raise Finding(f"{name} v{version} ends at {end} of {len(view)}")
    try:
        again = messages.encode(message, version)
    except ProtocolError:
        # Text that is not UTF-8 is longer with its replacement characters, and may be too long to encode.
        return True
    if messages.encode(messages.decode(cls, version, again), version) != again:
        raise Finding(f"{name} v{version} is not read as it was written")
    return True


# Frames.

FLEXIBLE_FROM = frames.flexible_versions()


def header_example(draw: random.Random) -> bytes:
    """The header of a request."""
    key, _, versions, _ = draw.choice(messages.all_apis())
    version = draw.choice(versions)
    return bytes(
        frames.start_request(
            key, version, 7, draw.choice(("client", "", None)), frames.response_is_tagged(key, version, FLEXIBLE_FROM)
        )
    )[4:]


def check_header(data: bytes) -> bool:
    """The bytes are read as both headers of a frame."""
    view = memoryview(data)
    try:
        frames.read_response_header(view, tagged=True)
    except ProtocolError:
        pass
    try:
        peeked = frames.peek_request(view)
        key, version, correlation_id, _, position = frames.read_request_header(view, FLEXIBLE_FROM)
    except ProtocolError:
        return False
    if (key, version, correlation_id) != peeked or not 10 <= position <= len(data):
        raise Finding(f"{peeked} was peeked, {key, version, correlation_id} read up to {position}")
    return True


def frames_example(draw: random.Random) -> bytes:
    """A few frames, one after the other."""
    sizes = (draw.choice((0, 1, 4, 10, 40, MAX_FRAME_BYTES)) for _ in range(draw.choice((1, 2, 5, 40))))
    return b"".join(struct.pack(">i", size) + draw.randbytes(size) for size in sizes)


def _served(data: bytes, cuts: list[int]) -> tuple[list[bytes], str | None]:
    """The frames that a connection serves when the bytes arrive in pieces, and the reason why it closed."""
    found: list[bytes] = []
    connection = Connection(
        1,
        "peer",
        SimpleNamespace(serve=lambda _, view, start, end: found.append(bytes(view[start:end]))),
        MAX_FRAME_BYTES,
        FrameBuffers(),
    )
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        piece = connection.pending + data[start:end]
        connection.receive(memoryview(piece), len(piece))
        while connection.close_reason is None and connection.has_whole_frame():
            piece = connection.pending
            connection.receive(memoryview(piece), len(piece))
        if connection.close_reason is not None:
            break
    else:
        # After a full turn of frames, a size that is too large is only seen with the next bytes.
        connection.receive(memoryview(connection.pending), len(connection.pending))
    return found, connection.close_reason


def check_frames(data: bytes) -> bool:
    """Frames and end are the same for bytes that arrive whole or split anywhere. Few bytes also arrive one by one."""
    whole = _served(data, [])
    draw = random.Random(zlib.crc32(data))
    pieces = (
        list(range(1, len(data)))
        if len(data) < 120
        else sorted(draw.randrange(len(data)) for _ in range(draw.choice((1, 2, 8))))
    )
    split = _served(data, pieces)
    # The bytes that identify an HTTP request or a TLS greeting may not have arrived yet.
    if split[0] != whole[0] or (split[1] is None) != (whole[1] is None):
        raise Finding(f"whole: {whole}; in pieces: {split}")
    return whole[1] is None


# Batches and records.


@cache
def _batch_examples() -> list[bytes]:
    draw = random.Random(1)
    return [bytes(plain_batch(draw)) for _ in range(40)]


def batch_example(draw: random.Random) -> bytes:
    """A flag, then a batch.

    With the flag, length and checksum are corrected after the mutation, so that the content is read.
    """
    return bytes((draw.choice((0, 1, 1, 1)),)) + draw.choice(_batch_examples())


def _repaired(data: bytes) -> bytearray:
    found = bytearray(data[1:])
    if data[:1] == b"\1" and len(found) >= batch.HEADER_SIZE_BYTES:
        struct.pack_into(">i", found, 8, len(found) - batch.LENGTH_OVERHEAD_BYTES)
        found[16] = batch.MAGIC
        struct.pack_into(">I", found, batch.CRC_POSITION, batch.crc32c(bytes(found[batch.ATTRIBUTES_POSITION :])))
    return found


def check_batch(data: bytes) -> bool:
    """The header and every record are read. Each refusal is a KafkaError."""
    found = _repaired(data)
    try:
        header = batch.validate(found)
        for _ in records.iterate_records(memoryview(found), header, OPENED_BYTES):
            pass
    except KafkaError:
        return False
    return True


def check_append(data: bytes) -> bool:
    """The append rules for a topic that the flag's upper bits choose. They only accept batches that can be read."""
    if not data:
        return False
    settings = SETTINGS[data[0] >> 1 & 7 if data[0] >> 1 & 7 < len(SETTINGS) else 0]
    found = _repaired(bytes((data[0] & 1,)) + data[1:])
    try:
        kept, header, _ = append_rules.check(memoryview(found), settings, NOW_MS, 13, True, "t-0")
    except KafkaError:
        return False
    stored = batch.validate(kept)
    if stored.record_count != header.record_count or stored.last_offset_delta != stored.record_count - 1:
        raise Finding(f"let in: {stored}")
    return True


def append_example(draw: random.Random) -> bytes:
    """Like `batch_example`, with a topic in the flag."""
    return bytes((draw.randrange(len(SETTINGS)) << 1 | (draw.random() < 0.8),)) + draw.choice(_batch_examples())


@cache
def _compressed_examples() -> list[bytes]:
    draw = random.Random(2)
    bodies = [b"", b"a", b"ab" * 300, draw.randbytes(200), bytes(70_000)]
    return [
        bytes((codec,)) + bytes(compression.compress(codec, body))
        for codec in compression.CODECS
        if codec
        for body in bodies
    ]


def check_compressed(data: bytes) -> bool:
    """The result is bytes within the limit, or KafkaError."""
    if not data:
        return False
    try:
        opened = compression.decompress(data[0] & 7, memoryview(data)[1:], OPENED_BYTES)
    except KafkaError:
        return False
    if len(opened) > OPENED_BYTES:
        raise Finding(f"opened to {len(opened)} bytes")
    return True


# Records of internal logs.


_METADATA, _GROUPS, _TRANSACTIONS = 0, 1, 2
_CODECS = {_GROUPS: coordinator_codec.decode, _TRANSACTIONS: transaction_codec.decode}
# The first byte of an example holds the length of the key above two bits for the log.
_LONGEST_KEY = 63


@cache
def _stored_examples() -> list[bytes]:
    found = [
        bytes((_METADATA, 1, number, version)) + bytes(messages.encode(Values(number).message(cls, version), version))
        for number, types in messages.stored_types("stored_metadata.txt").items()
        for cls in types.values()
        for version in (messages.known_versions(cls)[-1],)
    ]
    for log, file in ((_GROUPS, "stored_groups.txt"), (_TRANSACTIONS, "stored_transactions.txt")):
        for number, types in messages.stored_types(file).items():
            for seed in range(EXAMPLES_KEPT):
                key, value = (_with_version(types[part], part, number, seed) for part in ("Key", "Value"))
                if len(key) <= _LONGEST_KEY:
                    found.append(bytes((len(key) << 2 | log,)) + key + value)
    return found


def _with_version(cls: type, part: str, number: int, seed: int) -> bytes:
    """A key begins with the type of the record, a value with its version."""
    version = messages.known_versions(cls)[-1]
    body = bytes(messages.encode(Values(number + 1000 * seed).message(cls, version), version))
    return struct.pack(">h", number if part == "Key" else version) + body


def check_stored(data: bytes) -> bool:
    """The bytes are a record of `__cluster_metadata`, `__consumer_offsets` or `__transaction_state`."""
    if not data:
        return False
    key, value = data[1 : 1 + (data[0] >> 2)], data[1 + (data[0] >> 2) :]
    try:
        decode = _CODECS.get(data[0] & 3)
        if decode is None:
            metadata_codec.decode(None, data[1:])
            return True
        # None is a record of a type that is not known.
        return decode(key, value or None) is not None
    except ProtocolError:
        return False


def subscription_example(draw: random.Random) -> bytes:
    """The subscription of a consumer."""
    cls = messages.ConsumerProtocolSubscription
    version = draw.randrange(4)
    return struct.pack(">h", version) + bytes(messages.encode(Values(draw.random()).message(cls, version), version))


def check_subscription(data: bytes) -> bool:
    """The result is topics or None."""
    return subscribed_topics(data) is not None


TARGETS = (
    Target("messages", 700, message_example, check_message),
    Target("headers", 40, header_example, check_header),
    Target("frames", 30, frames_example, check_frames),
    Target("batches", 100, batch_example, check_batch),
    Target("append", 50, append_example, check_append),
    Target("compression", 40, lambda draw: draw.choice(_compressed_examples()), check_compressed),
    Target("stored", 50, lambda draw: draw.choice(_stored_examples()), check_stored),
    Target("subscription", 10, subscription_example, check_subscription),
)
