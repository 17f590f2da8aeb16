"""Opening the files of one partition: quickly after a clean stop, batch by batch after any other stop.

After a clean stop the indexes and the producer snapshot are complete, and only the few kilobytes after the last index
entry are read. After a crash every batch from the recovery point on is read and checked. Indexes, producer state and
leader epochs are rebuilt from the whole batches. The file is truncated at the first broken batch, and later segments
are removed. A second recovery gives the same log as the first."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import StorageFailure
from pykafkad.log import swap
from pykafkad.log.checkpoints import PARTITION_METADATA_FILE, decode_partition_metadata
from pykafkad.log.file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_prefix,
)
from pykafkad.log.leader_epochs import LeaderEpochs
from pykafkad.log.offset_index import OffsetIndex
from pykafkad.log.producer_replay import batch_reader, load_producers, remove_snapshots
from pykafkad.log.producers import ProducerStates
from pykafkad.log.segment import MAX_RELATIVE_OFFSET, Segment
from pykafkad.log.syncing import EPOCHS_FILE
from pykafkad.log.time_index import TimeIndex
from pykafkad.log.txn_index import AbortedTransactions
from pykafkad.uuids import to_text
from pykafkad.wire.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    crc32c,
    parse_header,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from pykafkad.disk import Disk
    from pykafkad.log.log_config import LogConfig

    class Readable(Protocol):
        """A file, or a part of one."""

        path: str

        def pread(self, size_bytes: int, position: int) -> bytes: ...


_UNFINISHED_SUFFIXES = (DELETED_SUFFIX, swap.CLEANED_SUFFIX, swap.SWAP_SUFFIX)
RECOVERY_READ_BYTES = 1024 * 1024
# Smallest message of the formats before Kafka 0.11: offset, size, checksum, magic, attributes, key and value lengths.
MIN_OLD_MESSAGE_BYTES = 26


class Checkpointed(namedtuple("Checkpointed", ("clean", "recovery_point", "log_start_offset", "high_watermark"))):
    """What the checkpoint files of the log directory say about one partition; `clean` tells of a clean stop."""

    __slots__ = ()

    clean: bool
    recovery_point: int
    log_start_offset: int
    high_watermark: int


NOTHING_KNOWN = Checkpointed(False, 0, 0, 0)


class Loaded(
    namedtuple(
        "Loaded",
        ("segments", "end_offset", "log_start_offset", "producers", "epochs", "recovery_point", "snapshot_offset"),
    )
):
    """An opened log. `snapshot_offset` is that of the producer snapshot from which `producers` was made."""

    __slots__ = ()

    segments: list[Segment]
    end_offset: int
    log_start_offset: int
    producers: ProducerStates
    epochs: LeaderEpochs
    recovery_point: int
    snapshot_offset: int


def load(
    disk: Disk,
    directory: str,
    topic_id: bytes,
    known: Checkpointed,
    settings: LogConfig,
    now_ms: int,
    before_cut: Callable[[int], None] | None = None,
) -> Loaded:
    """Open a partition's folder. Raises `StorageFailure` for a failing disk, or files of another topic or format.

    `before_cut(end_offset)`, called before batches are cut and at the end, raises it if the log must not end there."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    stored_id = decode_partition_metadata(disk.read(path))
    if stored_id is not None and stored_id != topic_id:
        raise StorageFailure("open", path, f"it holds the topic id {to_text(stored_id)}, not {to_text(topic_id)}")
    bases, snapshots, with_aborted = _list(disk, directory)
    stored_epochs = disk.read(f"{directory}/{EPOCHS_FILE}")
    epochs = None if stored_epochs is None else LeaderEpochs.from_text(stored_epochs.decode("utf-8", "replace"))
    epochs_lost = epochs is None
    epochs = epochs or LeaderEpochs()
    log_start_offset = max(known.log_start_offset, bases[0] if bases else 0)
    if not bases:
        if before_cut is not None:
            before_cut(log_start_offset)
        return _start_empty(disk, directory, log_start_offset, epochs, now_ms)
    segments = [_open(disk, directory, base, now_ms, has_aborted=base in with_aborted) for base in bases]
    end_offset = None
    replayed = None
    if not epochs_lost and (
        known.clean
        or (known.recovery_point > log_start_offset and _ends_at(segments[-1], known.recovery_point, snapshots))
    ):
        end_offset, last_epoch = _load_last(segments[-1], settings.index_interval_bytes)
        epochs_lost = end_offset is not None and last_epoch >= 0 and epochs.epoch_for(end_offset - 1) != last_epoch
    if epochs_lost:
        end_offset = None
    if end_offset is None:
        first = _first_to_recover(bases, segments[-1].base_offset if known.clean else known.recovery_point, snapshots)
        if epochs_lost or (first and not _knows_epoch(segments[first - 1], epochs, log_start_offset)):
            first = 0
        replayed = load_producers(disk, directory, segments, snapshots, log_start_offset, bases[first])
        # The batches give the epochs from here on. The file may name later epochs, whose batches a crash has lost.
        epochs.truncate_from_end(bases[first])
        end_offset = _recover(segments, first, epochs, replayed.states, settings, disk, known, before_cut)
    if before_cut is not None:
        before_cut(end_offset)
    if end_offset < log_start_offset and known.clean:
        # A clean stop loses no records, so the checkpoint must be wrong.
        log_start_offset = bases[0]
    if end_offset < log_start_offset:
        # All remaining records are below the log's start and were deleted. An empty log begins there, as in Kafka.
        for segment in segments:
            remove_segment(disk, segment)
        return _start_empty(disk, directory, log_start_offset, epochs, now_ms)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    if replayed is None or any(replayed.to_offset < offset <= end_offset for offset in snapshots):
        # A later snapshot knows producers whose batches are gone.
        replayed = load_producers(disk, directory, segments, snapshots, log_start_offset, end_offset)
    remove_snapshots(disk, directory, snapshots, segments, replayed.snapshot_offset, end_offset)
    for segment in segments[:-1]:
        segment.drop_file()
        segment.drop_indexes()
    recovery_point = end_offset if known.clean else min(known.recovery_point, end_offset)
    return Loaded(
        segments, end_offset, log_start_offset, replayed.states, epochs, recovery_point, replayed.snapshot_offset
    )


def _list(disk: Disk, directory: str) -> tuple[list[int], list[int], set[int]]:
    bases, snapshots, with_aborted = [], [], set()
    for name in disk.listdir(directory):
        if name.endswith(_UNFINISHED_SUFFIXES):
            # A compaction or deletion was interrupted. It is finished or undone, and the folder is listed again.
            swap.recover(disk, directory)
            return _list(disk, directory)
        if len(name) >= 24 and name[:20].isdigit():
            if name[20:] == LOG_SUFFIX:
                bases.append(int(name[:20]))
            elif name[20:] == SNAPSHOT_SUFFIX:
                snapshots.append(int(name[:20]))
            elif name[20:] == TXN_INDEX_SUFFIX:
                with_aborted.add(int(name[:20]))
    return sorted(bases), sorted(snapshots), with_aborted


def _open(disk: Disk, directory: str, base_offset: int, now_ms: int, *, has_aborted: bool) -> Segment:
    segment = Segment(disk, directory, base_offset, None, now_ms)
    segment.size = segment.written_size = disk.size(file_prefix(directory, base_offset) + LOG_SUFFIX)
    # The file and indexes are loaded on first use, which for a sealed segment may never come.
    segment.drop_file()
    segment.drop_indexes()
    segment.forget("max_timestamp_ms", "max_timestamp_offset", *(("aborted",) if has_aborted else ()))
    return segment


def _start_empty(disk: Disk, directory: str, offset: int, epochs: LeaderEpochs, now_ms: int) -> Loaded:
    file = disk.open(file_prefix(directory, offset) + LOG_SUFFIX, create=True)
    epochs.truncate_from_end(offset)
    return Loaded(
        [Segment(disk, directory, offset, file, now_ms)], offset, offset, ProducerStates(), epochs, offset, offset
    )


def remove_segment(disk: Disk, segment: Segment) -> None:
    """Remove a segment's files. The descriptor is closed with the last reference to it."""
    for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX):
        disk.unlink(segment.prefix + suffix)


def _load_last(segment: Segment, index_interval_bytes: int) -> tuple[int | None, int]:
    """(end offset, leader epoch of the last batch) of a log that was closed cleanly.

    This reads the batches after the last index entry. The end offset is None when the file does not end with a whole
    batch: the log is then recovered, although the stop was marked clean. The epoch is -1 without a batch.
    """
    if not segment.size:
        segment.offset_index, segment.time_index = OffsetIndex(), TimeIndex()
        segment.max_timestamp_ms = segment.max_timestamp_offset = -1
        return segment.base_offset, -1
    if segment.size < HEADER_SIZE_BYTES:
        return None, -1
    segment.first_timestamp_ms = parse_header(segment.file.pread(HEADER_SIZE_BYTES, 0)).max_timestamp_ms
    try:
        if not segment.read_indexes() or not segment.take_max_timestamp():
            segment.rebuild_indexes(index_interval_bytes)
        start = segment.start_of_search(segment.base_offset + MAX_RELATIVE_OFFSET)
        segment.bytes_since_index = segment.size - start
        end_offset, end, epoch = segment.base_offset, 0, -1
        for position, header in segment.headers(start):
            end_offset, end, epoch = header.end_offset, position + header.size_bytes, header.leader_epoch
    except StorageFailure:
        return None, -1
    return (end_offset, epoch) if end == segment.size else (None, -1)


def _ends_at(segment: Segment, recovery_point: int, snapshots: list[int]) -> bool:
    """Whether the last segment ends at the recovery point and has the files that a clean stop leaves.

    Such a log needs no recovery after a crash. This reads the batches from the last index entry before the recovery
    point on, and nothing if there is no producer snapshot at the recovery point.
    """
    if recovery_point <= segment.base_offset or recovery_point not in snapshots:
        return False
    try:
        if not segment.read_indexes():
            return False
        end_offset, end = segment.base_offset, 0
        for position, header in segment.headers(segment.start_of_search(recovery_point - 1)):
            if header.base_offset >= recovery_point:
                return False
            end_offset, end = header.end_offset, position + header.size_bytes
    except StorageFailure:
        return False
    return end_offset == recovery_point and end == segment.size


def _first_to_recover(bases: list[int], recovery_point: int, snapshots: list[int]) -> int:
    """Index of the segment that holds the recovery point; all segments before it are synced.

    A segment that begins at the recovery point may be newer than that point. If its producer snapshot is missing, the
    indexes of the segment before it may not be synced, so that is recovered, too."""
    first = 0
    for at, base in enumerate(bases):
        if base <= recovery_point:
            first = at
    if first and bases[first] == recovery_point and recovery_point not in snapshots:
        return first - 1
    return first


def _knows_epoch(segment: Segment, epochs: LeaderEpochs, log_start_offset: int) -> bool:
    """Whether the leader epochs include the epoch of a sealed segment's first batch."""
    data = segment.file.pread(HEADER_SIZE_BYTES, 0)
    if len(data) < HEADER_SIZE_BYTES:
        return True
    header = parse_header(data)
    if header.leader_epoch < 0 or header.base_offset < log_start_offset:
        return True
    return epochs.epoch_for(header.base_offset) == header.leader_epoch


def _recover(
    segments: list[Segment],
    first: int,
    epochs: LeaderEpochs,
    producers: ProducerStates,
    settings: LogConfig,
    disk: Disk,
    known: Checkpointed,
    before_cut: Callable[[int], None] | None,
) -> int:
    """Recover the segments from `first` on; returns the end offset.

    A broken segment is truncated and all segments after it are removed. Those after one that has only deleted records,
    which a power loss may have brought back, stay. `epochs` and `producers` hold the state at the start of the first
    segment, and are updated to the end of the log.
    """
    end_offset = segments[first].base_offset
    is_dense = "compact" not in settings.cleanup_policy
    for at in range(first, len(segments)):
        segment = segments[at]
        end_offset, end, has_gap = recover_segment(segment, epochs, producers, settings.index_interval_bytes)
        is_dense = is_dense and not has_gap
        later = segments[at + 1 :]
        is_deleted = bool(later) and later[0].base_offset <= known.log_start_offset and not known.clean
        if is_deleted and end_offset < later[0].base_offset:
            producers.forget_before(later[0].base_offset)
        # A power loss may cut the end of a segment and keep the next segment. A gap in the offsets shows this, unless
        # the log was compacted once or the gap lies before the recovery point, where everything is synced.
        has_lost_end = bool(later) and is_dense and max(end_offset, known.recovery_point) < later[0].base_offset
        is_last = not is_deleted and (end != segment.size or has_lost_end)
        if is_last and before_cut is not None:
            before_cut(end_offset)
        if not segment.aborted:
            disk.unlink(segment.prefix + TXN_INDEX_SUFFIX)
        if is_last:
            # The newest segment is removed first and the truncation comes last, so that a power loss in between leaves
            # no gap.
            for each in reversed(later):
                remove_segment(disk, each)
            if later:
                disk.sync_directory(segment.directory)
            del segments[at + 1 :]
        if end != segment.size:
            if disk.is_shared(segment.prefix + LOG_SUFFIX):
                unshare(disk, segment, end)
            segment.file.truncate(end)
            segment.file.sync()
            segment.cut(end, end_offset)
        if segment.size or later:
            # No later sync covers what lies before the recovery point, so its indexes are synced here.
            segment.write_indexes(sync=segment.base_offset < known.recovery_point)
        if is_last:
            break
        if later:
            segment.drop_indexes()
    return end_offset


def unshare(disk: Disk, segment: Segment, size_bytes: int) -> None:
    """Replace a file that is shared with a snapshot or fork by a copy of its first bytes, which may be truncated."""
    copy_shared(disk, segment, size_bytes)
    take_copy(disk, segment, size_bytes)
    disk.sync_directory(segment.directory)


def copy_shared(disk: Disk, segment: Segment, size_bytes: int) -> None:
    """Copy the first bytes of a file that is shared, beside it, and sync the copy."""
    source = segment.file
    own = disk.open(segment.prefix + LOG_SUFFIX + swap.CLEANED_SUFFIX, create=True)
    for position in range(0, size_bytes, RECOVERY_READ_BYTES):
        own.pwrite(source.pread(min(RECOVERY_READ_BYTES, size_bytes - position), position), position)
    own.truncate(size_bytes)
    own.sync()
    own.close()


def take_copy(disk: Disk, segment: Segment, size_bytes: int) -> None:
    """Give a shared file's name to the copy of so many bytes. Names are not synced here."""
    path = segment.prefix + LOG_SUFFIX
    if disk.size(path + swap.CLEANED_SUFFIX) != size_bytes or not disk.exists(path + swap.CLEANED_SUFFIX):
        copy_shared(disk, segment, size_bytes)
    disk.rename(path + swap.CLEANED_SUFFIX, path)
    segment.file = disk.open(path)
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
        disk.unlink(segment.prefix + suffix)


def recover_segment(
    segment: Segment, epochs: LeaderEpochs, producers: ProducerStates, index_interval_bytes: int
) -> tuple[int, int, bool]:
    """Check every batch of one segment and rebuild its indexes.

    Returns (end offset, position where the file must be truncated, whether offsets are missing between batches). The
    segment ends before the first batch that is incomplete, has a wrong checksum or an impossible header, or whose
    offset does not rise."""
    segment.offset_index, segment.time_index = OffsetIndex(), TimeIndex()
    first_offset = end_offset = segment.base_offset
    max_timestamp_ms = max_timestamp_offset = -1
    aborted = []
    end = since_index = 0
    has_gap = False
    latest_epoch = epochs.latest
    for position, header in whole_batches(segment.file, segment.size):
        base_offset, length, leader_epoch, _, _, _, last_offset_delta, _, timestamp_ms, producer_id, _, _, _ = header
        last_offset = base_offset + last_offset_delta
        if base_offset != end_offset:
            if base_offset < end_offset:
                break
            has_gap = True
        if last_offset - first_offset > MAX_RELATIVE_OFFSET:
            break
        # This repeats `Segment.track`: for small batches the call would take most of the time.
        if timestamp_ms > max_timestamp_ms:
            max_timestamp_ms, max_timestamp_offset = timestamp_ms, last_offset
        if since_index > index_interval_bytes:
            segment.offset_index.append(last_offset - first_offset, position)
            segment.time_index.maybe_append(max_timestamp_ms, max_timestamp_offset - first_offset)
            since_index = 0
        if not end:
            segment.first_timestamp_ms = timestamp_ms
        if leader_epoch > latest_epoch:
            epochs.assign(leader_epoch, base_offset)
            latest_epoch = leader_epoch
        if producer_id >= 0:
            transaction = producers.track(header, batch_reader(segment, position, header))
            if transaction is not None:
                aborted.append(transaction)
        end_offset, end = last_offset + 1, position + length + LENGTH_OVERHEAD_BYTES
        since_index += length + LENGTH_OVERHEAD_BYTES
    segment.max_timestamp_ms, segment.max_timestamp_offset = max_timestamp_ms, max_timestamp_offset
    segment.bytes_since_index = since_index
    segment.indexes_written = False
    segment.aborted = AbortedTransactions(aborted)
    return end_offset, end, has_gap


def whole_batches(file: Readable, size_bytes: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield `(position, BatchHeader)` of a file's batches, up to the first with a wrong length, magic or checksum.

    Raises `StorageFailure` for a batch of a format before Kafka 0.11: it is not broken and must not be truncated.
    """
    position = start = 0
    window = b""
    view = memoryview(window)
    unpack, new = HEADER.unpack_from, tuple.__new__
    while position + HEADER_SIZE_BYTES <= size_bytes:
        at = position - start
        if at + HEADER_SIZE_BYTES > len(window):
            window, start, at = file.pread(RECOVERY_READ_BYTES, position), position, 0
            if len(window) < HEADER_SIZE_BYTES:
                return
            view = memoryview(window)
        header = new(BatchHeader, unpack(window, at))
        _, length, _, magic, crc, _, last_offset_delta, _, _, _, _, _, _ = header
        size = length + LENGTH_OVERHEAD_BYTES
        if (
            magic in (0, 1)
            and MIN_OLD_MESSAGE_BYTES <= size <= size_bytes - position
            and _is_old_message(file.pread(size, position), size)
        ):
            raise StorageFailure(
                "recover", file.path, f"batch at position {position} has the format {magic} of Kafka before 0.11"
            )
        if size < HEADER_SIZE_BYTES or position + size > size_bytes or last_offset_delta < 0 or magic != MAGIC:
            return
        if at + size > len(window):
            window, start, at = file.pread(max(RECOVERY_READ_BYTES, size), position), position, 0
            if len(window) < size:
                return
            view = memoryview(window)
        if crc32c(view[at + ATTRIBUTES_POSITION : at + size]) != crc:
            return
        yield position, header
        position += size


def _is_old_message(data: bytes, size: int) -> bool:
    """Whether bytes have the checksum of the formats before Kafka 0.11; a torn batch may look like such a message."""
    import zlib

    return size == len(data) and zlib.crc32(data[16:]) == int.from_bytes(data[12:16], "big")
