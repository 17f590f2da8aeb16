"""Opening the files of one partition: quickly after a clean stop, batch by batch after any other.

After a clean stop the indexes and the producer snapshot are as `PartitionLog.close` wrote them; only the few kilobytes
behind the last index entry are walked. After a crash every batch from the recovery point on is read and checked:
indexes, producer state and leader epochs are rebuilt from what is whole, the file is cut at the first batch that is
not, and later segments go. Recovering twice gives what recovering once gave."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import StorageFailure
from pykafkad.log import swap
from pykafkad.log.checkpoints import PARTITION_METADATA_FILE, decode_partition_metadata, encode_uuid
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
    from collections.abc import Iterator
    from typing import Protocol

    from pykafkad.disk import Disk
    from pykafkad.log.log_config import LogConfig

    class Readable(Protocol):
        """A file, or a part of one."""

        path: str

        def pread(self, size_bytes: int, position: int) -> bytes: ...


_PASSING_SUFFIXES = (DELETED_SUFFIX, swap.CLEANED_SUFFIX, swap.SWAP_SUFFIX)
RECOVERY_READ_BYTES = 1024 * 1024
# Offset, size, checksum, magic, attributes, lengths of key and value.
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


def load(disk: Disk, directory: str, topic_id: bytes, known: Checkpointed, settings: LogConfig, now_ms: int) -> Loaded:
    """Open a partition directory. Raises `StorageFailure` for a disk that fails or files that are not ours to cut."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    stored_id = decode_partition_metadata(disk.read(path))
    if stored_id is not None and stored_id != topic_id:
        raise StorageFailure(
            "open", path, f"it holds the topic id {encode_uuid(stored_id)}, not {encode_uuid(topic_id)}"
        )
    bases, snapshots, with_aborted = _list(disk, directory)
    stored_epochs = disk.read(f"{directory}/{EPOCHS_FILE}")
    epochs = None if stored_epochs is None else LeaderEpochs.from_text(stored_epochs.decode("utf-8", "replace"))
    epochs_lost = epochs is None
    epochs = epochs or LeaderEpochs()
    log_start_offset = max(known.log_start_offset, bases[0] if bases else 0)
    if not bases:
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
        first = _first_to_recover(bases, segments[-1].base_offset if known.clean else known.recovery_point)
        if epochs_lost or (first and not _knows_epoch(segments[first - 1], epochs, log_start_offset)):
            first = 0
        replayed = load_producers(disk, directory, segments, snapshots, log_start_offset, bases[first])
        # From here on the batches tell; the file may be of a life whose end was lost.
        epochs.truncate_from_end(bases[first])
        end_offset = _recover(segments, first, epochs, replayed.states, settings, disk, known.recovery_point)
    if end_offset < log_start_offset and known.clean:
        # A clean stop takes nothing from the end of a log, so it is the checkpoint that is wrong.
        log_start_offset = bases[0]
    if end_offset < log_start_offset:
        # What the checkpoint promised away is gone and so is all below it: the log begins anew there, as in Kafka.
        for segment in segments:
            remove_segment(disk, segment)
        return _start_empty(disk, directory, log_start_offset, epochs, now_ms)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    if replayed is None or any(replayed.to_offset < offset <= end_offset for offset in snapshots):
        # A snapshot behind what was replayed knows of producers whose batches are gone.
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
        if name.endswith(_PASSING_SUFFIXES):
            # Of a compaction or deletion that did not end; what it leaves behind is looked at anew.
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
    # Opened and read when somebody asks, which for a sealed segment may be never.
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
    """Remove a segment's files; its descriptor goes with the last reference to it."""
    for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX):
        disk.unlink(segment.prefix + suffix)


def _load_last(segment: Segment, index_interval_bytes: int) -> tuple[int | None, int]:
    """The end offset of a log that was closed cleanly, and the leader epoch of its last batch (-1 without one): walk
    what lies behind the last index entry.

    None when the file does not end with a whole batch, whatever the marker says: then it is recovered after all.
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
    """Whether nothing lies behind the recovery point, and what a clean stop would have left is there: nothing was
    appended since.

    Reads from the last index entry before that point on, and not even so much when there is no producer snapshot of it.
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


def _first_to_recover(bases: list[int], recovery_point: int) -> int:
    """Index of the segment that holds the recovery point: what lies before it was synced whole."""
    first = 0
    for at, base in enumerate(bases):
        if base <= recovery_point:
            first = at
    return first


def _knows_epoch(segment: Segment, epochs: LeaderEpochs, log_start_offset: int) -> bool:
    """Whether the leader epochs have that of a sealed segment's first batch."""
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
    recovery_point: int,
) -> int:
    """Rebuild the segments from `first` on; the rest of a broken one and all behind it are removed. The end offset.

    `epochs` and `producers` come as they were where that segment begins, and are brought to the end.
    """
    end_offset = segments[first].base_offset
    is_dense = "compact" not in settings.cleanup_policy
    for at in range(first, len(segments)):
        segment = segments[at]
        end_offset, end, has_gap = recover_segment(segment, epochs, producers, settings.index_interval_bytes)
        is_dense = is_dense and not has_gap
        later = segments[at + 1 :]
        # A power loss may take the end of a segment and leave the one behind it; only compaction, which may have been
        # the policy once, leaves offsets out, and what lies before the recovery point is whole.
        has_lost_end = bool(later) and is_dense and max(end_offset, recovery_point) < later[0].base_offset
        is_last = end != segment.size or has_lost_end
        if is_last:
            # The newest goes first and the cut comes last: a power loss in between leaves what this start found, or
            # less.
            for each in reversed(later):
                remove_segment(disk, each)
            if later:
                disk.sync_directory(segment.directory)
            del segments[at + 1 :]
        if end != segment.size:
            if disk.is_shared(segment.prefix + LOG_SUFFIX):
                _make_own(disk, segment, end)
            segment.file.truncate(end)
            segment.file.sync()
            segment.cut(end, end_offset)
        if segment.size or later:
            # What lies before the recovery point is not synced again.
            segment.write_indexes(sync=segment.base_offset < recovery_point)
        if is_last:
            break
        if later:
            segment.drop_indexes()
    return end_offset


def _make_own(disk: Disk, segment: Segment, size_bytes: int) -> None:
    """Before a file is cut that a snapshot or a fork has too: its first bytes, in a file of this directory's alone."""
    path = segment.prefix + LOG_SUFFIX
    source, own = segment.file, disk.open(path + swap.CLEANED_SUFFIX, create=True)
    for position in range(0, size_bytes, RECOVERY_READ_BYTES):
        own.pwrite(source.pread(min(RECOVERY_READ_BYTES, size_bytes - position), position), position)
    own.sync()
    own.close()
    disk.rename(path + swap.CLEANED_SUFFIX, path)
    disk.sync_directory(segment.directory)
    segment.file = disk.open(path)
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
        disk.unlink(segment.prefix + suffix)


def recover_segment(
    segment: Segment, epochs: LeaderEpochs, producers: ProducerStates, index_interval_bytes: int
) -> tuple[int, int, bool]:
    """Check every batch of one segment and rebuild its indexes. (end offset, position where the file is to be cut,
    whether offsets are missing between its batches).

    A batch that is cut short, has a wrong checksum, an impossible header or an offset that does not rise ends the
    segment."""
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
        # What `Segment.track` does, which would be most of the time that small batches take.
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
    segment.aborted = aborted
    if not aborted:
        segment.disk.unlink(segment.prefix + TXN_INDEX_SUFFIX)
    return end_offset, end, has_gap


def whole_batches(file: Readable, size_bytes: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield `(position, BatchHeader)` of a file's batches up to the first that is not whole, by length, magic and
    checksum.

    A batch of the formats before Kafka 0.11 is not broken but foreign: `StorageFailure`, so that nothing is cut off.
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
    """Whether the checksum of the formats before Kafka 0.11 holds: a torn batch may look like one."""
    import zlib

    return size == len(data) and zlib.crc32(data[16:]) == int.from_bytes(data[12:16], "big")
