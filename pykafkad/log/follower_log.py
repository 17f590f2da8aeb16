"""The log of a follower: appending batches as the leader has them, and cutting the log where it differs from the
leader's.

A cut is on the device before anything is written behind it: after a loss of power no old batch may follow a new one.
So whoever cuts has `Cut.sync` called, on any thread, before the next append."""

from __future__ import annotations

from collections import namedtuple
from functools import partial

from pykafkad.errors import StorageFailure
from pykafkad.log import producer_replay, recovery, syncing
from pykafkad.log.file_names import LOG_SUFFIX, SNAPSHOT_SUFFIX, file_prefix
from pykafkad.log.producers import ProducerStates
from pykafkad.log.segment import MAX_RELATIVE_OFFSET, Segment
from pykafkad.wire.batch import CONTROL_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.wire.batch import BatchHeader

Cut = namedtuple("Cut", ("end_offset", "sync"))
Cut.__doc__ = """A log that was cut: where it ends now, and what brings that to the device, a function without arguments
for any thread. `sync` is None if no file has changed."""


def append(log: PartitionLog, data: memoryview | bytes, headers: list[BatchHeader], now_ms: int) -> None:
    """Append whole batches, which are written at once. `data` has them one behind the other, and has been checked
    (`follower.whole_batches`). The first may begin below the log's end if the log is empty: its log start is within a
    batch then. Raises StorageFailure."""
    if log.offline is not None:
        raise log.offline.copy()
    log.write_pending()
    if headers[0].base_offset < log.end_offset:
        _begin_within_batch(log, headers[0].base_offset, now_ms)
    data = memoryview(data)
    begin = position = 0
    for header in headers:
        size = header.size_bytes
        segment = log.segments[-1]
        if (
            segment.size + size > segment.size_limit
            or header.max_timestamp_ms > segment.roll_after_ms
            or header.last_offset > segment.last_offset_limit
        ):
            _write(log, segment, data[begin:position])
            begin = position
            segment = log.roll_if_due(size, header.max_timestamp_ms, header.last_offset, now_ms)
        _track(log, segment, header, data[position : position + size])
        position += size
    _write(log, log.segments[-1], data[begin:position])
    log.producers.forget_ended(log.high_watermark)


def _track(log: PartitionLog, segment: Segment, header: BatchHeader, batch: memoryview) -> None:
    """What an append keeps of a batch besides its bytes: indexes, leader epochs, producers and their transactions."""
    if header.leader_epoch > log.epochs.latest:
        log.epochs.assign(header.leader_epoch, header.base_offset)
    last_offset, size = header.last_offset, header.size_bytes
    if header.max_timestamp_ms > segment.max_timestamp_ms:
        segment.max_timestamp_ms, segment.max_timestamp_offset = header.max_timestamp_ms, last_offset
    if segment.bytes_since_index > log.settings.index_interval_bytes:
        segment.add_index_entries(last_offset, segment.size, log.settings.segment_index_bytes)
    segment.bytes_since_index += size
    segment.size += size
    log.end_offset = header.end_offset
    if header.producer_id >= 0:
        aborted = log.producers.track(header, partial(bytes, batch))
        if aborted is not None:
            segment.add_aborted(aborted)
            log.has_aborted = True
        if header.attributes & CONTROL_BIT:
            log.producers.verifying.pop(header.producer_id, None)


def _write(log: PartitionLog, segment: Segment, data: memoryview) -> None:
    if not len(data):
        return
    try:
        segment.file.pwrite(data, segment.written_size)
    except StorageFailure as failure:
        raise log.fail(failure) from None
    segment.written_size += len(data)
    log.written_end_offset = log.end_offset


def prepare(log: PartitionLog, end_offset: int) -> Callable[[], None] | None:
    """What takes long of cutting the log there, for any thread, while nobody appends; None if nothing does: a file that
    a snapshot or a fork shares must be copied first. Raises StorageFailure, as what it returns does."""
    if log.offline is not None:
        raise log.offline.copy()
    if not log.log_start_offset <= end_offset < log.end_offset or end_offset < log.segments[0].base_offset:
        return None
    segment = log.segments[log.segment_at(end_offset)]
    if not log.disk.is_shared(segment.prefix + LOG_SUFFIX):
        return None
    return partial(recovery.copy_shared, log.disk, segment, segment.locate(end_offset)[0])


def truncate(log: PartitionLog, end_offset: int, now_ms: int) -> Cut:
    """Cut the log so that it ends at `end_offset`, or at the start of the batch that holds it. Leader epochs that begin
    there or later are forgotten even if no record is cut. Raises StorageFailure."""
    if log.offline is not None:
        raise log.offline.copy()
    log.write_pending()
    if end_offset >= log.end_offset:
        log.epochs.truncate_from_end(log.end_offset)
        return Cut(log.end_offset, None)
    segments = log.segments
    at = log.segment_at(end_offset)
    if end_offset < log.log_start_offset or end_offset < segments[0].base_offset:
        return begin_at(log, end_offset, now_ms)
    log.before_change()
    segment = segments[at]
    position, size = segment.locate(end_offset)
    if size:
        end_offset = min(end_offset, int.from_bytes(segment.file.pread(8, position), "big"))
    try:
        _remove(log, segments[at + 1 :])
        if log.disk.is_shared(segment.prefix + LOG_SUFFIX):
            recovery.take_copy(log.disk, segment, position)
        segment.file.truncate(position)
        _cut(log, segment, position, end_offset)
        log.recovery_point = min(log.recovery_point, end_offset)
        _ended_at(log, end_offset)
        _replay_producers(log)
    except StorageFailure as failure:
        raise log.fail(failure) from None
    return Cut(end_offset, partial(_sync, log, segment.prefix + LOG_SUFFIX))


def begin_at(log: PartitionLog, offset: int, now_ms: int) -> Cut:
    """Drop all records: the log begins and ends at `offset`. Raises StorageFailure."""
    if log.offline is not None:
        raise log.offline.copy()
    log.write_pending()
    log.before_change()
    _restart(log, offset, now_ms)
    log.log_start_offset = log.high_watermark = offset
    return Cut(offset, partial(_sync, log, None))


def _sync(log: PartitionLog, path: str | None) -> None:
    """Bring a cut to the device: the names of segments that are gone, then the end of the last one."""
    try:
        syncing.sync_names(log.disk, log.directory)
        if path is not None:
            syncing.sync_if_there(log.disk, path)
    except StorageFailure:
        if not log.closed:
            raise


def _begin_within_batch(log: PartitionLog, base_offset: int, now_ms: int) -> None:
    """The log is empty, and its start lies within the leader's batch at `base_offset`. Its segment, which has no
    records, gets another name, and that needs no sync: either name is right after a loss of power, and both are too."""
    start_offset = log.log_start_offset
    if log.end_offset != start_offset:
        raise StorageFailure("append", log.directory, f"a batch at {base_offset} behind the end {log.end_offset}")
    log.before_change()
    _restart(log, base_offset, now_ms)
    log.log_start_offset = log.high_watermark = start_offset


def _restart(log: PartitionLog, offset: int, now_ms: int) -> None:
    try:
        _remove(log, list(log.segments))
        file = log.disk.open(file_prefix(log.directory, offset) + LOG_SUFFIX, create=True)
        segment = Segment(log.disk, log.directory, offset, file, now_ms)
        log.segments.append(segment)
        log.activate(segment)
        log.name_changes += 1
        log.recovery_point = offset
        _ended_at(log, offset)
        log.epochs.entries.clear()
        log.producers, log.snapshot_offset, log.late_snapshot = ProducerStates(), offset, None
        log.has_aborted = False
    except StorageFailure as failure:
        raise log.fail(failure) from None


def _remove(log: PartitionLog, gone: list[Segment]) -> None:
    """Remove the last segments, the newest first. A gap that a loss of power leaves in between is seen by recovery."""
    # A list of its own: a sync that runs beside the loop sees that it is of other segments (`syncing.py`).
    log.segments = [segment for segment in log.segments if segment not in gone]
    for segment in reversed(gone):
        log.forget_sealed(segment)
        recovery.remove_segment(log.disk, segment)


def _cut(log: PartitionLog, segment: Segment, size_bytes: int, end_offset: int) -> None:
    """`segment` is the last one, and its file ends at `size_bytes`."""
    log.forget_sealed(segment)
    segment.cut(size_bytes, end_offset)
    indexed = segment.start_of_search(segment.base_offset + MAX_RELATIVE_OFFSET)
    timestamp_ms, relative_offset = segment.time_index.last()
    segment.max_timestamp_ms = timestamp_ms
    segment.max_timestamp_offset = segment.base_offset + relative_offset if timestamp_ms >= 0 else -1
    for _, header in segment.headers(indexed):
        if header.max_timestamp_ms > segment.max_timestamp_ms:
            segment.max_timestamp_ms, segment.max_timestamp_offset = header.max_timestamp_ms, header.last_offset
    segment.bytes_since_index = size_bytes - indexed
    log.activate(segment)
    log.look_for_aborted()


def _ended_at(log: PartitionLog, end_offset: int) -> None:
    log.end_offset = log.written_end_offset = end_offset
    log.high_watermark = min(log.high_watermark, end_offset)
    log.epochs.truncate_from_end(end_offset)
    log.epochs.changed = True


def _replay_producers(log: PartitionLog) -> None:
    """The producer states at the new end: from a snapshot below it, and the batches behind that."""
    names = log.disk.listdir(log.directory)
    offsets = [int(name[:20]) for name in names if name[20:] == SNAPSHOT_SUFFIX and name[:20].isdigit()]
    for offset in [each for each in offsets if each > log.end_offset]:
        log.disk.unlink(file_prefix(log.directory, offset) + SNAPSHOT_SUFFIX)
        offsets.remove(offset)
    log.late_snapshot = None
    replayed = producer_replay.load_producers(
        log.disk, log.directory, log.segments, sorted(offsets), log.log_start_offset, log.end_offset
    )
    log.producers, log.snapshot_offset = replayed.states, replayed.snapshot_offset
    log.producers.forget_ended(log.high_watermark)
