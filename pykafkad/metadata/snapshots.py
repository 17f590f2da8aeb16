"""Snapshots of the metadata log: `END_OFFSET-EPOCH.checkpoint`, the whole image as records (KIP-630).

A snapshot stands for all records below its end offset, the last of which was written in its epoch. Its own batches count their
offsets from 0: a control batch with the header (and the quorum's version and voters), data batches, a control batch with the
footer. The one with end offset 0 comes from formatting and holds the first voters. `bootstrap.checkpoint`, in the same form,
holds what a new cluster begins with.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import stored
from pykafkad.wire.batch import HEADER_SIZE_BYTES, parse_header, validate
from pykafkad.wire.records import iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafkad.effects import StoredRecord

SUFFIX = ".checkpoint"
_OFFSET_DIGITS = 20
_EPOCH_DIGITS = 10


def file_name(end_offset: int, epoch: int) -> str:
    """The name of the snapshot of everything below `end_offset`."""
    return f"{end_offset:0{_OFFSET_DIGITS}}-{epoch:0{_EPOCH_DIGITS}}{SUFFIX}"


def parse_name(name: str) -> tuple[int, int] | None:
    """`(end offset, epoch)` of a snapshot's file name; None for any other name."""
    offset, dash, epoch = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or not dash or (len(offset), len(epoch)) != (_OFFSET_DIGITS, _EPOCH_DIGITS):
        return None
    if not (offset.isascii() and offset.isdigit() and epoch.isascii() and epoch.isdigit()):
        return None
    return int(offset), int(epoch)


def listed(names: Iterable[str]) -> list[tuple[int, int]]:
    """`(end offset, epoch)` of the snapshots among the names of a directory, the oldest first."""
    return sorted(found for found in map(parse_name, names) if found is not None)


def read(content: bytes) -> Iterator[StoredRecord]:
    """The records of a snapshot's file. Raises `KafkaError(CORRUPT_MESSAGE)` where it is not whole, `ProtocolError` where a
    record is not."""
    view = memoryview(content)
    position = 0
    finished = False
    while position < len(view):
        if len(view) - position < HEADER_SIZE_BYTES:
            raise KafkaError(errors.CORRUPT_MESSAGE, f"{len(view) - position} bytes at {position} are no batch")
        batch = view[position : position + parse_header(view, position).size_bytes]
        header = validate(batch)
        for record in iterate_records(batch, header):
            found = stored.decode(record.key if header.is_control else None, record.value)
            finished = type(found.value).__name__ == "SnapshotFooterRecord"
            yield found
        position += len(batch)
    if not finished:
        raise KafkaError(errors.CORRUPT_MESSAGE, "the snapshot's footer is missing")
