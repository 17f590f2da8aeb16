"""`pykafkad dump-log`: what stands in the files of a data directory, ours or a real Kafka's. Reads only; no broker is asked."""

from __future__ import annotations

import os
import sys
from struct import Struct, iter_unpack

from pykafkad.cli.output import Failure, json_bytes, print_json, readable
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.wire import records as record_format
from pykafkad.wire.batch import ATTRIBUTES_POSITION, CONTROL_ABORT, CONTROL_COMMIT, HEADER_SIZE_BYTES, MAGIC, crc32c, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from pykafkad.wire.batch import BatchHeader

SUMMARY = "print what stands in log, index and checkpoint files"

# Kafka's first metadata records, written when a directory is formatted: batches, unlike the other checkpoints beside it.
BOOTSTRAP = "bootstrap.checkpoint"

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
BATCH_SIZE_BYTES_MAX = 1 << 30
_PREFIX = Struct(">qi")
_OFFSET_INDEX_ENTRY = ">ii"
_TIME_INDEX_ENTRY = ">qi"
_TRANSACTION_INDEX_ENTRY = ">hqqqq"

# Fields of a batch line, in order; the rest of the header is in --json.
SHORT_FIELDS = ("base_offset", "last_offset", "record_count", "leader_epoch", "codec", "max_timestamp_ms", "size_bytes", "position")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad dump-log`."""
    parser.add_argument("paths", nargs="+", metavar="FILE", help="a file, or a directory for all files in it, such as pykafkad-data/events-0")
    parser.add_argument("--batches", action="store_true", help="only the headers of the record batches, not the records in them")
    parser.add_argument(
        "--decoder", choices=("auto", "none", "offsets", "metadata"), default="auto",
        help="how keys and values are read: `offsets` as in __consumer_offsets, `metadata` as in __cluster_metadata, `none` as plain bytes, "
        "`auto` by the directory's name (default)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help='one JSON object a line, with all fields; bytes that are no text as {"hex": "…"}')


def run(options: argparse.Namespace) -> int:
    """Prints every file; 1 when one is damaged or cannot be read."""
    damaged = False
    for path in _files(options.paths):
        _check_readable(path)
        if options.json:
            print_json({"kind": "file", "path": path})
        else:
            print(f"# {path}")
        damaged |= _dump_of(path)(path, options)
    return 1 if damaged else 0


def _files(paths: list[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            names = sorted(os.listdir(path))
            yield from (os.path.join(path, name) for name in names if os.path.isfile(os.path.join(path, name)))
        else:
            yield path


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None


def _dump_of(path: str) -> Callable[[str, argparse.Namespace], bool]:
    """How a file is read, by its name."""
    name = os.path.basename(path)
    stem, _, ending = name.partition(".")
    if ending in ("log", "log.deleted") or name == BOOTSTRAP or (ending.startswith("checkpoint") and "-" in stem and stem[:1].isdigit()):
        return _dump_batches
    tables = {"index": _dump_offset_index, "timeindex": _dump_time_index, "txnindex": _dump_transaction_index, "snapshot": _dump_producers}
    return tables.get(ending.removesuffix(".deleted"), _dump_text)


def _line(kind: str, fields: dict[str, object], as_json: bool, indent: str = "") -> None:
    if as_json:
        print_json({"kind": kind, **fields})
    else:
        print(indent + kind + "".join(f" {name}={_shown(value)}" for name, value in fields.items() if value is not None))


def _shown(value: object) -> str:
    text = str(value)
    return f'"{text}"' if isinstance(value, str) and (" " in text or not text) else text.replace("\n", "\\n")


def _dump_batches(path: str, options: argparse.Namespace) -> bool:
    decode = _decoder(path, options.decoder)
    for position, header, batch in read_batches(path):
        if isinstance(batch, str):
            _line("damaged", {"position": position, "reason": batch}, options.json)
            return True
        fields = {"position": position, **header._asdict(), "last_offset": header.last_offset, "size_bytes": header.size_bytes}
        fields["codec"] = CODECS.get(header.codec, header.codec)
        if not options.json:
            fields = {name: fields[name] for name in SHORT_FIELDS} | _marks(header)
        _line("batch", fields, options.json)
        if not options.batches:
            try:
                _dump_records(header, batch, decode, options.json)
            except KafkaError as error:
                _line("damaged", {"position": position, "reason": error.text}, options.json)
                return True
    return False


def _marks(header: BatchHeader) -> dict[str, object]:
    marks: dict[str, object] = {}
    if header.producer_id >= 0:
        marks = {"producer_id": header.producer_id, "producer_epoch": header.producer_epoch, "base_sequence": header.base_sequence}
    for name in ("is_control", "is_transactional", "has_log_append_time"):
        if getattr(header, name):
            marks[name] = "true"
    return marks


def read_batches(path: str) -> Iterator[tuple[int, BatchHeader | None, bytes | str]]:
    """(position, header, batch) of each batch of a file. The last may be (position, None, reason) where the file is damaged."""
    with open(path, "rb") as file:
        position = 0
        while prefix := file.read(_PREFIX.size):
            if len(prefix) < _PREFIX.size:
                yield position, None, f"{len(prefix)} bytes are left, too few for a batch"
                return
            _, length = _PREFIX.unpack(prefix)
            if length == 0 and not any(prefix):
                # A preallocated file ends in zeros.
                return
            if not HEADER_SIZE_BYTES - _PREFIX.size <= length <= BATCH_SIZE_BYTES_MAX:
                yield position, None, f"a batch length of {length} bytes cannot be"
                return
            batch = prefix + file.read(length)
            if len(batch) < length + _PREFIX.size:
                yield position, None, f"the batch should have {length + _PREFIX.size} bytes, {len(batch)} are there"
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


def _dump_records(header: BatchHeader, batch: bytes, decode: Callable, as_json: bool) -> None:
    for record in record_format.iterate_records(memoryview(batch), header):
        key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
        fields = {"offset": record.offset, "timestamp_ms": record.timestamp_ms, **decode(key, value, header.is_control)}
        show = json_bytes if as_json else _people
        fields = {name: show(field) if field is None or isinstance(field, bytes) else field for name, field in fields.items()}
        pairs = [(name, show(None if content is None else bytes(content))) for name, content in record.headers]
        if as_json:
            fields["headers"] = [list(pair) for pair in pairs]
        elif pairs:
            fields["headers"] = ",".join(f"{name}={content}" for name, content in pairs)
        _line("record", fields, as_json, "  ")


def _people(data: bytes | None) -> str:
    return "null" if data is None else readable(data)


def _decoder(path: str, wanted: str) -> Callable[[bytes | None, bytes | None, bool], dict[str, object]]:
    """How keys and values of this file are shown."""
    if wanted == "auto":
        directory, name = os.path.abspath(path).split(os.sep)[-2:]
        topic = "__cluster_metadata" if name == BOOTSTRAP else directory.rpartition("-")[0]
        wanted = {"__consumer_offsets": "offsets", "__cluster_metadata": "metadata"}.get(topic, "none")
    if wanted == "offsets":
        from pykafkad.coordinator.stored import decode
    elif wanted == "metadata":
        from pykafkad.metadata.stored import decode
    else:
        return _plain

    def typed(key: bytes | None, value: bytes | None, is_control: bool) -> dict[str, object]:
        if is_control and wanted == "offsets":
            return _plain(key, value, is_control)
        try:
            stored = decode(key, value)
        except (ProtocolError, TypeError) as error:
            return {**_plain(key, value, is_control), "undecoded": str(error)}
        if stored is None:
            return _plain(key, value, is_control)
        return {"key": None if stored.key is None else repr(stored.key), "value": repr(stored.value)}

    return typed


def _plain(key: bytes | None, value: bytes | None, is_control: bool) -> dict[str, object]:
    if is_control and key is not None and len(key) >= 4:
        return {"control": {CONTROL_ABORT: "abort", CONTROL_COMMIT: "commit"}.get(key[3], key[3])}
    return {"key": key, "value": value}


def _base_offset(path: str) -> int:
    stem = os.path.basename(path).partition(".")[0]
    return int(stem) if stem.isdigit() else 0


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _entries(path: str, layout: str, options: argparse.Namespace) -> Iterator[tuple]:
    """Entries of an index up to its first empty one (files of a running Kafka are preallocated with zeros)."""
    data = _read(path)
    size = Struct(layout).size
    for entry in iter_unpack(layout, data[: len(data) - len(data) % size]):
        if not any(entry):
            return
        yield entry
    if len(data) % size:
        _line("damaged", {"reason": f"{len(data) % size} bytes are left over at the end"}, options.json)


def _dump_offset_index(path: str, options: argparse.Namespace) -> bool:
    base = _base_offset(path)
    for offset, position in _entries(path, _OFFSET_INDEX_ENTRY, options):
        _line("entry", {"offset": base + offset, "position": position}, options.json)
    return False


def _dump_time_index(path: str, options: argparse.Namespace) -> bool:
    base = _base_offset(path)
    for timestamp_ms, offset in _entries(path, _TIME_INDEX_ENTRY, options):
        _line("entry", {"timestamp_ms": timestamp_ms, "offset": base + offset}, options.json)
    return False


def _dump_transaction_index(path: str, options: argparse.Namespace) -> bool:
    for _, producer_id, first, last, last_stable in _entries(path, _TRANSACTION_INDEX_ENTRY, options):
        fields = {"producer_id": producer_id, "first_offset": first, "last_offset": last, "last_stable_offset": last_stable}
        _line("aborted", fields, options.json)
    return False


def _dump_producers(path: str, options: argparse.Namespace) -> bool:
    from pykafkad.log.producers import ProducerStates

    states = ProducerStates.from_snapshot(_read(path))
    if states is None:
        _line("damaged", {"reason": "no producer snapshot of version 1 with a matching checksum"}, options.json)
        return True
    for producer_id, entry in states.items():
        fields: dict[str, object] = {"producer_id": producer_id, "producer_epoch": entry.epoch, "last_timestamp_ms": entry.last_timestamp_ms}
        if entry.batches:
            fields["last_sequence"], fields["last_offset"] = entry.batches[-1][:2]
        _line("producer", fields, options.json)
    return False


def _dump_text(path: str, options: argparse.Namespace) -> bool:
    """Checkpoints and property files are text already; 1 for what is neither text nor named as one of Kafka's files."""
    try:
        text = _read(path).decode("utf-8")
    except UnicodeDecodeError:
        _line("damaged", {"reason": "no text, and not named as a file of a log"}, options.json)
        return True
    if options.json:
        print_json({"kind": "text", "text": text})
    else:
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
    return False
