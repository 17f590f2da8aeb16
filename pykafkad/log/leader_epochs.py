"""The leader epochs of one partition and the offset where each began: `leader-epoch-checkpoint` (KIP-101, KIP-279).

Entries are `(epoch, start_offset)`, both ascending. An epoch ends where the next one starts. OffsetForLeaderEpoch
answers with that end offset, and a follower truncates its log to it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right

UNDEFINED = -1


class LeaderEpochs:
    """`entries` are in ascending order; `changed` says that the file does not have them yet."""

    __slots__ = ("changed", "entries")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = entries or []
        self.changed = False

    @property
    def latest(self) -> int:
        """The newest epoch, -1 without one."""
        return self.entries[-1][0] if self.entries else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Begin a new epoch at an offset. Entries at or after that offset never held a record and are removed.

        Assigning the newest epoch again changes nothing. Returns whether the entries changed.
        """
        entries = self.entries
        if entries and epoch <= entries[-1][0] and start_offset >= entries[-1][1]:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        self.changed = True
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest known epoch at or below the given one, its end offset); (-1, -1) when it is unknown.

        For an epoch older than all entries the result is that epoch and the start offset of the first entry, as in
        Kafka.
        """
        entries = self.entries
        if epoch == UNDEFINED or not entries or epoch > entries[-1][0]:
            return UNDEFINED, UNDEFINED
        if epoch == entries[-1][0]:
            return epoch, log_end_offset
        at = bisect_right(entries, (epoch, 1 << 63))
        if at == 0:
            return epoch, entries[0][1]
        return entries[at - 1][0], entries[at][1]

    def epoch_for(self, offset: int) -> int:
        """The epoch of the record at an offset, -1 when it is older than all entries."""
        for epoch, start_offset in reversed(self.entries):
            if start_offset <= offset:
                return epoch
        return UNDEFINED

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that began at or after the end of the log."""
        while self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
            self.changed = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before the start of the log. The epoch that contains the start begins there now."""
        entries = self.entries
        at = bisect_right([start for _, start in entries], start_offset)
        if at > 1 or (at and entries[0][1] < start_offset):
            entries[at - 1] = (entries[at - 1][0], start_offset)
            del entries[: at - 1]
            self.changed = True

    def to_text(self) -> str:
        """The file's content: version 0, the number of entries, then one `epoch offset` per line."""
        return "".join(("0\n", f"{len(self.entries)}\n", *(f"{epoch} {offset}\n" for epoch, offset in self.entries)))

    @classmethod
    def from_text(cls, text: str) -> LeaderEpochs | None:
        """Parse a file's content; None when it is damaged, and must be rebuilt from the log."""
        if not text.endswith("\n"):
            # A last number that was cut short would still parse as a number.
            return None
        lines = text.splitlines()
        try:
            rows = [(int(epoch), int(offset)) for epoch, offset in (line.split() for line in lines[2:])]
            if int(lines[0]) != 0 or int(lines[1]) != len(rows):
                return None
        except (ValueError, IndexError):
            return None
        if any(later[0] <= earlier[0] or later[1] < earlier[1] for earlier, later in itertools.pairwise(rows)):
            return None
        return cls(rows)
