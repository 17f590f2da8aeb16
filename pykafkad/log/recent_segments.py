"""Which sealed segments of a log keep their files open and their indexes in memory."""

from __future__ import annotations

from pykafkad.log.segment import Segment

# Sealed segments whose files stay open, and whose indexes stay in memory, per log; the longest unused one is dropped.
# All those indexes together have at most so many entries of 20 bytes, beside those of open files.
MAX_SEALED_FILES = 4
MAX_SEALED_INDEXES = 64
MAX_SEALED_ENTRIES = 500_000


class RecentSegments(list[Segment]):
    """The sealed segments of one log that were read last, in the order of their last use."""

    __slots__ = ()

    def use(self, segment: Segment, *, may_close: bool) -> None:
        """A segment is about to be read. With `may_close` those unused longest lose their files and indexes."""
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
        # Those unused longest, while the indexes of all are more than a log may keep.
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
