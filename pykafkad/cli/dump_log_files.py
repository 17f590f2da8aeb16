"""`pykafkad dump-log` of what stands beside the segments: indexes, producer snapshots, checkpoints, properties."""

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

# Checkpoints of the form `version, number of rows, rows`: what the words of a row are.
CHECKPOINTS = {
    "leader-epoch-checkpoint": ("leader_epoch", "start_offset"),
    "recovery-point-offset-checkpoint": ("topic", "partition", "recovery_point"),
    "log-start-offset-checkpoint": ("topic", "partition", "log_start_offset"),
    "replication-offset-checkpoint": ("topic", "partition", "high_watermark"),
    "cleaner-offset-checkpoint": ("topic", "partition", "first_dirty_offset"),
}
_WORDS = ("topic",)
# Lines of `name=value` or `name: value`.
PROPERTIES = {"meta.properties": "=", "partition.metadata": ":"}
JSON_FILES = ("quorum-state", ".kafka_cleanshutdown")


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
        _damaged(f"{len(data) % size} bytes are left over at the end", options)


def _damaged(reason: str, options: argparse.Namespace) -> bool:
    print_line("damaged", {"reason": reason}, options.json)
    return True


def dump_offset_index(path: str, options: argparse.Namespace) -> bool:
    """Prints at which position of the segment which offset stands."""
    base = _base_offset(path)
    for offset, position in _entries(path, _OFFSET_INDEX_ENTRY, options):
        print_line("entry", {"offset": base + offset, "position": position}, options.json)
    return False


def dump_time_index(path: str, options: argparse.Namespace) -> bool:
    """Prints up to which offset no timestamp is larger."""
    base = _base_offset(path)
    for timestamp_ms, offset in _entries(path, _TIME_INDEX_ENTRY, options):
        print_line("entry", {"timestamp_ms": timestamp_ms, "offset": base + offset}, options.json)
    return False


def dump_transaction_index(path: str, options: argparse.Namespace) -> bool:
    """Prints the aborted transactions."""
    for version, producer_id, first, last, last_stable in _entries(path, _TRANSACTION_INDEX_ENTRY, options):
        fields = {
            "producer_id": producer_id,
            "first_offset": first,
            "last_offset": last,
            "last_stable_offset": last_stable,
        }
        print_line("aborted", fields | ({"version": version} if options.json else {}), options.json)
    return False


def dump_producers(path: str, options: argparse.Namespace) -> bool:
    """Prints the producers of a snapshot; True when it is not whole."""
    from pykafkad.log.producers import ProducerStates

    states = ProducerStates.from_snapshot(_read(path))
    if states is None:
        return _damaged("no producer snapshot of version 1 with a matching checksum", options)
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
    """Checkpoints, properties and JSON, for people as they are; True for what is damaged, or neither text nor a file of
    Kafka's."""
    try:
        text = _read(path).decode("utf-8")
    except UnicodeDecodeError:
        return _damaged("no text, and not named as a file of a log", options)
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
    """How the text of a file is read, by its name; None for one that is not Kafka's."""
    if name in CHECKPOINTS:
        return lambda text: _checkpoint(text, CHECKPOINTS[name])
    if name in PROPERTIES:
        return lambda text: _properties(text, PROPERTIES[name])
    return _json if name in JSON_FILES else None


def _checkpoint(text: str, columns: tuple[str, ...]) -> Iterator[dict[str, object]]:
    lines = text.splitlines()
    if not lines:
        # A crash may leave a checkpoint that was made and not yet filled.
        return
    if lines[0] != _CHECKPOINT_VERSION or len(lines) < 2 or not lines[1].isdigit():
        raise ValueError(f"a checkpoint begins with its version, {_CHECKPOINT_VERSION}, and the number of its rows")
    if int(lines[1]) != len(lines) - 2:
        raise ValueError(f"{lines[1]} rows are promised, {len(lines) - 2} are there")
    for line in lines[2:]:
        words = line.split()
        if len(words) != len(columns):
            raise ValueError(f"a row of {len(words)} words, not of {len(columns)}: {line}")
        row = (word if column in _WORDS else int(word) for column, word in zip(columns, words, strict=True))
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

    # Older brokers left the marker of a clean stop empty.
    if text.strip():
        yield {"kind": "content", "content": json.loads(text)}
