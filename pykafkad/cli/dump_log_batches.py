"""`pykafkad dump-log` of files that hold record batches: segments, metadata snapshots, the bootstrap checkpoint."""

from __future__ import annotations

from struct import Struct

from pykafkad.cli.dump_log_decoders import decoder
from pykafkad.cli.dump_log_lines import print_line
from pykafkad.cli.output import json_bytes, readable
from pykafkad.errors import KafkaError
from pykafkad.wire import records as record_format
from pykafkad.wire.batch import ATTRIBUTES_POSITION, HEADER_SIZE_BYTES, MAGIC, crc32c, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.cli.dump_log_decoders import Decode
    from pykafkad.wire.batch import BatchHeader

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
BATCH_SIZE_BYTES_MAX = 1 << 30
# The fields of a batch line at a terminal, in order. --json prints the whole header.
SHORT_FIELDS = (
    "base_offset",
    "last_offset",
    "record_count",
    "leader_epoch",
    "codec",
    "max_timestamp_ms",
    "size_bytes",
    "position",
)
_FLAGS = ("is_control", "is_transactional", "has_log_append_time")
_PREFIX = Struct(">qi")
# With this attribute, the base timestamp is the time after which the batch's tombstones may be removed (KIP-534).
_DELETE_HORIZON = 0x40


def dump_batches(path: str, options: argparse.Namespace) -> bool:
    """Prints every batch and its records. Stops at damage and returns True."""
    decode = decoder(path, options.decoder)
    for position, header, batch in read_batches(path):
        if header is None or isinstance(batch, str):
            print_line("damaged", {"position": position, "reason": batch}, options.json)
            return True
        fields: dict[str, Any] = {
            "position": position,
            **header._asdict(),
            "last_offset": header.last_offset,
            "size_bytes": header.size_bytes,
        }
        fields["codec"] = CODECS.get(header.codec, header.codec)
        fields |= {name: getattr(header, name) for name in _FLAGS}
        fields["delete_horizon_ms"] = header.base_timestamp_ms if header.attributes & _DELETE_HORIZON else None
        if not options.json:
            fields = {name: fields[name] for name in SHORT_FIELDS} | _marks(header, fields["delete_horizon_ms"])
        print_line("batch", fields, options.json)
        if not options.batches:
            try:
                _dump_records(header, batch, decode, options.json)
            except KafkaError as error:
                print_line("damaged", {"position": position, "reason": error.text}, options.json)
                return True
    return False


def _marks(header: BatchHeader, delete_horizon_ms: int | None) -> dict[str, object]:
    marks: dict[str, object] = {}
    if header.producer_id >= 0:
        marks = {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
        }
    for name in _FLAGS:
        if getattr(header, name):
            marks[name] = "true"
    return {**marks, "delete_horizon_ms": delete_horizon_ms}


def read_batches(path: str) -> Iterator[tuple[int, BatchHeader | None, bytes | str]]:
    """Yields (position, header, batch) for each batch of a file.

    Damage ends the file: the last item is then (position, None, reason).
    """
    with open(path, "rb") as file:
        position = 0
        while prefix := file.read(_PREFIX.size):
            if len(prefix) < _PREFIX.size:
                yield position, None, f"the last {len(prefix)} bytes are too few for a batch"
                return
            _, length = _PREFIX.unpack(prefix)
            if length == 0 and not any(prefix):
                # A preallocated file has zeros after its last batch.
                return
            if not HEADER_SIZE_BYTES - _PREFIX.size <= length <= BATCH_SIZE_BYTES_MAX:
                yield position, None, f"a batch length of {length} bytes is impossible"
                return
            batch = prefix + file.read(length)
            if len(batch) < length + _PREFIX.size:
                yield (
                    position,
                    None,
                    f"the batch should have {length + _PREFIX.size} bytes but only {len(batch)} follow",
                )
                return
            header = parse_header(batch)
            if header.magic != MAGIC:
                yield position, None, f"record format {header.magic}; only format {MAGIC} can be read"
                return
            if crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]) != header.crc:
                yield position, None, "the checksum does not match"
                return
            yield position, header, batch
            position += len(batch)


def _dump_records(header: BatchHeader, batch: bytes, decode: Decode, as_json: bool) -> None:
    show = json_bytes if as_json else _shown_bytes
    for record in record_format.iterate_records(memoryview(batch), header):
        key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
        fields: dict[str, object] = {"offset": record.offset, "timestamp_ms": record.timestamp_ms}
        for name, content in decode(key, value, header.is_control, as_json).items():
            fields[name] = show(content) if content is None or isinstance(content, bytes) else content
        if header.base_sequence >= 0 and as_json:
            fields["sequence"] = (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF
        pairs = [(name, show(None if content is None else bytes(content))) for name, content in record.headers]
        if as_json:
            fields["headers"] = [list(pair) for pair in pairs]
        elif pairs:
            fields["headers"] = ",".join(f"{name}={content}" for name, content in pairs)
        print_line("record", fields, as_json, "  ")


def _shown_bytes(data: bytes | None) -> str:
    text = readable(data)
    return "null" if text is None else text
