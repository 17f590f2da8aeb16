"""The three offset checkpoints of one log directory: recovery points, log start offsets, high watermarks."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.log import checkpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set

    from pykafkad.log.partition_log import PartitionLog

    Offsets = dict[tuple[str, int], int]


class OffsetCheckpoints:
    """The offsets in the checkpoint files of a directory, by (topic, partition), and their changes since.

    `departed` holds the partitions that are no longer in the directory but may still be named in the files on disk."""

    __slots__ = ("_disk", "_path", "_written", "departed", "high_watermarks", "log_starts", "recovery_points")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self.recovery_points = self._read(checkpoints.RECOVERY_POINT_FILE)
        self.log_starts = self._read(checkpoints.LOG_START_FILE)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARK_FILE)
        self._written: dict[str, bytes] = {}
        self.departed: set[tuple[str, int]] = set()

    def _read(self, name: str) -> Offsets:
        return checkpoints.decode_offsets(self._disk.read(f"{self._path}/{name}"))

    def of(self, key: tuple[str, int]) -> tuple[int, int, int]:
        """(recovery point, log start offset, high watermark) of a partition; zeros when nothing is known."""
        return self.recovery_points.get(key, 0), self.log_starts.get(key, 0), self.high_watermarks.get(key, 0)

    def note(self, key: tuple[str, int], log: PartitionLog) -> None:
        """Take the offsets of a loaded log for the next write."""
        self.recovery_points[key] = log.recovery_point
        self.log_starts[key] = log.log_start_offset
        self.high_watermarks[key] = log.high_watermark

    def forget(self, key: tuple[str, int]) -> None:
        """The partition has left the directory."""
        self.departed.add(key)
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks):
            offsets.pop(key, None)

    def forget_all_but(self, present: Set[tuple[str, int]]) -> None:
        """Forget the partitions that are in the files and not in `present`."""
        for key in [*self.recovery_points, *self.log_starts]:
            if key not in present:
                self.forget(key)

    def clear_departed(self, key: tuple[str, int]) -> None:
        """Call this before a new partition is made: after a kill, the offsets of an earlier partition of the same name
        would truncate it."""
        if key in self.departed:
            self.write(self.recovery_points, self.log_starts, self.high_watermarks)

    def write(self, recovery_points: Offsets, log_starts: Offsets, high_watermarks: Offsets) -> None:
        """Write those of the three files whose content has changed. Raises `StorageFailure`."""
        # Log starts come first: records below them need no recovery, whether they are synced or not.
        self._write_file(checkpoints.LOG_START_FILE, {key: offset for key, offset in log_starts.items() if offset})
        self._write_file(checkpoints.RECOVERY_POINT_FILE, recovery_points)
        self._write_file(checkpoints.HIGH_WATERMARK_FILE, high_watermarks)
        self.departed.clear()

    def _write_file(self, name: str, offsets: Offsets) -> None:
        data = checkpoints.encode_offsets(offsets)
        if self._written.get(name) != data:
            self._disk.replace(f"{self._path}/{name}", data)
            self._written[name] = data
