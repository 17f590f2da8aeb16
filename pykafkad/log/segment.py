"""One segment: a `.log` file of batches, its indexes, and remembered positions of readers.

On each append, `PartitionLog` writes the active segment's fields itself (`size`, `bytes_since_index`,
`max_timestamp_ms`): a method call per batch would cost as much as the rest of the append. What happens less often than
once per batch is a method here."""

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
from pykafkad.log.file_slice import Cuts, FileSlice
from pykafkad.log.offset_index import ENTRY_SIZE_BYTES, OffsetIndex
from pykafkad.log.time_index import ENTRY_SIZE_BYTES as TIME_ENTRY_SIZE_BYTES, TimeIndex
from pykafkad.wire.batch import HEADER_SIZE_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, BatchHeader, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Offsets in the indexes are int32, relative to the segment's base.
MAX_RELATIVE_OFFSET = 0x7FFFFFFF
# Remembered reader positions per segment. The oldest is forgotten first; a forgotten position costs a short scan.
MAX_REMEMBERED_POSITIONS = 128
# When the largest timestamp is taken from an index file, its batch is searched for if it lies at most this many offsets
# before the last index entry.
CHECKED_OFFSETS = 1000
# How much a scan for a position reads at once: usually one index interval and the next header.
SCAN_SIZE_BYTES = 8192
# A read of up to this size reads the bytes to find the end of the last whole batch, and passes them on with the slice.
PREFETCH_SIZE_BYTES = 8192
# One of this many entries is checked when an index file is read. An entry is compared with the log when it is used.
INDEX_CHECK_STEP = 256
NEVER_MS = 1 << 62
# Three fields of a batch header: base offset, length, last offset delta.
_SPAN = Struct(">qi11xi")


_MISSING = object()
LOADED_ON_DEMAND = ("file", "offset_index", "time_index", "max_timestamp_ms", "max_timestamp_offset", "aborted")


class Segment:
    """See the module. `size` counts the appended bytes; the first `written_size` of them are in the file.

    `size_limit`, `roll_after_ms` and `last_offset_limit` are the limits that `roll_rules.prepare` sets: a batch above
    one of them may need a roll. The disk has room for the file up to `room_end`. `aborted` is the transaction index:
    the transactions whose abort marker is in this segment. `indexes_trusted` says that the indexes were built from the
    log. Indexes that were read from files may belong to another log or be out of date, so each entry is compared with
    the batches when it is used."""

    __slots__ = (
        "aborted",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "cuts",
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
        self.cuts: Cuts | None = None
        """Known from the first slice on."""
        self.indexes_written = False
        self.indexes_trusted = True
        # Nearly every segment has none, so all share this one.
        self.aborted = txn_index.NO_ABORTED

    def known(self, name: str, default: object = None) -> Any:
        """The value of one of `LOADED_ON_DEMAND` if it is in memory, else `default`. Loads nothing."""
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return default

    def forget(self, *names: str) -> None:
        """Drop some of `LOADED_ON_DEMAND` from memory. They are loaded from the files when they are used."""
        for name in names:
            if self.known(name, _MISSING) is not _MISSING:
                delattr(self, name)
        self.__class__ = DormantSegment

    def rouse(self) -> None:
        """Become a plain `Segment`, with fast attributes, if all of `LOADED_ON_DEMAND` is in memory."""
        if all(self.known(name, _MISSING) is not _MISSING for name in LOADED_ON_DEMAND):
            self.__class__ = Segment

    @property
    def open_file(self) -> File | None:
        """The file if it is open, else None."""
        file: File | None = self.known("file")
        return file

    @property
    def prefix(self) -> str:
        return file_prefix(self.directory, self.base_offset)

    def load_indexes(self) -> None:
        """Read both index files. If one is missing or does not fit the log, rebuild both from the log."""
        if not self.read_indexes():
            self.rebuild_indexes()

    def read_indexes(self) -> bool:
        """Read both index files; False when one is missing or does not fit the log."""
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
        # The last time index entry of a sealed segment holds its largest timestamp. Retention relies on it, so it is
        # checked: the entry's own batch must have this timestamp, and the last batch none above it.
        last = TimeIndex.from_bytes(self.disk.read_end(self.prefix + TIME_INDEX_SUFFIX, TIME_ENTRY_SIZE_BYTES))
        tail = OffsetIndex.from_bytes(
            self.disk.read_end(self.prefix + INDEX_SUFFIX, ENTRY_SIZE_BYTES), self.written_size
        )
        if last is None or tail is None or not self._take_latest(last.last(), tail.lookup(MAX_RELATIVE_OFFSET)):
            self.distrust_indexes()

    def take_max_timestamp(self) -> bool:
        """Take the largest timestamp from the last entry of the time index; False if the log contradicts it."""
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
        """Whether an index entry points at a batch with offsets up to the entry's.

        Kafka before 4.0 put the last offset of several batches into an entry, so the batch may end before it."""
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
        """Whether a time index entry fits the log: its timestamp is the largest of the batch with its offset."""
        header = self.batch_with(self.base_offset + relative_offset)
        return header is not None and header.max_timestamp_ms == timestamp_ms

    def trusted(self, entry: tuple[int, int] | None) -> bool:
        """Whether an entry of the offset index is right. If not, this rebuilds the indexes; look the entry up again."""
        if self.indexes_trusted or entry is None or not entry[1] or self._points_at_batch(*entry):
            return True
        self.distrust_indexes()
        return False

    def distrust_indexes(self) -> None:
        """The index files do not fit the log: rebuild them from it."""
        latest = self.known("max_timestamp_ms", -1), self.known("max_timestamp_offset", -1)
        self.rebuild_indexes()
        if latest[0] > self.max_timestamp_ms:
            # The largest timestamp is that of a gathered batch, which is not in the file yet.
            self.max_timestamp_ms, self.max_timestamp_offset = latest
        self.positions.clear()
        try:
            self.write_indexes()
        except StorageFailure:
            # The rebuilt indexes are in memory. The next start rebuilds the files again.
            pass

    @property
    def has_aborted(self) -> bool:
        """Whether `aborted` has entries. If it is not loaded, the file exists, and this is True."""
        return bool(self.known("aborted", True))

    def batch_with(self, offset: int) -> BatchHeader | None:
        """The batch that holds an offset; None if compaction removed it."""
        position, size = self.locate(offset)
        header = parse_header(self.file.pread(HEADER_SIZE_BYTES, position)) if size >= HEADER_SIZE_BYTES else None
        return header if header is not None and header.base_offset <= offset else None

    @property
    def largest_timestamp_ms(self) -> int:
        """The largest timestamp, or the file's modification time if no record has one; retention goes by it."""
        if self.max_timestamp_ms >= 0:
            return self.max_timestamp_ms
        return self.modified_ms

    @property
    def modified_ms(self) -> int:
        """The file's modification time."""
        return self.disk.modified_ms(self.prefix + LOG_SUFFIX)

    def drop_file(self) -> None:
        """Close the file until the segment is read again. A slice that is being sent keeps the descriptor open."""
        self.forget("file")

    def drop_indexes(self) -> None:
        """Forget the indexes of a sealed segment, whose files hold them."""
        self.forget("offset_index", "time_index")
        # An empty transaction index stays in memory: it takes no space and saves a look for its missing file.
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
        """Yield `(position, BatchHeader)` of the batches from `position` on, where a batch must begin."""
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
        """Add an entry to each index, for the batch at `position`. If an index is full, the next batch rolls."""
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
        """Update indexes and timestamps for a batch that is in the file already, as an append does for a new one."""
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
        """Bring the index files up to date with the log."""
        if self.indexes_written and not sync and self.max_timestamp_ms <= self.time_index.last()[0]:
            return
        for suffix, data in self.index_files():
            if suffix == TXN_INDEX_SUFFIX and not sync and self.disk.read(self.prefix + suffix) == data:
                # The file may be synced, and nothing can rebuild it before the recovery point.
                continue
            self.disk.write(self.prefix + suffix, data, sync=sync)
        self.indexes_written = True

    def index_files(self) -> list[tuple[str, bytes]]:
        """(suffix, content) of the index files; the transaction index only if it has entries."""
        if self.max_timestamp_ms >= 0:
            self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset)
        files = [(INDEX_SUFFIX, self.offset_index.to_bytes()), (TIME_INDEX_SUFFIX, self.time_index.to_bytes())]
        if self.aborted:
            files.append((TXN_INDEX_SUFFIX, txn_index.to_bytes(self.aborted)))
        return files

    def add_aborted(self, transaction: txn_index.AbortedTransaction) -> None:
        """Add an entry to the transaction index."""
        if not self.aborted:
            self.aborted = txn_index.AbortedTransactions()
        self.aborted.add(transaction, self)
        self.indexes_written = False

    def cut(self, size_bytes: int, end_offset: int) -> None:
        """Forget everything from `size_bytes` and `end_offset` on. The caller truncates the file."""
        if self.cuts is not None:
            self.cuts.add(size_bytes)
        self.size = self.written_size = size_bytes
        self.offset_index.truncate(size_bytes)
        self.time_index.truncate(end_offset - self.base_offset)
        self.aborted = txn_index.AbortedTransactions(each for each in self.aborted if each.last_offset < end_offset)
        self.positions.clear()
        self.indexes_written = False

    # -- reading -------------------------------------------------------------------------------------------------------

    def remember(self, offset: int, position: int) -> None:
        """Remember the position of the batch that starts with `offset`, for the next reader of that offset."""
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

        This reads batch headers from the nearest index entry on, not the whole file.
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
            return self.slice(start, size) if size > 0 else None
        if max_bytes > PREFETCH_SIZE_BYTES:
            entry = self.offset_index.last_within(start, start + max_bytes)
            if not self.trusted(entry):
                entry = self.offset_index.last_within(start, start + max_bytes)
            if entry is not None:
                cut = entry[1]
                # The same reader asks for the batch at the cut next.
                self.remember(int.from_bytes(self.file.pread(8, cut), "big"), cut)
                return self.slice(start, cut - start)
        return self._read_within(start, max_bytes, end_position, minimum_one_batch)

    def slice(self, position: int, size_bytes: int, data: bytes | None = None) -> FileSlice:
        """A part of the file, which knows when the file is cut. `data` are its bytes, if they are known."""
        cuts = self.cuts
        if cuts is None:
            cuts = self.cuts = Cuts()
        return FileSlice(self.file, position, size_bytes, data, cuts)

    def _read_within(self, start: int, max_bytes: int, end_position: int, minimum_one_batch: bool) -> FileSlice | None:
        # No index entry lies in this range, so the end of the last whole batch is found by reading the headers.
        data = self.file.pread(min(max(max_bytes, HEADER_SIZE_BYTES) + HEADER_SIZE_BYTES, end_position - start), start)
        unpack = _SPAN.unpack_from
        readable = len(data) - HEADER_SIZE_BYTES
        position = 0
        while position <= readable:
            base_offset, length, last_delta = unpack(data, position)
            end = position + length + LENGTH_OVERHEAD_BYTES
            if end > max_bytes:
                if position:
                    # The same reader asks for the batch that does not fit next.
                    self.remember(base_offset, start + position)
                elif minimum_one_batch:
                    self.remember(base_offset + last_delta + 1, start + end)
                    return self.slice(start, end)
                break
            if end <= position:
                raise StorageFailure(
                    "read", self.file.path, f"batch at position {start + position} has an impossible length"
                )
            position = end
        if not position:
            return None
        return self.slice(start, position, data[:position] if position <= PREFETCH_SIZE_BYTES else None)


class DormantSegment(Segment):
    """A segment with some of `LOADED_ON_DEMAND` not in memory: each is loaded when it is read.

    Once all are in memory the object becomes a `Segment`. `partition_log.UnopenedLog` says why this is a class of its
    own."""

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
