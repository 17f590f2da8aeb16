"""The three offset checkpoints of one log directory: recovery points, log start offsets, high watermarks."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.log import checkpoints
from pykafkad.wire.batch import crc32c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from pykafkad.log.partition_log import PartitionLog

    Offsets = dict[tuple[str, int], int]

NEXT_SUFFIX = ".next.tmp"
FRESH_SUFFIX = ".fresh.tmp"
"""Ends the name of an empty file which says that the checkpoints do not count for one partition."""

# Leaves room for the rest of a file's name.
_MAX_STEM_LENGTH = 180


class OffsetCheckpoints:
    """The offsets in the checkpoint files of a directory, by (topic, partition), and their changes since.

    `departed` holds the partitions that have left the directory but may still be named in the files on disk. `fresh`
    are the files that say of partitions, which were made anew since, that the checkpoints do not count. `writes` counts
    the writes at once: a `CheckpointJob` that was begun before one is out of date."""

    __slots__ = (
        "_high_watermarks_exceed_logs",
        "_last_fresh",
        "_written",
        "departed",
        "disk",
        "fresh",
        "high_watermarks",
        "log_starts",
        "path",
        "recovery_points",
        "writes",
    )

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.recovery_points = self._read(checkpoints.RECOVERY_POINT_FILE)
        self.log_starts = self._read(checkpoints.LOG_START_FILE)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARK_FILE)
        self._written: dict[str, bytes] = {}
        self._high_watermarks_exceed_logs = False
        self.departed: set[tuple[str, int]] = set()
        self.fresh: dict[str, None] = {}
        self._last_fresh = 0
        self.writes = 0

    def _read(self, name: str) -> Offsets:
        return checkpoints.decode_offsets(self.disk.read(f"{self.path}/{name}"))

    def of(self, key: tuple[str, int]) -> tuple[int, int, int]:
        """(recovery point, log start offset, high watermark) of a partition; zeros when nothing is known."""
        return self.recovery_points.get(key, 0), self.log_starts.get(key, 0), self.high_watermarks.get(key, 0)

    def tables(self) -> tuple[Offsets, Offsets, Offsets]:
        """Recovery points, log start offsets and high watermarks."""
        return self.recovery_points, self.log_starts, self.high_watermarks

    def recovered(self, key: tuple[str, int], log: PartitionLog | None) -> None:
        """Take the offsets of a log that was loaded after an unclean stop; None: it has no segment, and begins anew at
        its start. If it ends below the high watermark that the files give it, `correct` has to write them."""
        start = self.log_starts.get(key, 0)
        end = start if log is None else log.end_offset
        self._high_watermarks_exceed_logs |= self.high_watermarks.get(key, 0) > end
        if log is not None:
            self.note(key, log)
        else:
            self.recovery_points[key] = self.high_watermarks[key] = start

    def correct(self) -> None:
        """Call this after the logs were recovered, and before anything is appended. It writes the files anew if one of
        them gives a log a high watermark above its end: with the next kill, records would count as committed that were
        appended since and never were. Raises `StorageFailure`."""
        if self._high_watermarks_exceed_logs:
            self.write(*self.tables())
            self._high_watermarks_exceed_logs = False

    def note(self, key: tuple[str, int], log: PartitionLog) -> None:
        """Take the offsets of a loaded log for the next write."""
        self.recovery_points[key] = log.recovery_point
        self.log_starts[key] = log.log_start_offset
        self.high_watermarks[key] = log.high_watermark

    def forget(self, key: tuple[str, int]) -> None:
        """The partition has left the directory."""
        self.departed.add(key)
        for offsets in self.tables():
            offsets.pop(key, None)

    def forget_all_but(self, present: Set[tuple[str, int]]) -> None:
        """Forget the partitions that are in the files and not in `present`."""
        for key in [*self.recovery_points, *self.log_starts, *self.high_watermarks]:
            if key not in present:
                self.forget(key)

    def begin_anew(self, key: tuple[str, int], log_start_offset: int = 0) -> None:
        """Call this before a new partition is made: after a kill, the offsets of an earlier partition of the same name
        would truncate it. The checkpoints do not count until the next ones are written. A partition that comes from
        another directory has a log start offset, which must outlive a kill too. Raises `StorageFailure`."""
        if key in self.departed or log_start_offset:
            self.fresh[self.write_fresh(key, log_start_offset)] = None

    def prepare_cut(self, log: PartitionLog, end_offset: int) -> str | None:
        """A log is to be cut so that it ends there: the checkpoints, which may say that more is synced or committed, do
        not count from now on. That is so when `path` is synced. Then the log may be cut, and the name that is returned
        goes to `cut_made`; None if the checkpoints say no more. Until then the name is not in `fresh`: checkpoints that
        are written meanwhile say what was known before the cut, and must not remove the file. Raises
        `StorageFailure`."""
        key = log.topic, log.partition
        if max(self.of(key)) <= end_offset:
            return None
        return self.write_fresh(key, min(log.log_start_offset, end_offset))

    def cut_made(self, log: PartitionLog, name: str | None) -> None:
        """The log is cut, or was recovered late (`ReopenJob`), and knows by itself how much of it is synced: the next
        checkpoints count again. Those that were begun before do not know that, and what was noted for the next ones is
        replaced."""
        if name is not None:
            self.fresh[name] = None
            self.note((log.topic, log.partition), log)

    def write_fresh(self, key: tuple[str, int], log_start_offset: int) -> str:
        """Write a file which says that the checkpoints do not count for a partition; returns its path.

        Nothing is synced: the file's name reaches the device with that of the partition's folder. Raises
        `StorageFailure`."""
        path = self.name_fresh(key, log_start_offset)
        self.disk.write(path, b"")
        return path

    def name_fresh(self, key: tuple[str, int], log_start_offset: int) -> str:
        """The path of a file like that of `write_fresh`, which is not written yet."""
        self._last_fresh += 1
        return f"{self.path}/{_fresh_stem(key)}.{log_start_offset}.{self._last_fresh}{FRESH_SUFFIX}"

    def sync_fresh(self, path: str) -> None:
        """Write the file that `name_fresh` has named, and bring its name to the device; on any thread. Raises
        `StorageFailure`."""
        self.disk.write(path, b"")
        self.disk.sync_directory(self.path)

    def take_fresh(self, names: list[str], present: Set[tuple[str, int]], *, is_clean: bool) -> None:
        """At a start: `names` are those of all files, `present` the partitions that are there. After a clean stop the
        checkpoints count for every partition."""
        rows = []
        for name in names:
            if name.endswith(FRESH_SUFFIX):
                stem, start, number = name.removesuffix(FRESH_SUFFIX).rsplit(".", 2)
                rows.append((int(number), int(start), stem, f"{self.path}/{name}"))
        stems = {_fresh_stem(key): key for key in present} if rows and not is_clean else {}
        for last_number, log_start_offset, stem, path in sorted(rows):
            key = stems.get(stem)
            if key is None:
                self.disk.unlink(path)
                continue
            self._last_fresh = last_number
            self.fresh[path] = None
            self.forget(key)
            self.log_starts[key] = log_start_offset

    def remove_fresh(self, paths: Iterable[str]) -> None:
        """The checkpoints count again; on any thread. Raises `StorageFailure`."""
        for path in paths:
            self.disk.unlink(path)

    def write(self, recovery_points: Offsets, log_starts: Offsets, high_watermarks: Offsets) -> None:
        """Write those of the three files whose content has changed. Raises `StorageFailure`."""
        self.writes += 1
        for name, data in encoded(recovery_points, log_starts, high_watermarks):
            if self.is_new(name, data):
                self.disk.replace(f"{self.path}/{name}", data)
                self._written[name] = data
        self.departed.clear()
        self.remove_fresh(self.fresh)
        self.fresh.clear()

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

    The new files are written and synced beside the old ones, and take their places in `finish`. Only the files that
    were in `fresh` at the beginning are removed."""

    __slots__ = ("_contents", "_departed", "_fresh", "_keys", "_offsets", "_owner", "_writes")

    def __init__(self, owner: OffsetCheckpoints, keys: Iterable[tuple[str, int]]) -> None:
        """`keys` are the partitions that the files shall name."""
        self._owner = owner
        self._keys = list(keys)
        self._offsets = tuple(dict(each) for each in owner.tables())
        self._departed = set(owner.departed)
        self._fresh = list(owner.fresh)
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
        for path in self._fresh:
            owner.fresh.pop(path, None)
        return bool(self._contents or self._fresh)

    def sync_names(self) -> None:
        """Bring the files' names to the device, and then let the checkpoints count again for partitions that were made
        anew. Raises `StorageFailure`."""
        self._owner.disk.sync_directory(self._owner.path)
        self._owner.remove_fresh(self._fresh)


def _fresh_stem(key: tuple[str, int]) -> str:
    name = f"{key[0]}-{key[1]}"
    return f"{name[:_MAX_STEM_LENGTH]}.{crc32c(name.encode()):08x}"


def encoded(recovery_points: Offsets, log_starts: Offsets, high_watermarks: Offsets) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file. Log starts come first: records below them need no recovery, whether they are
    synced or not."""
    started = {key: offset for key, offset in log_starts.items() if offset}
    yield checkpoints.LOG_START_FILE, checkpoints.encode_offsets(started)
    yield checkpoints.RECOVERY_POINT_FILE, checkpoints.encode_offsets(recovery_points)
    yield checkpoints.HIGH_WATERMARK_FILE, checkpoints.encode_offsets(high_watermarks)
