"""The three offset checkpoints of one log directory: recovery points, log start offsets, high watermarks."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.log import checkpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from pykafkad.log.partition_log import PartitionLog

    Offsets = dict[tuple[str, int], int]

NEXT_SUFFIX = ".next.tmp"


class OffsetCheckpoints:
    """The offsets in the checkpoint files of a directory, by (topic, partition), and their changes since.

    `departed` holds the partitions that are no longer in the directory but may still be named in the files on disk.
    `writes` counts the writes at once: a `CheckpointJob` that was begun before one is out of date."""

    __slots__ = ("_written", "departed", "disk", "high_watermarks", "log_starts", "path", "recovery_points", "writes")

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.recovery_points = self._read(checkpoints.RECOVERY_POINT_FILE)
        self.log_starts = self._read(checkpoints.LOG_START_FILE)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARK_FILE)
        self._written: dict[str, bytes] = {}
        self.departed: set[tuple[str, int]] = set()
        self.writes = 0

    def _read(self, name: str) -> Offsets:
        return checkpoints.decode_offsets(self.disk.read(f"{self.path}/{name}"))

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
        self.writes += 1
        for name, data in encoded(recovery_points, log_starts, high_watermarks):
            if self.is_new(name, data):
                self.disk.replace(f"{self.path}/{name}", data)
                self._written[name] = data
        self.departed.clear()

    def is_new(self, name: str, data: bytes) -> bool:
        """Whether a file has another content than `data`, as far as is known."""
        return self._written.get(name) != data

    def take_place(self, name: str, data: bytes) -> None:
        """Give a file the content that lies beside it. Raises `StorageFailure`."""
        path = f"{self.path}/{name}"
        self.disk.rename(path + NEXT_SUFFIX, path)
        self._written[name] = data


class CheckpointJob:
    """One writing of the checkpoints: `run` and then `sync_names` on any thread, `finish` between them on the loop's.

    The new files are written and synced beside the old ones, and take their places in `finish`."""

    __slots__ = ("_contents", "_departed", "_keys", "_offsets", "_owner", "_writes")

    def __init__(self, owner: OffsetCheckpoints, keys: Iterable[tuple[str, int]]) -> None:
        """`keys` are the partitions that the files shall name."""
        self._owner = owner
        self._keys = list(keys)
        self._offsets = tuple(dict(each) for each in (owner.recovery_points, owner.log_starts, owner.high_watermarks))
        self._departed = set(owner.departed)
        self._writes = owner.writes
        self._contents: list[tuple[str, bytes]] = []

    def run(self) -> None:
        """Write and sync the files whose content has changed. Raises `StorageFailure`."""
        owner = self._owner
        for name, data in encoded(*({key: each.get(key, 0) for key in self._keys} for each in self._offsets)):
            if owner.is_new(name, data):
                owner.disk.write(f"{owner.path}/{name}{NEXT_SUFFIX}", data, sync=True)
                self._contents.append((name, data))

    def finish(self) -> bool:
        """Put the files in place, unless something was written at once meanwhile; whether names are to be synced.
        Raises `StorageFailure`."""
        owner = self._owner
        if owner.writes != self._writes:
            return False
        for name, data in self._contents:
            owner.take_place(name, data)
        owner.departed -= self._departed
        return bool(self._contents)

    def sync_names(self) -> None:
        """Bring the files' names to the device. Raises `StorageFailure`."""
        self._owner.disk.sync_directory(self._owner.path)


def encoded(recovery_points: Offsets, log_starts: Offsets, high_watermarks: Offsets) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file. Log starts come first: records below them need no recovery, whether they are
    synced or not."""
    started = {key: offset for key, offset in log_starts.items() if offset}
    yield checkpoints.LOG_START_FILE, checkpoints.encode_offsets(started)
    yield checkpoints.RECOVERY_POINT_FILE, checkpoints.encode_offsets(recovery_points)
    yield checkpoints.HIGH_WATERMARK_FILE, checkpoints.encode_offsets(high_watermarks)
