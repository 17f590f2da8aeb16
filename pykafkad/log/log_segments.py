"""The segments of one partition's log: finding them, and keeping the files of sealed ones open for a while."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from pykafkad.log.file_names import LOG_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.disk import Disk
    from pykafkad.errors import StorageFailure
    from pykafkad.log.recent_segments import RecentSegments
    from pykafkad.log.recovery import Checkpointed
    from pykafkad.log.segment import Segment

_base_offset = attrgetter("base_offset")


class LogSegments:
    """What `LogFiles` does with its `segments`, which are in the order of their offsets."""

    __slots__ = ()

    segments: list[Segment]
    directory: str
    offline: StorageFailure | None
    _active: Segment
    _disk: Disk
    _initial: Checkpointed
    _recent_sealed: RecentSegments

    @property
    def is_loaded(self) -> bool:
        """Whether the log is loaded. Reading any of `LOADED_SLOTS` loads it."""
        try:
            object.__getattribute__(self, "_active")
        except AttributeError:
            return False
        return True

    @property
    def unrecovered(self) -> Checkpointed | None:
        """What the checkpoints say of a log that is to be recovered when it is loaded; None for all others."""
        return None if self.is_loaded or self._initial.clean else self._initial

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments. For an unopened log this adds up the sizes of its files, without opening it."""
        if self.is_loaded:
            return sum(segment.size for segment in self.segments)
        names = self._disk.listdir(self.directory)
        return sum(self._disk.size(f"{self.directory}/{name}") for name in names if name.endswith(LOG_SUFFIX))

    def count_segment_files(self) -> int:
        """The number of segments, counted in the folder, without opening the log."""
        return sum(name.endswith(LOG_SUFFIX) for name in self._disk.listdir(self.directory))

    def segment_at(self, offset: int) -> int:
        """Index in `segments` of the segment that an offset belongs to."""
        return max(bisect_right(self.segments, offset, key=_base_offset) - 1, 0)

    def segments_from(self, offset: int) -> list[Segment]:
        """The segment that holds an offset, and all after it."""
        return self.segments[self.segment_at(offset) :]

    def touch(self, segment: Segment) -> None:
        """Call this before a segment is read: a sealed one keeps its file and indexes for a while."""
        if segment is not self._active:
            # A log that is offline keeps its files open, because they may have been renamed.
            self._recent_sealed.use(segment, may_close=self.offline is None)

    def rest(self, segment: Segment) -> None:
        """Close the file of a sealed segment that nobody reads."""
        if segment is not self._active and self.offline is None:
            self._recent_sealed.close_unless_kept(segment)

    def forget_sealed(self, segment: Segment) -> None:
        """Call this when a sealed segment is removed from the log."""
        if segment in self._recent_sealed:
            self._recent_sealed.remove(segment)
