"""One segment: a `.log` file of batches, its indexes, and where readers have been.

`PartitionLog` writes the active segment's hot fields itself (`size`, `bytes_since_index`, `max_timestamp_ms`): a method
call per batch would cost as much as the rest of the append. Everything that happens less often than per batch is a
method here."""

from __future__ import annotations

from struct import Struct

from pykafkad.disk import Disk, File
from pykafkad.errors import StorageFailure
from pykafkad.log import txn_index
from pykafkad.log.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_prefix,
)
from pykafkad.log.file_slice import FileSlice
from pykafkad.log.offset_index import ENTRY_SIZE_BYTES, OffsetIndex
from pykafkad.log.time_index import ENTRY_SIZE_BYTES as TIME_ENTRY_SIZE_BYTES, TimeIndex
from pykafkad.wire.batch import HEADER_SIZE_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, BatchHeader, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# Offsets in the indexes are int32, relative to the segment's base.
MAX_RELATIVE_OFFSET = 0x7FFFFFFF
# Remembered reader positions per segment; the oldest is forgotten first. A forgotten one costs a short scan.
MAX_REMEMBERED_POSITIONS = 128
# So many offsets before the last index entry the largest timestamp is looked for again, when it is taken from a file.
CHECKED_OFFSETS = 1000
# How much a scan for a position reads at once: one index interval and the header behind it, usually.
SCAN_SIZE_BYTES = 8192
# Up to this size a read looks at the bytes themselves to find where the last whole batch ends, and hands them on.
PREFETCH_SIZE_BYTES = 8192
# How many entries of an index file one is looked at when it is read: the rest is held against the log where it is used.
INDEX_CHECK_STEP = 256
NEVER_MS = 1 << 62
# Of a batch header: base offset, length, last offset delta.
_SPAN = Struct(">qi11xi")


_MISSING = object()
LOADED_ON_DEMAND = ("file", "offset_index", "time_index", "max_timestamp_ms", "max_timestamp_offset", "aborted")


class Segment:
    """See the module. `size` counts bytes appended, of which `written_size` are in the file already.

    `size_limit`, `roll_after_ms` and `last_offset_limit` are the roll rules made ready for comparison: a batch that
    would pass any of them is looked at by `PartitionLog._roll_if_due`. Up to `room_end` the disk has room for the file.
    `aborted` is the transaction index: the transactions whose abort marker lies here. `indexes_trusted` says that the
    indexes were made from the log itself; what was read from files is held against the batches wherever it is used, for
    the files may be of another log, or of another time of this one."""

    __slots__ = (
        "aborted",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "disk",
        "file",
        "first_timestamp_ms",
        "indexes_trusted",
        "indexes_written",
        "jitter_ms",
        "last_offset_limit",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "offset_index",
        "positions",
        "roll_after_ms",
        "room_end",
        "size",
        "size_limit",
        "time_index",
        "written_size",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, file: File | None, created_ms: int) -> None:
        self.disk = disk
        self.directory = directory
        self.base_offset = base_offset
        if file is not None:
            self.file: File = file
        self.size = self.written_size = 0
        self.size_limit = 0
        self.roll_after_ms = -NEVER_MS
        self.last_offset_limit = base_offset + MAX_RELATIVE_OFFSET
        self.bytes_since_index = 0
        self.offset_index = OffsetIndex()
        self.time_index = TimeIndex()
        self.max_timestamp_ms = -1
        self.max_timestamp_offset = -1
        self.first_timestamp_ms: int | None = None
        self.created_ms = created_ms
        self.jitter_ms = 0
        self.room_end = 0
        self.positions: dict[int, int] = {}
        self.indexes_written = False
        self.indexes_trusted = True
        # Shared while it is empty, which it is in nearly every segment.
        self.aborted: Sequence[txn_index.AbortedTransaction] = ()

    def known(self, name: str, default: object = None) -> Any:
        """What is in memory of one of `LOADED_ON_DEMAND`, without loading it."""
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return default

    def forget(self, *names: str) -> None:
        """Let go of some of `LOADED_ON_DEMAND`, which the files hold."""
        for name in names:
            if self.known(name, _MISSING) is not _MISSING:
                delattr(self, name)
        self.__class__ = DormantSegment

    def rouse(self) -> None:
        """With all in memory, be of the class whose attributes an append reads without a detour."""
        if all(self.known(name, _MISSING) is not _MISSING for name in LOADED_ON_DEMAND):
            self.__class__ = Segment

    @property
    def open_file(self) -> File | None:
        """The file if it is open."""
        file: File | None = self.known("file")
        return file

    @property
    def prefix(self) -> str:
        return file_prefix(self.directory, self.base_offset)

    def load_indexes(self) -> None:
        """Read both index files; one that is missing or cannot be this log's is rebuilt from the log."""
        if not self.read_indexes():
            self.rebuild_indexes()

    def read_indexes(self) -> bool:
        """Take both indexes from their files; False when one is missing or cannot be this log's."""
        offsets = self.disk.read(self.prefix + INDEX_SUFFIX)
        times = self.disk.read(self.prefix + TIME_INDEX_SUFFIX)
        if offsets is None or times is None:
            return False
        offset_index = OffsetIndex.from_bytes(offsets, self.written_size, step=INDEX_CHECK_STEP)
        time_index = TimeIndex.from_bytes(times, step=INDEX_CHECK_STEP)
        if offset_index is None or time_index is None:
            return False
        self.offset_index, self.time_index = offset_index, time_index
        self.indexes_written = True
        self.indexes_trusted = False
        return True

    @property
    def loaded_entries(self) -> int:
        """How many entries of the offset index are in memory."""
        return len(self.known("offset_index", ()))

    def _load_max_timestamp(self) -> None:
        # The last time index entry of a sealed segment was added for this. Retention goes by it, so it has to be true:
        # the last batch may be no later, and the entry's own batch has to say the same.
        last = TimeIndex.from_bytes(self.disk.read_end(self.prefix + TIME_INDEX_SUFFIX, TIME_ENTRY_SIZE_BYTES))
        tail = OffsetIndex.from_bytes(
            self.disk.read_end(self.prefix + INDEX_SUFFIX, ENTRY_SIZE_BYTES), self.written_size
        )
        if last is None or tail is None or not self._take_latest(last.last(), tail.lookup(MAX_RELATIVE_OFFSET)):
            self.distrust_indexes()

    def take_max_timestamp(self) -> bool:
        """Take the largest timestamp from the last entry of the time index, if the log does not say otherwise."""
        return self._take_latest(self.time_index.last(), self.offset_index.lookup(MAX_RELATIVE_OFFSET))

    def _take_latest(self, last: tuple[int, int], tail: tuple[int, int]) -> bool:
        was_open = self.open_file is not None
        timestamp_ms, relative_offset = last
        offset = self.base_offset + relative_offset if timestamp_ms >= 0 else -1
        if tail[1] and not self._points_at_batch(*tail):
            return False
        confirmed = timestamp_ms < 0
        position = tail[1]
        if not confirmed and -CHECKED_OFFSETS < relative_offset - tail[0] < 0:
            position = min(position, self.locate(offset)[0])
        for _, header in self.headers(position):
            if header.max_timestamp_ms > timestamp_ms:
                return False
            confirmed = confirmed or (
                header.base_offset <= offset <= header.last_offset and header.max_timestamp_ms == timestamp_ms
            )
        if not confirmed and not self.confirms_time(timestamp_ms, relative_offset):
            return False
        self.max_timestamp_ms, self.max_timestamp_offset = timestamp_ms, offset
        if not was_open:
            self.drop_file()
        return True

    def _points_at_batch(self, relative_offset: int, position: int) -> bool:
        """Whether a batch lies at the position that ends with the offset; Kafka before 4.0 named the last of several
        batches."""
        data = self.file.pread(HEADER_SIZE_BYTES, position)
        if len(data) < HEADER_SIZE_BYTES:
            return False
        header = parse_header(data)
        return (
            header.magic == MAGIC
            and header.length >= HEADER_SIZE_BYTES - LENGTH_OVERHEAD_BYTES
            and self.base_offset <= header.base_offset <= header.last_offset <= self.base_offset + relative_offset
            and position + header.size_bytes <= self.written_size
        )

    def confirms_time(self, timestamp_ms: int, relative_offset: int) -> bool:
        """Whether the batch with the offset says that the timestamp is its largest, as an entry of the time index has
        it."""
        header = self.batch_with(self.base_offset + relative_offset)
        return header is not None and header.max_timestamp_ms == timestamp_ms

    def trusted(self, entry: tuple[int, int] | None) -> bool:
        """Whether an entry of the offset index may be gone by. If not, the indexes have been made anew from the log."""
        if self.indexes_trusted or entry is None or not entry[1] or self._points_at_batch(*entry):
            return True
        self.distrust_indexes()
        return False

    def distrust_indexes(self) -> None:
        """The index files tell of another log than this: make them anew from this one."""
        latest = self.known("max_timestamp_ms", -1), self.known("max_timestamp_offset", -1)
        self.rebuild_indexes()
        if latest[0] > self.max_timestamp_ms:
            # Of a batch that is gathered, and not in the file yet.
            self.max_timestamp_ms, self.max_timestamp_offset = latest
        self.positions.clear()
        try:
            self.write_indexes()
        except StorageFailure:
            # They are in memory; the next start finds out anew.
            pass

    @property
    def has_aborted(self) -> bool:
        """Whether `aborted` holds anything. Of a segment that was not asked yet, the file's presence tells."""
        return bool(self.known("aborted", True))

    def batch_with(self, offset: int) -> BatchHeader | None:
        """The batch that holds an offset; None where compaction took it out."""
        position, size = self.locate(offset)
        header = parse_header(self.file.pread(HEADER_SIZE_BYTES, position)) if size >= HEADER_SIZE_BYTES else None
        return header if header is not None and header.base_offset <= offset else None

    @property
    def largest_timestamp_ms(self) -> int:
        """For retention and lookups by time: the largest timestamp, of a segment without any the file's own time."""
        if self.max_timestamp_ms >= 0:
            return self.max_timestamp_ms
        return self.disk.modified_ms(self.prefix + LOG_SUFFIX)

    def drop_file(self) -> None:
        """Hold no descriptor for a sealed segment until it is read again; who still sends a slice of it keeps its own."""
        self.forget("file")

    def drop_indexes(self) -> None:
        """Forget the indexes of a sealed segment, whose files hold them."""
        self.forget("offset_index", "time_index")
        # That nothing was aborted costs nothing to keep, and spares the look for a file that is not there.
        if self.known("aborted"):
            self.forget("aborted")

    def rebuild_indexes(self, index_interval_bytes: int = 4096) -> None:
        """Make both indexes from the batch headers of the log."""
        self.offset_index, self.time_index = OffsetIndex(), TimeIndex()
        self.max_timestamp_ms = self.max_timestamp_offset = -1
        self.bytes_since_index = 0
        for position, header in self.headers():
            self.track(header, position, index_interval_bytes)
        self.indexes_written = False
        self.indexes_trusted = True

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield `(position, BatchHeader)` of the batches from `position` on, which must be a batch boundary."""
        window, start = b"", position
        while position + HEADER_SIZE_BYTES <= self.written_size:
            if position + HEADER_SIZE_BYTES > start + len(window):
                window, start = self.file.pread(SCAN_SIZE_BYTES, position), position
                if len(window) < HEADER_SIZE_BYTES:
                    return
            header = parse_header(window, position - start)
            if header.length < HEADER_SIZE_BYTES - LENGTH_OVERHEAD_BYTES:
                raise StorageFailure(
                    "read", self.file.path, f"batch at position {position} has the impossible length {header.length}"
                )
            if not 0 <= header.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
                # No checksum covers a batch's offset.
                raise StorageFailure(
                    "read",
                    self.file.path,
                    f"batch at position {position} has the impossible offset {header.base_offset}",
                )
            yield position, header
            position += header.size_bytes

    # -- writing -------------------------------------------------------------------------------------------------------

    def add_index_entries(self, last_offset: int, position: int, max_entries: int) -> None:
        """One entry in each index, for the batch at `position`; a full index makes the next batch roll the segment."""
        self.offset_index.append(last_offset - self.base_offset, position)
        self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset)
        self.bytes_since_index = 0
        self.indexes_written = False
        if self.indexes_full(max_entries):
            self.size_limit = 0

    def indexes_full(self, index_size_bytes: int) -> bool:
        """Kafka's rule: `segment.index.bytes` is reached; the time index keeps one slot for the entry of the roll."""
        return len(self.offset_index) >= index_size_bytes // 8 or len(self.time_index) >= index_size_bytes // 12 - 1

    def track(self, header: BatchHeader, position: int, index_interval_bytes: int) -> None:
        """Account for a batch that is in the file already: what `append` does for a new one, for recovery and loading."""
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = header.max_timestamp_ms
        last_offset = header.last_offset
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = header.max_timestamp_ms
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index > index_interval_bytes:
            self.offset_index.append(last_offset - self.base_offset, position)
            self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset)
            self.bytes_since_index = 0
            self.indexes_written = False
        self.bytes_since_index += header.size_bytes

    def write_indexes(self, *, sync: bool = False) -> None:
        """Bring both index files up to the written part of the log, trimmed to their real size as Kafka does on roll."""
        if self.indexes_written and not sync and self.max_timestamp_ms <= self.time_index.last()[0]:
            return
        for suffix, data in self.index_files():
            self.disk.write(self.prefix + suffix, data, sync=sync)
        self.indexes_written = True

    def index_files(self) -> list[tuple[str, bytes]]:
        """(suffix, content) of the index files of a segment that is whole: the transaction index only if it has
        entries."""
        if self.max_timestamp_ms >= 0:
            self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset)
        files = [(INDEX_SUFFIX, self.offset_index.to_bytes()), (TIME_INDEX_SUFFIX, self.time_index.to_bytes())]
        if self.aborted:
            files.append((TXN_INDEX_SUFFIX, txn_index.to_bytes(self.aborted)))
        return files

    def add_aborted(self, transaction: txn_index.AbortedTransaction) -> None:
        """One entry in the transaction index."""
        aborted = self.aborted
        if isinstance(aborted, list):
            aborted.append(transaction)
        else:
            self.aborted = [transaction]
        self.indexes_written = False

    def cut(self, size_bytes: int, end_offset: int) -> None:
        """Forget everything from `size_bytes` / `end_offset` on; the caller has seen to the file."""
        self.size = self.written_size = size_bytes
        self.offset_index.truncate(size_bytes)
        self.time_index.truncate(end_offset - self.base_offset)
        self.aborted = [entry for entry in self.aborted if entry.last_offset < end_offset]
        self.positions.clear()
        self.indexes_written = False

    # -- reading -------------------------------------------------------------------------------------------------------

    def remember(self, offset: int, position: int) -> None:
        """Keep where the batch that starts with `offset` lies, for the reader that asks for it next."""
        positions = self.positions
        positions[offset] = position
        if len(positions) > MAX_REMEMBERED_POSITIONS:
            del positions[next(iter(positions))]

    def start_of_search(self, offset: int) -> int:
        """Position of a batch at or before the one that holds the offset, by the offset index."""
        entry = self.offset_index.lookup(offset - self.base_offset)
        if not self.trusted(entry):
            entry = self.offset_index.lookup(offset - self.base_offset)
        return entry[1]

    def locate(self, offset: int) -> tuple[int, int]:
        """(position, size) of the first batch whose last offset is at or above `offset`; (written_size, 0) without one.

        Walks headers from the index entry before it, never through the whole file.
        """
        position = self.start_of_search(offset)
        end = self.written_size
        unpack = _SPAN.unpack_from
        window, start = b"", position
        while position + HEADER_SIZE_BYTES <= end:
            at = position - start
            if at + HEADER_SIZE_BYTES > len(window):
                window, start, at = self.file.pread(SCAN_SIZE_BYTES, position), position, 0
                if len(window) < HEADER_SIZE_BYTES:
                    break
            base_offset, length, last_delta = unpack(window, at)
            size = length + LENGTH_OVERHEAD_BYTES
            if base_offset + last_delta >= offset:
                return position, size
            if size < HEADER_SIZE_BYTES:
                raise StorageFailure(
                    "read", self.file.path, f"batch at position {position} has the impossible size {size}"
                )
            position += size
        return end, 0

    def read(self, start: int, max_bytes: int, end_position: int, minimum_one_batch: bool) -> FileSlice | None:
        """Whole batches from the position `start` on, up to `max_bytes` and `end_position`; None when none fits."""
        size = end_position - start
        if size <= max_bytes:
            return FileSlice(self.file, start, size) if size > 0 else None
        if max_bytes > PREFETCH_SIZE_BYTES:
            entry = self.offset_index.last_within(start, start + max_bytes)
            if not self.trusted(entry):
                entry = self.offset_index.last_within(start, start + max_bytes)
            if entry is not None:
                cut = entry[1]
                # The batch behind the cut is where this reader comes back.
                self.remember(int.from_bytes(self.file.pread(8, cut), "big"), cut)
                return FileSlice(self.file, start, cut - start)
        return self._read_within(start, max_bytes, end_position, minimum_one_batch)

    def _read_within(self, start: int, max_bytes: int, end_position: int, minimum_one_batch: bool) -> FileSlice | None:
        # No index entry tells where the last whole batch ends, so the headers do, in bytes that are sent anyway.
        data = self.file.pread(min(max(max_bytes, HEADER_SIZE_BYTES) + HEADER_SIZE_BYTES, end_position - start), start)
        unpack = _SPAN.unpack_from
        readable = len(data) - HEADER_SIZE_BYTES
        position = 0
        while position <= readable:
            base_offset, length, last_delta = unpack(data, position)
            end = position + length + LENGTH_OVERHEAD_BYTES
            if end > max_bytes:
                if position:
                    # The batch that no longer fits is where this reader comes back.
                    self.remember(base_offset, start + position)
                elif minimum_one_batch:
                    self.remember(base_offset + last_delta + 1, start + end)
                    return FileSlice(self.file, start, end)
                break
            if end <= position:
                raise StorageFailure(
                    "read", self.file.path, f"batch at position {start + position} has an impossible length"
                )
            position = end
        if not position:
            return None
        return FileSlice(self.file, start, position, data[:position] if position <= PREFETCH_SIZE_BYTES else None)


class DormantSegment(Segment):
    """A segment of which something was let go: it is loaded when it is asked for, and with all there it is a `Segment`.

    A class of its own for the same reason as `partition_log.UnopenedLog`.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name == "offset_index" or name == "time_index":
            self.load_indexes()
        elif name == "max_timestamp_ms" or name == "max_timestamp_offset":
            self._load_max_timestamp()
        elif name == "aborted":
            self.aborted = txn_index.load(self)
        elif name == "file":
            self.file = self.disk.open(self.prefix + LOG_SUFFIX)
        else:
            raise AttributeError(name)
        self.rouse()
        return object.__getattribute__(self, name)
