"""The time index of one segment: the largest timestamp up to some offset, one entry for each offset index entry.

File, as Kafka's: 12-byte entries, int64 timestamp, int32 offset minus the segment's base. Timestamps and offsets both
strictly ascend. An entry (t, o) says that no record up to offset o has a timestamp above t. The last entry is added
when the segment rolls or closes, so it also holds the segment's largest timestamp."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from struct import Struct
from sys import byteorder

from pykafkad.log.offset_index import rises

ENTRY_SIZE_BYTES = 12
_ENTRY = Struct(">qi")


class TimeIndex:
    """Two parallel arrays: `timestamps` (int64, strictly ascending) and `offsets` (relative int32)."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("i")

    def __len__(self) -> int:
        return len(self.offsets)

    def maybe_append(self, timestamp_ms: int, relative_offset: int) -> None:
        """Add an entry if the timestamp is larger than those of all entries."""
        timestamps = self.timestamps
        if (not timestamps and timestamp_ms >= 0) or (timestamps and timestamp_ms > timestamps[-1]):
            if timestamps and relative_offset <= self.offsets[-1]:
                return
            timestamps.append(timestamp_ms)
            self.offsets.append(relative_offset)

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """The last entry with at most this timestamp: no record before its offset is later. (-1, 0) without one."""
        at = bisect_right(self.timestamps, timestamp_ms)
        # The entry's timestamp is the largest so far, so the record at its offset may be the one that is looked for.
        return (self.timestamps[at - 1], self.offsets[at - 1]) if at else (-1, 0)

    def last(self) -> tuple[int, int]:
        """(timestamp, relative offset) of the last entry, (-1, 0) without one."""
        return (self.timestamps[-1], self.offsets[-1]) if self.timestamps else (-1, 0)

    def truncate(self, relative_end_offset: int) -> None:
        """Forget entries at or after an offset."""
        at = bisect_right(self.offsets, relative_end_offset - 1)
        del self.timestamps[at:], self.offsets[at:]

    def to_bytes(self) -> bytes:
        pack = _ENTRY.pack
        return b"".join(map(pack, self.timestamps, self.offsets))

    @classmethod
    def from_bytes(cls, data: bytes, *, step: int = 1) -> TimeIndex | None:
        """Parse a file's content; None when it is no time index, and must be rebuilt. `step` as in `OffsetIndex`."""
        if len(data) % ENTRY_SIZE_BYTES:
            return None
        words = array("i")
        words.frombytes(data)
        # The two halves of each timestamp, in this machine's byte order.
        halves = array("i", bytes(len(words) // 3 * 8))
        if byteorder == "little":
            words.byteswap()
            halves[0::2], halves[1::2] = words[1::3], words[0::3]
        else:
            halves[0::2], halves[1::2] = words[0::3], words[1::3]
        index = cls()
        index.timestamps.frombytes(halves.tobytes())
        index.offsets = words[2::3]
        return index if rises(index.timestamps, step) and rises(index.offsets, step) else None
