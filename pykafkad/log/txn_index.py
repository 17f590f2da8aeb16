"""The transaction index of one segment: its aborted transactions, which read_committed consumers skip (KIP-98).

File `.txnindex`, as Kafka's: entries of 34 bytes, in the order of the abort markers. An entry has version 0, producer
id, first offset of the transaction, offset of its abort marker, and the last stable offset at that moment. A segment
without aborted transactions has no file. The entries of an active segment are in memory, as in the other indexes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import namedtuple
from operator import itemgetter
from struct import Struct

from pykafkad.log.file_names import SNAPSHOT_SUFFIX, TXN_INDEX_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pykafkad.log.segment import Segment

_ENTRY = Struct(">hqqqq")
ENTRY_SIZE_BYTES = _ENTRY.size
_VERSION = 0
_last_offset = itemgetter(2)


class AbortedTransaction(
    namedtuple("AbortedTransaction", ("producer_id", "first_offset", "last_offset", "last_stable_offset"))
):
    """`last_offset` is that of the abort marker; both offsets are inclusive."""

    __slots__ = ()

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedTransactions(list[AbortedTransaction]):
    """The entries of one segment in the order of their markers.

    `ranges` tells most reads at once that they meet none: the file positions [start, end, start, end, ...], ascending,
    between which the transactions lie, None until the first read. A range begins at or before the transaction's first
    batch, and ends at or behind its marker."""

    __slots__ = ("ranges",)

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        super().__init__(entries)
        self.ranges: array[int] | None = None

    def find_ranges(self, segment: Segment) -> array[int]:
        """Set `ranges`, and return them."""
        self.ranges = ranges = array("q")
        for entry in self:
            _extend(ranges, entry, segment)
        return ranges

    def add(self, entry: AbortedTransaction, segment: Segment) -> None:
        """Append a transaction whose marker is now the segment's last batch."""
        self.append(entry)
        if self.ranges is not None:
            _extend(self.ranges, entry, segment)


NO_ABORTED = AbortedTransactions()
"""What segments without aborted transactions share. Nothing is added to it."""


def _extend(ranges: array[int], entry: AbortedTransaction, segment: Segment) -> None:
    """Add the range of a transaction that ends behind all others; ranges that meet become one."""
    start = 0
    if entry.first_offset > segment.base_offset:
        start = segment.offset_index.lookup(entry.first_offset - segment.base_offset)[1]
    # The batch at an index entry with a higher last offset begins behind the marker.
    behind = segment.offset_index.first_above(entry.last_offset - segment.base_offset)
    end = segment.size if behind is None else behind[1]
    while ranges and ranges[-1] >= start:
        ranges.pop()
        start = min(start, ranges.pop())
    ranges.append(start)
    ranges.append(end)


def to_bytes(entries: Sequence[AbortedTransaction]) -> bytes:
    """The file's content."""
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def from_bytes(data: bytes, base_offset: int) -> list[AbortedTransaction] | None:
    """Parse a file's content; None when it cannot be the index of a segment with that base, and must be rebuilt."""
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


def collect(segments: Sequence[Segment], start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """The aborted transactions that overlap [start_offset, end_offset); `segments` begin with the one that is read.

    The search ends at the first entry with a last stable offset at or above `end_offset`: no transaction before
    `end_offset` was ongoing then.
    """
    found = []
    for segment in segments:
        entries = segment.aborted
        for at in range(bisect_left(entries, start_offset, key=_last_offset), len(entries)):
            entry = entries[at]
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found
    return found


def load(segment: Segment) -> AbortedTransactions:
    """The aborted transactions of a segment, from its file if that fits the log, else from the batches."""
    data = segment.disk.read(segment.prefix + TXN_INDEX_SUFFIX)
    entries = [] if data is None else from_bytes(data, segment.base_offset)
    # An empty file may be left by Kafka, which truncates the index, or by a power loss. Only the batches tell which.
    if entries is None or (data is not None and not entries) or not all(_is_abort(segment, each) for each in entries):
        entries = _find_aborted(segment)
    return AbortedTransactions(entries)


def _is_abort(segment: Segment, entry: AbortedTransaction) -> bool:
    """Whether an entry fits the batches: its marker is there, and the transaction's first batch is the producer's."""
    marker = segment.batch_with(entry.last_offset)
    if (
        marker is None
        or not marker.is_control
        or marker.base_offset != entry.last_offset
        or marker.producer_id != entry.producer_id
    ):
        return False
    first = segment.batch_with(entry.first_offset) if entry.first_offset >= segment.base_offset else None
    return first is None or (first.base_offset == entry.first_offset and first.producer_id == entry.producer_id)


def _find_aborted(segment: Segment) -> list[AbortedTransaction]:
    from functools import partial

    from pykafkad.log.producers import ProducerStates

    # The snapshot at the segment's base says which transactions were ongoing there.
    snapshot = segment.disk.read(segment.prefix + SNAPSHOT_SUFFIX) or b""
    producers = ProducerStates.from_snapshot(snapshot) or ProducerStates()
    found = (
        producers.track(header, partial(segment.file.pread, header.size_bytes, position))
        for position, header in segment.headers()
    )
    return [aborted for aborted in found if aborted is not None]
