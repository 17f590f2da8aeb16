"""Moving a partition's log to another directory (KIP-113): a future replica is copied until it can replace the log.

The copy has the same files, byte for byte. At the end only the files and the path of the open log change; its offsets,
indexes and producers stay, and so does the log object that others hold. The copying runs on another thread in steps of
`STEP_BYTES`, which the loop plans. Segments that the cleaner replaces meanwhile are copied again. A broker copies one
log at a time, in the order in which the moves were asked for (`MoveQueue`). The folder has Kafka's name,
`<topic>-<partition>.<32 hex>-future`, so a start recognises an interrupted move.

What is synced in the old directory must be synced in the new one before the copy replaces the log. The last step syncs
the copy, on the other thread too. It is repeated while the recovery point is above what it has synced, so whoever moves
a log lets no sync of it begin while `is_copied` holds."""

from __future__ import annotations

from functools import partial

from pykafkad.log.checkpoints import PARTITION_METADATA_FILE, encode_partition_metadata
from pykafkad.log.directory import LogDirectory
from pykafkad.log.file_names import (
    FUTURE_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_prefix,
)
from pykafkad.log.syncing import EPOCHS_FILE, sync_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.disk import File
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.segment import Segment

STEP_BYTES = 1024 * 1024
# About this much is copied on the loop, when the copy is synced and when the log is switched to it.
LAST_BYTES = 256 * 1024
# Small files per step.
STEP_FILES = 16
SHORTEST_PAUSE_SECONDS = 0.001
NO_RATE_SECONDS = 60.0
# Index files and producer snapshots.
_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX)


def future_name(topic: str, partition: int, unique: int) -> str:
    """The folder's name; `unique` is a number of 128 bits."""
    return f"{topic}-{partition}.{unique:032x}{FUTURE_SUFFIX}"


class _Copy:
    """The copy of one segment's `.log` file: the first `size` bytes of `source` are in `file`."""

    __slots__ = ("file", "segment", "size", "source")

    def __init__(self, segment: Segment, file: File) -> None:
        self.segment = segment
        self.source = segment.file
        self.file = file
        self.size = 0


class FutureReplica:
    """The move of `log` from the directory `source` to `target`. The constructor may raise `StorageFailure`."""

    __slots__ = (
        "_copies",
        "_index_files",
        "_known_index_files",
        "_name",
        "_rest_bytes",
        "_synced_epochs",
        "_synced_offset",
        "is_assigned",
        "log",
        "source",
        "target",
    )

    def __init__(self, log: PartitionLog, source: LogDirectory, target: LogDirectory) -> None:
        self.log = log
        self.source = source
        self.target = target
        self._name = future_name(log.topic, log.partition, target.services.random.getrandbits(128))
        self._copies: dict[int, _Copy] = {}
        self._index_files: list[str] | None = None
        self._known_index_files: set[str] = set()
        self._rest_bytes: int | None = None
        self._synced_offset: int | None = None
        self._synced_epochs = b""
        self.is_assigned = False
        """Whether the controller was asked to name the new directory in the metadata."""
        target.disk.make_directories(self.path)
        target.disk.write(f"{self.path}/{PARTITION_METADATA_FILE}", encode_partition_metadata(log.topic_id))

    def __repr__(self) -> str:
        return f"FutureReplica({self.path})"

    @property
    def path(self) -> str:
        return f"{self.target.path}/{self._name}"

    @property
    def size_bytes(self) -> int:
        """Bytes of the log that are copied already."""
        return sum(copy.size for copy in self._copies.values())

    @property
    def end_offset(self) -> int:
        """The end of the last segment that is copied whole, counted from the start of the log."""
        log = self.log
        for segment in log.segments:
            copy = self._copies.get(segment.base_offset)
            if copy is None or copy.size < segment.written_size:
                return segment.base_offset
        return log.written_end_offset

    def next_step(self) -> Callable[[], object] | None:
        """The next piece of work for another thread; None when only `take_place` is left."""
        self._forget_replaced()
        missing = 0
        first: tuple[_Copy, int] | None = None
        for segment in self.log.segments:
            copy = self._copies.get(segment.base_offset)
            if copy is None:
                copy = self._copies[segment.base_offset] = _Copy(segment, self._open(segment.base_offset))
            if copy.size < segment.written_size:
                missing += segment.written_size - copy.size
                first = first or (copy, min(STEP_BYTES, segment.written_size - copy.size))
        if missing <= LAST_BYTES and self._rest_bytes is None:
            # `_copy_rest` copies what is appended from now on, because the copy of a log with constant appends would
            # never be whole.
            self._rest_bytes = missing
        if first is not None and (self._rest_bytes is None or self._rest_bytes > 0 or missing > LAST_BYTES):
            copy, size = first
            if self._rest_bytes is not None:
                self._rest_bytes -= size
            return partial(_copy, copy, size)
        if self._index_files is None:
            self._index_files = self._missing_index_files()
        if self._index_files:
            names, self._index_files = self._index_files[:STEP_FILES], self._index_files[STEP_FILES:]
            return partial(self._copy_index_files, self.log.directory, names)
        if self._synced_offset is None or self.log.recovery_point > self._synced_offset:
            return self._sync_step()
        return None

    @property
    def is_copied(self) -> bool:
        """Whether only steps that sync the copy can be left, so that no sync of the log should begin any more. It ends
        when the cleaner replaces a segment, which is then to be copied."""
        return self._synced_offset is not None

    def _sync_step(self) -> Callable[[], object]:
        """Copy what is left, on the loop; the step syncs all of it."""
        self._copy_rest()
        log = self.log
        self._synced_offset = log.written_end_offset
        self._synced_epochs = log.epochs.to_text().encode()
        files = [copy.file for copy in self._copies.values()]
        return partial(self._sync, files, sorted(self._known_index_files), self._synced_epochs)

    def _sync(self, files: list[File], names: list[str], epochs: bytes) -> None:
        disk = self.target.disk
        for file in files:
            file.sync()
        for name in names:
            # Another step may have removed it together with its segment.
            sync_if_there(disk, f"{self.path}/{name}")
        disk.replace(f"{self.path}/{EPOCHS_FILE}", epochs)
        disk.sync_directory(self.path)
        # After a loss of power the copy may be all there is: its name must outlive that.
        disk.sync_directory(self.target.path)

    def _copy_rest(self) -> None:
        log = self.log
        log.before_change()
        log.write_pending()
        self._forget_replaced()
        for segment in log.segments:
            copy = self._copies.get(segment.base_offset)
            if copy is None:
                copy = self._copies[segment.base_offset] = _Copy(segment, self._open(segment.base_offset))
            while copy.size < segment.written_size:
                _copy(copy, min(STEP_BYTES, segment.written_size - copy.size))
        # The index files of segments that rolled since the last step.
        self._copy_index_files(log.directory, self._missing_index_files())

    def take_place(self) -> None:
        """Copy what is left and switch the log to the copy, when no step is left. After a `StorageFailure` the log is
        still the source's.

        The old folder still has its name, which a start does not use, because the metadata names the new directory. It
        may be removed after the target's path was synced."""
        self._copy_rest()
        log = self.log
        self.target.adopt(log, self._name)
        self._switch(f"{self.target.path}/{log.topic}-{log.partition}")
        # The next sync or checkpoint writes them.
        log.epochs.changed = log.epochs.to_text().encode() != self._synced_epochs

    def discard(self) -> None:
        """Cancel the move and remove the folder."""
        self._copies.clear()
        self.target.discard_future(self._name)

    def _switch(self, directory: str) -> None:
        log = self.log
        log.relocate(directory, self.target.services)
        for segment in log.segments:
            file = self._copies[segment.base_offset].file
            file.path = file_prefix(directory, segment.base_offset) + LOG_SUFFIX
            segment.file = file
            segment.directory = directory

    def _forget_replaced(self) -> None:
        segments = {segment.base_offset: segment for segment in self.log.segments}
        for base_offset, copy in list(self._copies.items()):
            segment = segments.get(base_offset)
            if segment is not copy.segment:
                del self._copies[base_offset]
                for suffix in (LOG_SUFFIX, *_INDEX_SUFFIXES):
                    path = file_prefix(self.path, base_offset) + suffix
                    self.target.disk.unlink(path)
                    self._known_index_files.discard(path.rpartition("/")[2])
                if segment is not None:
                    # It is copied beside the loop, and synced: the recovery point may be above it.
                    self._index_files = self._rest_bytes = self._synced_offset = None

    def _open(self, base_offset: int) -> File:
        return self.target.disk.open(file_prefix(self.path, base_offset) + LOG_SUFFIX, create=True)

    def _missing_index_files(self) -> list[str]:
        names = self.target.disk.listdir(self.log.directory)
        new = [name for name in names if name.endswith(_INDEX_SUFFIXES) and name not in self._known_index_files]
        self._known_index_files.update(new)
        return new

    def _copy_index_files(self, directory: str, names: list[str]) -> None:
        disk = self.target.disk
        for name in names:
            data = disk.read(f"{directory}/{name}")
            if data is not None:
                disk.write(f"{self.path}/{name}", data)


class MoveQueue:
    """The moves of a broker, in the order in which they were asked for: the first is under way, the others wait for it.

    `rest_until`, in the clock's seconds, is when the next step may begin."""

    __slots__ = ("_moves", "rest_until")

    def __init__(self) -> None:
        self._moves: dict[tuple[str, int], FutureReplica] = {}
        self.rest_until = 0.0

    def __len__(self) -> int:
        return len(self._moves)

    def __contains__(self, move: FutureReplica) -> bool:
        return self.find(move.log.topic, move.log.partition) is move

    def add(self, move: FutureReplica) -> None:
        """A move that was asked for; it takes the place of an earlier one of the same partition."""
        self._moves[move.log.topic, move.log.partition] = move

    def find(self, topic: str, partition: int) -> FutureReplica | None:
        """The move of a partition; None when its replica stays where it is."""
        return self._moves.get((topic, partition))

    def remove(self, topic: str, partition: int) -> FutureReplica | None:
        """The move is over or given up; None when there is none."""
        return self._moves.pop((topic, partition), None)

    def first(self) -> FutureReplica | None:
        """The move that is under way."""
        return next(iter(self._moves.values()), None)

    def into(self, directory: LogDirectory) -> list[FutureReplica]:
        """The moves to a directory."""
        return [move for move in self._moves.values() if move.target is directory]

    def out_of(self, directory: LogDirectory) -> list[FutureReplica]:
        """The moves from a directory."""
        return [move for move in self._moves.values() if move.source is directory]

    def copied(self, size_bytes: int, bytes_per_second: int, now: float) -> None:
        """A step has copied so much; with `replica.alter.log.dirs.io.max.bytes.per.second` the next one must wait.

        A rate of 0 stops all moves until the setting changes, which is looked at every `NO_RATE_SECONDS`."""
        pause = size_bytes / bytes_per_second if bytes_per_second > 0 else NO_RATE_SECONDS
        self.rest_until = now + (pause if pause > SHORTEST_PAUSE_SECONDS else 0)


def _copy(copy: _Copy, size_bytes: int) -> int:
    """Copy the next bytes of a segment; returns how many."""
    data = copy.source.pread(size_bytes, copy.size)
    copy.file.pwrite(data, copy.size)
    copy.size += len(data)
    return len(data)
