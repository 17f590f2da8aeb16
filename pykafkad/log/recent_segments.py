"""The sealed segments of a log that keep their files open and their indexes in memory."""

from __future__ import annotations

from pykafkad.log.segment import Segment

# How many sealed segments of one log keep their files open, and how many their indexes in memory. The segment unused
# for longest is dropped first. The indexes of segments with closed files have at most MAX_SEALED_ENTRIES entries of 20
# bytes together.
MAX_SEALED_FILES = 4
MAX_SEALED_INDEXES = 64
MAX_SEALED_ENTRIES = 500_000


class RecentSegments(list[Segment]):
    """The sealed segments of one log that were read last, in the order of their last use."""

    __slots__ = ()

    def use(self, segment: Segment, *, may_close: bool) -> None:
        """Call this before a segment is read. With `may_close` the segments unused for longest are dropped."""
        if self and self[-1] is segment:
            return
        is_new = segment not in self
        if not is_new:
            self.remove(segment)
        self.append(segment)
        if len(self) > MAX_SEALED_FILES and may_close:
            self[-MAX_SEALED_FILES - 1].drop_file()
            if is_new:
                self._drop_indexes()

    def _drop_indexes(self) -> None:
        # Drop the indexes unused for longest until the rest is within the limits.
        entries = [each.loaded_entries for each in self]
        total, gone = sum(entries), 0
        while (total > MAX_SEALED_ENTRIES and gone < len(self) - MAX_SEALED_FILES) or len(
            self
        ) - gone > MAX_SEALED_INDEXES:
            self[gone].drop_indexes()
            total -= entries[gone]
            gone += 1
        del self[:gone]

    def close_unless_kept(self, segment: Segment) -> None:
        """Close the file of a segment that is not among those whose files stay open."""
        if segment not in self[-MAX_SEALED_FILES:]:
            segment.drop_file()
