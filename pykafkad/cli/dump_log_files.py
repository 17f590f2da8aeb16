"""`pykafkad dump-log` of the files beside the segments: indexes, producer snapshots, checkpoints, properties."""

from __future__ import annotations

import os
import sys
from struct import Struct, iter_unpack

from pykafkad.cli.dump_log_lines import print_line
from pykafkad.cli.output import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

_OFFSET_INDEX_ENTRY = ">ii"
_TIME_INDEX_ENTRY = ">qi"
_TRANSACTION_INDEX_ENTRY = ">hqqqq"
_CHECKPOINT_VERSION = "0"

# The columns of each checkpoint file. Its lines are a version, the number of rows, then the rows.
CHECKPOINTS = {
    "leader-epoch-checkpoint": ("leader_epoch", "start_offset"),
    "recovery-point-offset-checkpoint": ("topic", "partition", "recovery_point"),
    "log-start-offset-checkpoint": ("topic", "partition", "log_start_offset"),
    "replication-offset-checkpoint": ("topic", "partition", "high_watermark"),
    "cleaner-offset-checkpoint": ("topic", "partition", "first_dirty_offset"),
}
# Columns that hold text; the others hold numbers.
_TEXT_COLUMNS = ("topic",)
# Lines of `name=value` or `name: value`.
PROPERTIES = {"meta.properties": "=", "partition.metadata": ":"}
JSON_FILES = ("quorum-state", ".kafka_cleanshutdown")


def _base_offset(path: str) -> int:
    stem = os.path.basename(path).partition(".")[0]
    return int(stem) if stem.isdigit() else 0


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _entries(path: str, layout: str, options: argparse.Namespace) -> Iterator[tuple[int, ...]]:
    """The entries of an index, up to the first empty one: a running Kafka preallocates the file with zeros."""
    data = _read(path)
    size = Struct(layout).size
    for entry in iter_unpack(layout, data[: len(data) - len(data) % size]):
        if not any(entry):
            return
        yield entry
    if len(data) % size:
        _damaged(f"{len(data) % size} extra bytes after the last entry", options)


def _damaged(reason: str, options: argparse.Namespace) -> bool:
    print_line("damaged", {"reason": reason}, options.json)
    return True


def dump_offset_index(path: str, options: argparse.Namespace) -> bool:
    """Prints the entries of an offset index: the position of an offset in the segment."""
    base = _base_offset(path)
    for offset, position in _entries(path, _OFFSET_INDEX_ENTRY, options):
        print_line("entry", {"offset": base + offset, "position": position}, options.json)
    return False


def dump_time_index(path: str, options: argparse.Namespace) -> bool:
    """Prints the entries of a time index: no record up to the offset has a larger timestamp."""
    base = _base_offset(path)
    for timestamp_ms, offset in _entries(path, _TIME_INDEX_ENTRY, options):
        print_line("entry", {"timestamp_ms": timestamp_ms, "offset": base + offset}, options.json)
    return False


def dump_transaction_index(path: str, options: argparse.Namespace) -> bool:
    """Prints the aborted transactions."""
    for version, producer_id, first, last, last_stable in _entries(path, _TRANSACTION_INDEX_ENTRY, options):
        fields: dict[str, object] = {
            "producer_id": producer_id,
            "first_offset": first,
            "last_offset": last,
            "last_stable_offset": last_stable,
        }
        print_line("aborted", fields | ({"version": version} if options.json else {}), options.json)
    return False


def dump_producers(path: str, options: argparse.Namespace) -> bool:
    """Prints the producers of a producer snapshot. Returns True when the file is damaged."""
    from pykafkad.log.producers import ProducerStates

    states = ProducerStates.from_snapshot(_read(path))
    if states is None:
        return _damaged("not a producer snapshot of version 1 with a valid checksum", options)
    for producer_id, entry in states.items():
        fields: dict[str, object] = {
            "producer_id": producer_id,
            "producer_epoch": entry.epoch,
            "coordinator_epoch": entry.coordinator_epoch,
        }
        fields["current_transaction_first_offset"] = entry.transaction_offset if entry.transaction_offset >= 0 else None
        fields["last_timestamp_ms"] = entry.last_timestamp_ms
        if entry.batches:
            last_sequence, last_offset, offset_delta, _ = entry.batches[-1]
            fields["first_sequence"] = (last_sequence - offset_delta) & 0x7FFFFFFF
            fields |= {"last_sequence": last_sequence, "last_offset": last_offset, "offset_delta": offset_delta}
        print_line("producer", fields, options.json)
    return False


def dump_text(path: str, options: argparse.Namespace) -> bool:
    """Prints a checkpoint, properties or JSON file: unchanged at a terminal, as parsed rows with --json.

    Returns True when the file is damaged or is not text.
    """
    try:
        text = _read(path).decode("utf-8")
    except UnicodeDecodeError:
        return _damaged("neither text nor named like a file of a log", options)
    parse = _parser(os.path.basename(path))
    try:
        rows = None if parse is None else list(parse(text))
    except ValueError as error:
        rows, reason = None, str(error)
    else:
        reason = ""
    if not options.json:
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
    elif rows is None:
        print_json({"kind": "text", "text": text})
    else:
        for row in rows:
            print_json(row)
    return _damaged(reason, options) if reason else False


def _parser(name: str) -> Callable[[str], Iterator[dict[str, object]]] | None:
    """The function that parses the text of a file, found by its name; None when the name is not one of Kafka's."""
    if name in CHECKPOINTS:
        return lambda text: _checkpoint(text, CHECKPOINTS[name])
    if name in PROPERTIES:
        return lambda text: _properties(text, PROPERTIES[name])
    return _json if name in JSON_FILES else None


def _checkpoint(text: str, columns: tuple[str, ...]) -> Iterator[dict[str, object]]:
    lines = text.splitlines()
    if not lines:
        # A crash between creating and writing a checkpoint leaves an empty file.
        return
    if lines[0] != _CHECKPOINT_VERSION or len(lines) < 2 or not lines[1].isdigit():
        raise ValueError(f"a checkpoint begins with version {_CHECKPOINT_VERSION} and the number of rows")
    if int(lines[1]) != len(lines) - 2:
        raise ValueError(f"the file says {lines[1]} rows but has {len(lines) - 2}")
    for line in lines[2:]:
        words = line.split()
        if len(words) != len(columns):
            raise ValueError(f"a row has {len(words)} columns instead of {len(columns)}: {line}")
        row = (word if column in _TEXT_COLUMNS else int(word) for column, word in zip(columns, words, strict=True))
        yield {"kind": "entry", **dict(zip(columns, row, strict=True))}


def _properties(text: str, separator: str) -> Iterator[dict[str, object]]:
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, found, value = line.partition(separator)
            if not found:
                raise ValueError(f"no {separator!r} in the line {line!r}")
            yield {"kind": "property", "name": name.strip(), "value": value.strip()}


def _json(text: str) -> Iterator[dict[str, object]]:
    import json

    # Older brokers write an empty file to mark a clean stop.
    if text.strip():
        yield {"kind": "content", "content": json.loads(text)}
