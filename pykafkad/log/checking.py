"""Reading a partition's files for what is wrong with them, changing nothing.

Every batch is read and its checksum computed; every index entry is held against the batch that it points to. What is found is
told as `Finding`: `damage` is records that cannot be given to a reader, `stale` a file that a start makes anew out of the log.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import StorageFailure
from pykafkad.log import checkpoints, recovery, txn_index
from pykafkad.log.leader_epochs import LeaderEpochs
from pykafkad.log.offset_index import OffsetIndex
from pykafkad.log.producers import ProducerStates
from pykafkad.log.segment import INDEX_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, file_prefix
from pykafkad.log.time_index import TimeIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Finding = namedtuple("Finding", ("path", "kind", "what"))
Finding.__doc__ = "`kind` is `damage` or `stale`; `what` says in words what is wrong, with positions in bytes."

DAMAGE = "damage"
STALE = "stale"


def segment_bases(names: list[str]) -> list[int]:
    """The base offsets of the segments in a partition's folder."""
    return sorted(int(name[:20]) for name in names if len(name) == 20 + len(LOG_SUFFIX) and name[:20].isdigit() and name.endswith(LOG_SUFFIX))


def check_partition(disk, directory: str) -> Iterator[Finding]:
    """Findings of a partition's small files and of each of its segments, oldest first."""
    names = set(disk.listdir(directory))
    yield from _check_small_files(disk, directory, names)
    end_offset = 0
    for base in segment_bases(sorted(names)):
        prefix = file_prefix(directory, base)
        if base < end_offset:
            yield Finding(prefix + LOG_SUFFIX, DAMAGE, f"begins with offset {base}, and the segment before it ends with {end_offset - 1}")
        batches = _Batches(disk, prefix + LOG_SUFFIX, base)
        yield from batches.check()
        end_offset = max(end_offset, batches.end_offset)
        yield from _check_indexes(disk, prefix, base, batches)


def _check_small_files(disk, directory: str, names: set[str]) -> Iterator[Finding]:
    path = f"{directory}/{checkpoints.PARTITION_METADATA_FILE}"
    if checkpoints.PARTITION_METADATA_FILE in names and checkpoints.decode_partition_metadata(disk.read(path)) is None:
        yield Finding(path, STALE, "holds no topic id")
    path = f"{directory}/{recovery.EPOCHS_FILE}"
    if recovery.EPOCHS_FILE in names and LeaderEpochs.from_text((disk.read(path) or b"").decode("utf-8", "replace")) is None:
        yield Finding(path, STALE, "is no list of leader epochs")
    for name in sorted(names):
        if name.endswith(SNAPSHOT_SUFFIX) and ProducerStates.from_snapshot(disk.read(f"{directory}/{name}") or b"") is None:
            yield Finding(f"{directory}/{name}", STALE, "is no producer snapshot: its size or its checksum is wrong")


class _Batches:
    """One `.log` file: its batches' positions and last offsets, once `check` has gone through them."""

    def __init__(self, disk, path: str, base_offset: int) -> None:
        self._file = disk.open(path)
        self._path = path
        self._base_offset = base_offset
        self.size = self._file.size()
        self.end_offset = base_offset
        self.last_offsets: dict[int, int] = {}
        self.base_offsets: dict[int, int] = {}

    def check(self) -> Iterator[Finding]:
        position = 0
        try:
            for at, header in recovery.whole_batches(self._file, self.size):
                if header.base_offset < self.end_offset:
                    yield Finding(self._path, DAMAGE, f"the batch at position {at} begins with offset {header.base_offset}, below {self.end_offset}")
                self.last_offsets[at] = header.last_offset
                self.base_offsets[at] = header.base_offset
                self.end_offset = header.end_offset
                position = at + header.size_bytes
        except StorageFailure as failure:
            yield Finding(self._path, DAMAGE, str(failure))
            return
        if position != self.size:
            yield Finding(self._path, DAMAGE, f"{self.size - position} bytes from position {position} on are no whole batch, after offset {self.end_offset - 1}")


def _check_indexes(disk, prefix: str, base: int, batches: _Batches) -> Iterator[Finding]:
    data = disk.read(prefix + INDEX_SUFFIX)
    if data is not None:
        index = OffsetIndex.from_bytes(data, batches.size)
        if index is None:
            yield Finding(prefix + INDEX_SUFFIX, STALE, "cannot be the offset index of its log")
        else:
            for relative_offset, position in zip(index.offsets, index.positions, strict=True):
                if batches.base_offsets.get(position, base + relative_offset + 1) > base + relative_offset:
                    yield Finding(prefix + INDEX_SUFFIX, STALE, f"its entry for offset {base + relative_offset} points to position {position}, which is not where that lies")
                    break
    data = disk.read(prefix + TIME_INDEX_SUFFIX)
    if data is not None:
        index = TimeIndex.from_bytes(data)
        if index is None or index.last()[1] + base >= max(batches.end_offset, base + 1):
            yield Finding(prefix + TIME_INDEX_SUFFIX, STALE, "cannot be the time index of its log")
    data = disk.read(prefix + TXN_INDEX_SUFFIX)
    if data is not None and txn_index.from_bytes(data, base) is None:
        yield Finding(prefix + TXN_INDEX_SUFFIX, STALE, "cannot be the transaction index of its log")
