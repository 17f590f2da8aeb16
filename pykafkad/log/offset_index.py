"""The sparse offset index of one segment: for about every `index.interval.bytes` of log, where a batch starts.

File, as Kafka's: 8-byte entries, int32 offset minus the segment's base, int32 file position, both strictly
growing. As in Kafka the offset of an entry is the *last* offset of the batch at that position, so a lookup may return
the entry before the right one, and the reader walks forward from there.

The index of an active segment is in memory only. Its file is written when the segment rolls and when the log closes.
After a crash the index is rebuilt from the log, so a stale file is never trusted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from sys import byteorder

ENTRY_SIZE_BYTES = 8


class OffsetIndex:
    """Two parallel arrays of int32: `offsets` (relative, ascending) and `positions` (ascending)."""

    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        self.offsets = array("i")
        self.positions = array("i")

    def __len__(self) -> int:
        return len(self.offsets)

    def append(self, relative_offset: int, position: int) -> None:
        self.offsets.append(relative_offset)
        self.positions.append(position)

    def lookup(self, relative_offset: int) -> tuple[int, int]:
        """(relative offset, position) of the last entry at or before an offset; (0, 0) when there is none."""
        at = bisect_right(self.offsets, relative_offset)
        return (self.offsets[at - 1], self.positions[at - 1]) if at else (0, 0)

    def last_within(self, start: int, end: int) -> tuple[int, int] | None:
        """The entry with the highest position in (start, end], where a batch begins; None when there is none."""
        at = bisect_right(self.positions, end)
        if at and self.positions[at - 1] > start:
            return self.offsets[at - 1], self.positions[at - 1]
        return None

    def first_from(self, position: int) -> tuple[int, int] | None:
        """The first entry at or after a position, None when there is none."""
        at = bisect_left(self.positions, position)
        return (self.offsets[at], self.positions[at]) if at < len(self.positions) else None

    def first_above(self, relative_offset: int) -> tuple[int, int] | None:
        """The first entry with an offset above the given one, None when there is none."""
        at = bisect_right(self.offsets, relative_offset)
        return (self.offsets[at], self.positions[at]) if at < len(self.offsets) else None

    def truncate(self, size_bytes: int) -> None:
        """Forget entries with positions at or after `size_bytes`."""
        at = bisect_right(self.positions, size_bytes - 1)
        del self.offsets[at:], self.positions[at:]

    def to_bytes(self) -> bytes:
        both = array("i", bytes(ENTRY_SIZE_BYTES * len(self.offsets)))
        both[0::2] = self.offsets
        both[1::2] = self.positions
        if byteorder == "little":
            both.byteswap()
        return both.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, log_size_bytes: int, *, step: int = 1) -> OffsetIndex | None:
        """Parse a file's content; None when it cannot be the index of a log of that size, and must be rebuilt.

        With a `step` above 1 only every `step`th entry is checked; the caller then compares each entry that it uses
        with the log.
        """
        if len(data) % ENTRY_SIZE_BYTES:
            return None
        both = array("i")
        both.frombytes(data)
        if byteorder == "little":
            both.byteswap()
        index = cls()
        index.offsets = both[0::2]
        index.positions = both[1::2]
        if (
            not rises(index.offsets, step)
            or not rises(index.positions, step)
            or (len(index) and index.positions[-1] >= log_size_bytes)
        ):
            return None
        return index


def rises(values: array[int], step: int = 1) -> bool:
    """Whether the values are not negative and strictly ascend; only every `step`th and the last two are compared."""
    if not values:
        return True
    looked_at = values[::step]
    if (len(values) - 1) % step:
        looked_at.append(values[-1])
    return values[0] >= 0 and all(map(lt, looked_at, looked_at[1:])) and all(map(lt, values[-2:-1], values[-1:]))
