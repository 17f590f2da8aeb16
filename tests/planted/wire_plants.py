"""Bugs to plant in `pykafkad/wire`."""

from __future__ import annotations

from tests.planted.plant import Plant

CODEC = ("tests/wire/test_messages.py", "tests/wire/test_golden_messages.py", "tests/wire/test_compiler.py")
FRAMES = ("tests/wire/test_frames.py",)
RECORDS = ("tests/wire/test_records.py", "tests/wire/test_batch.py")
COMPRESSION = ("tests/wire/test_compression.py",)

PLANTS = (
    # Messages.
    Plant(
        "a varint of more than 32 bits is read",
        "wire/primitives.py",
        "if value > 0xFFFFFFFF:",
        "if False:",
        CODEC,
    ),
    Plant(
        "a message may have any number of elements",
        "wire/primitives.py",
        "MAX_ELEMENTS = 200_000",
        "MAX_ELEMENTS = 1 << 40",
        CODEC,
    ),
    Plant(
        "the length of an array is not compared with the bytes that are left",
        "wire/emitters.py",
        'self.add(f"if n * {size} > limit - position:")',
        'self.add("if False:")',
        CODEC,
    ),
    Plant(
        "a null where none is allowed becomes None",
        "wire/emitters.py",
        'if field.nullable(self.version):\n    self.add(f"    {target} = None")',
        'if True:\n    self.add(f"    {target} = None")',
        CODEC,
    ),
    Plant(
        "a tagged field may end before its declared end",
        "wire/emitters.py",
        'self.add(f"if position != {stop}:")',
        'self.add("if False:")',
        CODEC,
    ),
    Plant(
        "tagged fields are written in the order of the schema",
        "wire/emitters.py",
        "tagged = sorted((field for field in alive if field.tag is not None), key=lambda field: field.tag or 0)",
        "tagged = [field for field in alive if field.tag is not None]",
        CODEC,
    ),
    Plant(
        "an id of another length than 16 bytes is cut or padded",
        "wire/emitters.py",
        'self.add(f"if len({value}) != 16:")',
        'self.add("if False:")',
        CODEC,
    ),
    Plant(
        "a value that the version does not carry is dropped silently",
        "wire/emitters.py",
        "if not field.drop:",
        "if False:",
        CODEC,
    ),
    Plant(
        "a nested struct that is null has an unsigned byte in line",
        "wire/emitters.py",
        '"b" if field.tag is None else "B")',
        '"B")',
        CODEC,
    ),
    Plant(
        "bytes after a message are ignored",
        "wire/messages.py",
        "if end != len(buffer):",
        "if False:",
        CODEC,
    ),
    # Frames.
    Plant(
        "the response to ApiVersions has tags",
        "wire/frames.py",
        "return api_key != API_VERSIONS and api_version",
        "return api_version",
        FRAMES,
    ),
    Plant(
        "the size of a frame leaves file slices out",
        "wire/frames.py",
        "total += len(chunk) if size is None else size",
        "total += len(chunk) if size is None else 0",
        FRAMES,
    ),
    Plant(
        "the client id of a request may reach beyond the frame",
        "wire/frames.py",
        'if position > limit:\n    raise overlong("client id"',
        'if False:\n    raise overlong("client id"',
        FRAMES,
    ),
    Plant(
        "a header may have any number of tags",
        "wire/frames.py",
        "if count > MAX_HEADER_TAGS:",
        "if False:",
        FRAMES,
    ),
    # Batches and records.
    Plant(
        "a wrong checksum is accepted",
        "wire/batch.py",
        "if found != header.crc:",
        "if False:",
        RECORDS,
    ),
    Plant(
        "a batch of an older format is accepted",
        "wire/batch.py",
        "if header.magic != MAGIC:",
        "if False:",
        RECORDS,
    ),
    Plant(
        "the last sequence does not wrap",
        "wire/batch.py",
        "return (sequence + by) & MAX_SEQUENCE",
        "return sequence + by",
        RECORDS,
    ),
    Plant(
        "a new maximal timestamp leaves the old checksum",
        "wire/batch.py",
        "_UINT32.pack_into(view, CRC_POSITION, crc32c(whole[ATTRIBUTES_POSITION:]))",
        "pass",
        RECORDS,
    ),
    Plant(
        "records keep their own timestamps under log append time",
        "wire/records.py",
        "header.max_timestamp_ms if log_append_time else header.base_timestamp_ms + timestamp_delta",
        "header.base_timestamp_ms + timestamp_delta",
        RECORDS,
    ),
    Plant(
        "bytes after the last record are ignored",
        "wire/records.py",
        "if position != size:",
        "if False:",
        RECORDS,
    ),
    Plant(
        "the fields of a record may end before the record",
        "wire/records.py",
        "if position != end:",
        "if False:",
        RECORDS,
    ),
    # Compression.
    Plant(
        "a snappy block may claim any size",
        "wire/compression.py",
        "if claimed > room:",
        "if False:",
        COMPRESSION,
    ),
    Plant(
        "a gzip stream that ends early is accepted",
        "wire/compression.py",
        'if not stream.eof:\n    raise _corrupt(GZIP, "the stream ends early")',
        "",
        COMPRESSION,
    ),
    Plant(
        "frames open to one byte more than allowed",
        "wire/compression.py",
        "if size <= room:",
        "if size <= room + 1:",
        COMPRESSION,
    ),
    Plant(
        "lz4 frames have linked blocks",
        "wire/compression.py",
        "block_linked=False",
        "block_linked=True",
        COMPRESSION,
    ),
)
