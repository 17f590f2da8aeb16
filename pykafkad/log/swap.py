"""Putting a cleaned segment in the place of old ones, so that a crash at any moment leaves the old ones or the new one.

Files, as Kafka names them: the new segment is written as `.cleaned`, which a start removes; when it is whole and on the
device it becomes `.swap`, from which moment on it counts and a start finishes what follows; the old files become
`.deleted`; then the new ones get their real names."""

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
    """An empty segment whose files are `.cleaned`."""
    disk, directory = log.segments[0].disk, log.directory
    path = file_prefix(directory, base_offset) + LOG_SUFFIX + CLEANED_SUFFIX
    disk.unlink(path)
    return Segment(disk, directory, base_offset, disk.open(path, create=True), now_ms)


def abandon(target: Segment) -> None:
    """Remove what was written of a segment that is not to be; what cannot be removed goes at the next start."""
    for suffix in _SUFFIXES:
        try:
            target.disk.unlink(target.prefix + suffix + CLEANED_SUFFIX)
        except StorageFailure:
            pass


def finish(target: Segment, modified_ms: int) -> None:
    """Bring the segment and its indexes to the device, with the age of the newest segment that it replaces."""
    disk, prefix = target.disk, target.prefix
    for suffix, data in target.index_files():
        disk.write(prefix + suffix + CLEANED_SUFFIX, data, sync=True)
    target.file.sync()
    disk.set_modified_ms(target.file.path, modified_ms)


def replace(log: PartitionLog, old: list[Segment], target: Segment, now_ms: int) -> None:
    """Put `target` in the place of the neighbouring segments `old`. Raises `StorageFailure`; the log is then offline."""
    disk, prefix = target.disk, target.prefix
    log.before_change()
    suffixes = [suffix for suffix in _SUFFIXES if disk.exists(prefix + suffix + CLEANED_SUFFIX)]
    try:
        for suffix in suffixes:
            disk.rename(prefix + suffix + CLEANED_SUFFIX, prefix + suffix + SWAP_SUFFIX)
        # From here on only the new segment is whole under all circumstances, whatever the disk refuses.
        at = log.segments.index(old[0])
        log.segments[at : at + len(old)] = [target]
        for segment in old:
            log.forget_sealed(segment)
            _doom(log, segment, target, now_ms)
        for suffix in suffixes:
            disk.rename(prefix + suffix + SWAP_SUFFIX, prefix + suffix)
    except StorageFailure as failure:
        raise log.fail(failure) from None
    target.drop_file()
    target.drop_indexes()
    log.look_for_aborted()


def _doom(log: PartitionLog, segment: Segment, target: Segment, now_ms: int) -> None:
    # The snapshot at the base of the new segment stays true.
    for suffix in _SUFFIXES if segment.base_offset == target.base_offset else (*_SUFFIXES, SNAPSHOT_SUFFIX):
        path = segment.prefix + suffix
        if segment.disk.exists(path):
            segment.disk.rename(path, path + DELETED_SUFFIX)
            log.doom(path + DELETED_SUFFIX, now_ms)


def recover(disk: Disk, directory: str) -> None:
    """Finish or undo at a start what a crash interrupted; removes `.cleaned` and `.deleted` files. Doing it twice does
    no harm."""
    names = disk.listdir(directory)
    swapped = [name for name in names if name.endswith(SWAP_SUFFIX)]
    unfinished = [int(name[:20]) for name in names if name.endswith(CLEANED_SUFFIX) and name[:20].isdigit()]
    if unfinished:
        # As long as a part of a replacement is not whole, nothing that it was to replace is gone.
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
                # The log last, or a second try would not look for the rest.
                for suffix in reversed(_SUFFIXES):
                    disk.unlink(file_prefix(directory, base) + suffix)
    for name in sorted(swapped, key=lambda name: not name.endswith(LOG_SUFFIX + SWAP_SUFFIX), reverse=True):
        # The log last: while it is not renamed, what it replaces is looked for again.
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
