"""Checking the files of a partition for damage without changing them (`pykafkad fsck`).

Every batch is read and its checksum verified. Every index entry is compared with the batch that it points to. Each
problem is a `Finding`: `damage` means that records are lost or cannot be read, `stale` means that a file is wrong and
can be rebuilt from the log."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import StorageFailure
from pykafkad.log import checkpoints, recovery, txn_index
from pykafkad.log.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_prefix,
)
from pykafkad.log.leader_epochs import LeaderEpochs
from pykafkad.log.offset_index import OffsetIndex
from pykafkad.log.producers import ProducerStates
from pykafkad.log.syncing import EPOCHS_FILE
from pykafkad.log.time_index import TimeIndex
from pykafkad.wire.batch import LENGTH_OVERHEAD_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.disk import Disk, File
    from pykafkad.wire.batch import BatchHeader


class Finding(namedtuple("Finding", ("path", "kind", "what"))):
    """`kind` is `damage` or `stale`; `what` says in words what is wrong, with positions in bytes."""

    __slots__ = ()

    path: str
    kind: str
    what: str


DAMAGE = "damage"
STALE = "stale"


def segment_bases(names: list[str]) -> list[int]:
    """The base offsets of the segments in a partition's folder."""
    return sorted(
        int(name[:20])
        for name in names
        if len(name) == 20 + len(LOG_SUFFIX) and name[:20].isdigit() and name.endswith(LOG_SUFFIX)
    )


def check_partition(disk: Disk, directory: str, *, may_have_gaps: bool = True) -> Iterator[Finding]:
    """Yield the findings of a partition's small files, then those of its segments, oldest first.

    Compaction leaves gaps between offsets. In a log that was never compacted (`may_have_gaps` False) a gap is damage.
    """
    names = set(disk.listdir(directory))
    yield from _check_small_files(disk, directory, names)
    bases = segment_bases(sorted(names))
    for name in sorted(names):
        if (
            name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX))
            and name.partition(".")[0] + LOG_SUFFIX not in names
        ):
            yield Finding(
                f"{directory}/{name}", STALE, "has no log beside it: the segment is lost, or was being deleted"
            )
    end_offset = bases[0] if bases else 0
    for base in bases:
        prefix = file_prefix(directory, base)
        if base < end_offset:
            yield Finding(
                prefix + LOG_SUFFIX,
                DAMAGE,
                f"begins with offset {base}, and the segment before it ends with {end_offset - 1}",
            )
        elif base > end_offset and not may_have_gaps:
            yield Finding(
                prefix + LOG_SUFFIX,
                DAMAGE,
                f"begins with offset {base}: the offsets from {end_offset} to {base - 1} are missing before it",
            )
        batches = _Batches(disk, prefix, base, may_have_gaps=may_have_gaps)
        yield from batches.check()
        # Unreadable bytes at the segment's end are reported already, so the gap that they cause is not.
        end_offset = max(end_offset, batches.end_offset)
        if batches.is_cut:
            may_have_gaps = True
        yield from _check_indexes(disk, prefix, base, batches)


def _check_small_files(disk: Disk, directory: str, names: set[str]) -> Iterator[Finding]:
    path = f"{directory}/{checkpoints.PARTITION_METADATA_FILE}"
    if checkpoints.PARTITION_METADATA_FILE in names and checkpoints.decode_partition_metadata(disk.read(path)) is None:
        yield Finding(path, STALE, "holds no topic id")
    path = f"{directory}/{EPOCHS_FILE}"
    if EPOCHS_FILE in names and LeaderEpochs.from_text((disk.read(path) or b"").decode("utf-8", "replace")) is None:
        yield Finding(path, STALE, "is no list of leader epochs")
    for name in sorted(names):
        if (
            name.endswith(SNAPSHOT_SUFFIX)
            and ProducerStates.from_snapshot(disk.read(f"{directory}/{name}") or b"") is None
        ):
            yield Finding(f"{directory}/{name}", STALE, "is no producer snapshot: its size or its checksum is wrong")


class _Batches:
    """The batches of one `.log` file. `check` reads them all and fills in the attributes.

    `base_offsets` maps the position of each readable batch to its base offset; `unread` lists the (begin, end) of the
    byte ranges that hold no readable batch."""

    def __init__(self, disk: Disk, prefix: str, base_offset: int, *, may_have_gaps: bool) -> None:
        self._file = disk.open(prefix + LOG_SUFFIX)
        self._index = disk.read(prefix + INDEX_SUFFIX)
        self._path = prefix + LOG_SUFFIX
        self._may_have_gaps = may_have_gaps
        self.size = self._file.size()
        self.end_offset = base_offset
        self.base_offsets: dict[int, int] = {}
        self.unread: list[tuple[int, int]] = []

    @property
    def is_cut(self) -> bool:
        """Whether the end of the file is unreadable."""
        return bool(self.unread) and self.unread[-1][1] == self.size

    def check(self) -> Iterator[Finding]:
        position = 0
        try:
            while position < self.size:
                for at, header in self._whole_batches(position):
                    yield from self._check_offset(at, header.base_offset)
                    self.base_offsets[at] = header.base_offset
                    self.end_offset = header.end_offset
                    position = at + header.size_bytes
                if position < self.size:
                    begin, position = position, self._next_whole(position)
                    self.unread.append((begin, position))
                    yield from self._report_unread(begin, position)
        except StorageFailure as failure:
            yield Finding(self._path, DAMAGE, str(failure))
            self.unread.append((position, self.size))

    def _whole_batches(self, start: int) -> Iterator[tuple[int, BatchHeader]]:
        for at, header in recovery.whole_batches(_FileTail(self._file, start), self.size - start):
            yield start + at, header

    def _check_offset(self, at: int, base_offset: int) -> Iterator[Finding]:
        if base_offset < self.end_offset:
            yield Finding(
                self._path,
                DAMAGE,
                f"the batch at position {at} begins with offset {base_offset}, below {self.end_offset}",
            )
        elif (
            base_offset > self.end_offset and not self._may_have_gaps and not (self.unread and self.unread[-1][1] == at)
        ):
            missing = f"the offsets from {self.end_offset} to {base_offset - 1} are missing"
            yield Finding(self._path, DAMAGE, f"{missing} before the batch at position {at}")

    def _next_whole(self, position: int) -> int:
        """The position of the next readable batch after an unreadable one; the file's size when there is none.

        Candidates are the end that the unreadable batch's length gives, and the positions in the offset index."""
        index = OffsetIndex.from_bytes(self._index or b"", self.size)
        length = int.from_bytes(self._file.pread(LENGTH_OVERHEAD_BYTES, position)[8:], "big", signed=True)
        candidates: list[int] = [
            position + LENGTH_OVERHEAD_BYTES + max(length, 0),
            *(index.positions if index is not None else ()),
        ]
        for candidate in candidates:
            if position < candidate < self.size:
                _, header = next(self._whole_batches(candidate), (0, None))
                if header is not None and header.base_offset >= self.end_offset:
                    return candidate
        return self.size

    def _report_unread(self, begin: int, end: int) -> Iterator[Finding]:
        what = f"{end - begin} bytes from position {begin} on are no whole batch"
        if end == self.size:
            what += f", after offset {self.end_offset - 1}"
        else:
            _, following = next(self._whole_batches(end))
            what += f": the offsets from {self.end_offset} to {following.base_offset - 1}"
        yield Finding(self._path, DAMAGE, what)


class _FileTail:
    """The part of a file that begins at `start`; positions count from there."""

    __slots__ = ("_file", "_start", "path")

    def __init__(self, file: File, start: int) -> None:
        self._file = file
        self._start = start
        self.path = file.path

    def pread(self, size_bytes: int, position: int) -> bytes:
        return self._file.pread(size_bytes, self._start + position)


def _check_indexes(disk: Disk, prefix: str, base: int, batches: _Batches) -> Iterator[Finding]:
    data = disk.read(prefix + INDEX_SUFFIX)
    if data is not None:
        index = OffsetIndex.from_bytes(data, batches.size)
        if index is None:
            yield Finding(prefix + INDEX_SUFFIX, STALE, "cannot be the offset index of its log")
        else:
            for relative_offset, position in zip(index.offsets, index.positions, strict=True):
                if any(begin <= position < end for begin, end in batches.unread):
                    continue
                if batches.base_offsets.get(position, base + relative_offset + 1) > base + relative_offset:
                    entry = f"its entry for offset {base + relative_offset} points to position {position}"
                    yield Finding(prefix + INDEX_SUFFIX, STALE, f"{entry}, which is not where that lies")
                    break
    data = disk.read(prefix + TIME_INDEX_SUFFIX)
    if data is not None:
        times = TimeIndex.from_bytes(data)
        if times is None or (not batches.is_cut and times.last()[1] + base >= max(batches.end_offset, base + 1)):
            yield Finding(prefix + TIME_INDEX_SUFFIX, STALE, "cannot be the time index of its log")
    data = disk.read(prefix + TXN_INDEX_SUFFIX)
    if data is not None and txn_index.from_bytes(data, base) is None:
        yield Finding(prefix + TXN_INDEX_SUFFIX, STALE, "cannot be the transaction index of its log")
