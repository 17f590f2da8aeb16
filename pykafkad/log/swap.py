"""Replacing old segments by a cleaned one, so that a crash at any moment leaves either the old ones or the new one.

The suffixes of the files are Kafka's. The new segment is written as `.cleaned`, which a start removes. When it is whole
and synced it is renamed to `.swap`; from then on it is valid, and a start finishes the replacement. The old files are
renamed to `.deleted`, and then the new ones get their final names."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log.file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_prefix,
)
from pykafkad.log.segment import Segment
from pykafkad.wire.batch import HEADER_SIZE_BYTES, LENGTH_OVERHEAD_BYTES, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.disk import Disk
    from pykafkad.log.partition_log import PartitionLog
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def begin(log: PartitionLog, base_offset: int, now_ms: int) -> Segment:
    """Begin a new segment, whose files end in `.cleaned`."""
    disk, directory = log.segments[0].disk, log.directory
    path = file_prefix(directory, base_offset) + LOG_SUFFIX + CLEANED_SUFFIX
    disk.unlink(path)
    return Segment(disk, directory, base_offset, disk.open(path, create=True), now_ms)


def abandon(target: Segment) -> None:
    """Remove the files of an unfinished segment. The next start removes those that cannot be removed now."""
    for suffix in _SUFFIXES:
        try:
            target.disk.unlink(target.prefix + suffix + CLEANED_SUFFIX)
        except StorageFailure:
            pass


def finish(target: Segment, modified_ms: int) -> None:
    """Sync the segment and its indexes; `modified_ms` is the time of the newest segment that it replaces."""
    disk, prefix = target.disk, target.prefix
    for suffix, data in target.index_files():
        disk.write(prefix + suffix + CLEANED_SUFFIX, data, sync=True)
    target.file.sync()
    disk.set_modified_ms(target.file.path, modified_ms)


def replace(log: PartitionLog, old: list[Segment], target: Segment, now_ms: int) -> None:
    """Replace the neighbouring segments `old` by `target`. Raises `StorageFailure`; the log is then offline."""
    disk, prefix = target.disk, target.prefix
    log.before_change()
    suffixes = [suffix for suffix in _SUFFIXES if disk.exists(prefix + suffix + CLEANED_SUFFIX)]
    try:
        for suffix in suffixes:
            disk.rename(prefix + suffix + CLEANED_SUFFIX, prefix + suffix + SWAP_SUFFIX)
        # From here on the old segments may lose files, and only the new segment is certain to be whole.
        at = log.segments.index(old[0])
        log.segments[at : at + len(old)] = [target]
        for segment in old:
            log.forget_sealed(segment)
            _rename_deleted(log, segment, target, now_ms)
        for suffix in suffixes:
            disk.rename(prefix + suffix + SWAP_SUFFIX, prefix + suffix)
    except StorageFailure as failure:
        raise log.fail(failure) from None
    target.drop_file()
    target.drop_indexes()
    log.look_for_aborted()


def _rename_deleted(log: PartitionLog, segment: Segment, target: Segment, now_ms: int) -> None:
    # The producer snapshot at the base of the new segment stays valid.
    for suffix in _SUFFIXES if segment.base_offset == target.base_offset else (*_SUFFIXES, SNAPSHOT_SUFFIX):
        path = segment.prefix + suffix
        if segment.disk.exists(path):
            segment.disk.rename(path, path + DELETED_SUFFIX)
            log.delete_later(path + DELETED_SUFFIX, now_ms)


def recover(disk: Disk, directory: str) -> None:
    """At a start, finish or undo an interrupted replacement, and remove `.cleaned` and `.deleted` files.

    A second call changes nothing."""
    names = disk.listdir(directory)
    swapped = [name for name in names if name.endswith(SWAP_SUFFIX)]
    unfinished = [int(name[:20]) for name in names if name.endswith(CLEANED_SUFFIX) and name[:20].isdigit()]
    if unfinished:
        # While a part of the new segment is still `.cleaned`, all old segments are there, so the new one is dropped.
        for name in [name for name in swapped if name[:20].isdigit() and int(name[:20]) >= min(unfinished)]:
            disk.unlink(f"{directory}/{name}")
            swapped.remove(name)
    for name in names:
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)):
            disk.unlink(f"{directory}/{name}")
    present = {int(name[:20]) for name in names if name[20:] == LOG_SUFFIX and name[:20].isdigit()}
    for name in swapped:
        if name[20:] == LOG_SUFFIX + SWAP_SUFFIX and name[:20].isdigit():
            base_offset = int(name[:20])
            end_offset = _end_offset(disk, f"{directory}/{name}", base_offset)
            for base in sorted(base for base in present if base_offset <= base < max(end_offset, base_offset + 1)):
                # The `.log` file is removed last, because a second try finds the other files by it.
                for suffix in reversed(_SUFFIXES):
                    disk.unlink(file_prefix(directory, base) + suffix)
    for name in sorted(swapped, key=lambda name: not name.endswith(LOG_SUFFIX + SWAP_SUFFIX), reverse=True):
        # The `.log` file is renamed last: until then, a second try looks for the old segments again.
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")


def _end_offset(disk: Disk, path: str, base_offset: int) -> int:
    file = disk.open(path)
    position, size, end_offset = 0, file.size(), base_offset
    while position + HEADER_SIZE_BYTES <= size:
        header = parse_header(file.pread(HEADER_SIZE_BYTES, position))
        if header.length < HEADER_SIZE_BYTES - LENGTH_OVERHEAD_BYTES:
            raise StorageFailure(
                "recover", path, f"batch at position {position} has the impossible length {header.length}"
            )
        end_offset = header.end_offset
        position += header.size_bytes
    return end_offset
