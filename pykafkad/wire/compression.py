"""The compression codecs of record batches by id, as Kafka's clients frame them.

gzip is a gzip stream; snappy is the xerial block stream (raw snappy is read too); lz4 is the frame format with
independent blocks; zstd is plain frames. Decompression never returns more than the caller's limit, and never allocates
by a length that the data claims. `cramjam` and `zlib` are imported on first use.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    Buffer = bytes | bytearray | memoryview

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

# The name in `compression.type` and in clients; the lowest, highest and default level (None: no levels).
CODECS: dict[int, tuple[str, int | None, int | None, int | None]] = {
    NONE: ("none", None, None, None),
    GZIP: ("gzip", 1, 9, -1),
    SNAPPY: ("snappy", None, None, None),
    LZ4: ("lz4", 1, 17, 9),
    ZSTD: ("zstd", -131072, 22, 3),
}
IDS = {row[0]: codec for codec, row in CODECS.items()}

# The first two bytes of a compressed body, by codec: gzip, xerial snappy, lz4 frame, zstd frame.
FRAME_STARTS = {GZIP: b"\x1f\x8b", SNAPPY: b"\x82S", LZ4: b"\x04\x22", ZSTD: b"\x28\xb5"}

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
# Magic, then version 1 and lowest compatible version 1.
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_FIRST_GUESS_BYTES = 64 * 1024


def _corrupt(codec: int, reason: object) -> KafkaError:
    return KafkaError(errors.CORRUPT_MESSAGE, f"records do not decompress as {CODECS[codec][0]}: {reason}")


def _too_large(codec: int, max_bytes: int) -> KafkaError:
    return KafkaError(
        errors.MESSAGE_TOO_LARGE, f"records compressed as {CODECS[codec][0]} decompress to more than {max_bytes} bytes"
    )


def decompress(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """Decompresses `data` to at most `max_bytes`.

    Raises `KafkaError`: CORRUPT_MESSAGE when the data is not of that codec, MESSAGE_TOO_LARGE above the limit,
    UNSUPPORTED_COMPRESSION_TYPE for an unknown id.
    """
    if codec == GZIP:
        return _decompress_gzip(data, max_bytes)
    if codec == SNAPPY:
        return _decompress_snappy(data, max_bytes)
    if codec in (LZ4, ZSTD):
        return _decompress_frames(codec, data, max_bytes)
    if codec == NONE:
        return bytes(data)
    raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {codec} is not one of {sorted(CODECS)}")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compresses as a Kafka client does. `level` None is the codec's default level."""
    if codec == SNAPPY:
        return _compress_snappy(data)
    if level is None:
        level = CODECS[codec][3]
    assert level is not None, f"{CODECS[codec][0]} has no levels"
    if codec == GZIP:
        import zlib

        stream = zlib.compressobj(level, zlib.DEFLATED, 31)
        return stream.compress(data) + stream.flush()
    import cramjam

    if codec == LZ4:
        # Kafka's lz4 reader refuses linked blocks.
        frame = cramjam.lz4.Compressor(level=min(level, 12), content_checksum=False, block_linked=False)
        frame.compress(bytes(data))
        return bytes(frame.finish())
    return bytes(cramjam.zstd.compress(bytes(data), level=level))


def _decompress_gzip(data: Buffer, max_bytes: int) -> bytes:
    import zlib

    stream = zlib.decompressobj(31)
    try:
        opened = stream.decompress(data, max_bytes)
        if not stream.eof and (stream.unconsumed_tail or stream.decompress(b"", 1)):
            raise _too_large(GZIP, max_bytes)
    except zlib.error as error:
        raise _corrupt(GZIP, error) from None
    if not stream.eof:
        raise _corrupt(GZIP, "the stream ends early")
    return opened


def _decompress_snappy(data: Buffer, max_bytes: int) -> bytes:
    import cramjam

    data = bytes(data)
    if not data.startswith(_XERIAL_MAGIC):
        return _open_snappy_block(cramjam, data, max_bytes, max_bytes)
    opened = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if length > len(data) - position:
            raise _corrupt(SNAPPY, f"a block has {length} bytes where {len(data) - position} are left")
        opened += _open_snappy_block(cramjam, data[position : position + length], max_bytes - len(opened), max_bytes)
        position += length
    return bytes(opened)


def _open_snappy_block(cramjam: ModuleType, block: bytes, room: int, max_bytes: int) -> bytes:
    try:
        # The size that the block claims is checked before anything is allocated for it.
        claimed = cramjam.snappy.decompress_raw_len(block)
        # A snappy element of two bytes decompresses to 64 bytes at most.
        if claimed > 64 * len(block):
            raise _corrupt(SNAPPY, f"a block of {len(block)} bytes claims to decompress to {claimed} bytes")
        if claimed > room:
            raise _too_large(SNAPPY, max_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _corrupt(SNAPPY, error) from None


def _compress_snappy(data: Buffer) -> bytes:
    import cramjam

    out = bytearray(_XERIAL_HEADER)
    data = bytes(data)
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES]))
        out += len(block).to_bytes(4, "big")
        out += block
    return bytes(out)


def _decompress_frames(codec: int, data: Buffer, max_bytes: int) -> bytes:
    # Frames may claim any size. So each attempt decompresses into a buffer four times as large as the one before, up to
    # the limit. Almost every batch fits into the first.
    import cramjam

    module = cramjam.lz4 if codec == LZ4 else cramjam.zstd
    data = bytes(data)
    room = min(max(_FIRST_GUESS_BYTES, 4 * len(data)), max_bytes)
    while True:
        # One byte of room beyond the limit tells an exact fit from a body that is longer.
        buffer = bytearray(room + 1)
        try:
            size = module.decompress_into(data, buffer)
            if size <= room:
                return bytes(memoryview(buffer)[:size])
        except cramjam.DecompressionError as error:
            if not _ran_out_of_room(error):
                raise _corrupt(codec, error) from None
        if room >= max_bytes:
            raise _too_large(codec, max_bytes)
        room = min(4 * room, max_bytes)


def _ran_out_of_room(error: Exception) -> bool:
    return "write whole buffer" in str(error)
