"""The transaction index of one segment: its aborted transactions, which read_committed consumers must leave out
(KIP-98).

File `.txnindex`, as Kafka's: entries of 34 bytes in the order of the abort markers: version 0, producer id, first
offset of the transaction, offset of its abort marker, last stable offset at that moment. A segment in which nothing was
aborted has no file. While a segment is active its entries live in memory, like those of the other indexes."""

from __future__ import annotations

from collections import namedtuple
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.log.segment import Segment

_ENTRY = Struct(">hqqqq")
ENTRY_SIZE_BYTES = _ENTRY.size
_VERSION = 0

AbortedTransaction = namedtuple(
    "AbortedTransaction", ("producer_id", "first_offset", "last_offset", "last_stable_offset")
)
AbortedTransaction.__doc__ = "`last_offset` is that of the abort marker; both offsets are inclusive."


def to_bytes(entries: Sequence[AbortedTransaction]) -> bytes:
    """The file's content."""
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def from_bytes(data: bytes, base_offset: int) -> list[AbortedTransaction] | None:
    """Read a file's content; None when it cannot be the index of a segment with that base and must be rebuilt."""
    if len(data) % ENTRY_SIZE_BYTES:
        return None
    entries = []
    for version, *row in _ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*row)
        if (
            version > _VERSION
            or entry.last_offset < base_offset
            or entry.first_offset > entry.last_offset
            or entry.last_stable_offset > entry.last_offset + 1
        ):
            return None
        entries.append(entry)
    return entries


def collect(segments: list[Segment], start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """The aborted transactions that have records in [start_offset, end_offset); `segments` begin with the one read.

    The search ends with the first entry that says that nothing before `end_offset` was undecided when it was written.
    """
    found = []
    for segment in segments:
        for entry in segment.aborted:
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found
    return found
