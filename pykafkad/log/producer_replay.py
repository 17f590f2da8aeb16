"""The producer state of a log at its start: a snapshot that fits the log, and the batches behind it replayed."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log.file_names import SNAPSHOT_SUFFIX, file_prefix
from pykafkad.log.producers import ProducerStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.disk import Disk
    from pykafkad.log.segment import Segment
    from pykafkad.wire.batch import BatchHeader


class ReplayedProducers:
    """The producer state at `to_offset`, replayed from the snapshot at `snapshot_offset`."""

    __slots__ = ("snapshot_offset", "states", "to_offset")

    def __init__(self, states: ProducerStates, snapshot_offset: int, to_offset: int) -> None:
        self.states = states
        self.snapshot_offset = snapshot_offset
        self.to_offset = to_offset


def load_producers(
    disk: Disk, directory: str, segments: list[Segment], snapshots: list[int], log_start_offset: int, end_offset: int
) -> ReplayedProducers:
    """The state at `end_offset`: the newest valid snapshot, and the batches after it replayed.

    A snapshot older than the first segment is not used, because some batches after it are deleted. Batches may also be
    missing between the snapshot and the log's start, if deleted segments came back after a crash, some of them broken.
    Then producers without a batch after the log's start are forgotten."""
    producers, from_offset = ProducerStates(), log_start_offset
    for offset in reversed([offset for offset in snapshots if segments[0].base_offset <= offset <= end_offset]):
        path = file_prefix(directory, offset) + SNAPSHOT_SUFFIX
        found = ProducerStates.from_snapshot(disk.read(path) or b"")
        if found is not None and _is_state_at(segments, offset, found):
            producers, from_offset = found, offset
            break
        disk.unlink(path)
        snapshots.remove(offset)
    reached, has_gap = from_offset, False
    if from_offset < end_offset:
        for at, segment in enumerate(segments):
            if segment.base_offset >= end_offset or (
                at + 1 < len(segments) and segments[at + 1].base_offset <= from_offset
            ):
                continue
            try:
                for position, header in segment.headers(segment.locate(from_offset)[0]):
                    producers.track(header, batch_reader(segment, position, header))
                    if reached < log_start_offset:
                        has_gap = has_gap or header.base_offset > reached
                        reached = header.end_offset
            except StorageFailure:
                if at + 1 == len(segments) or segments[at + 1].base_offset > log_start_offset:
                    raise
                # The broken batches are below the log's start, so no consumer reads them.
                has_gap = True
    if has_gap or reached < min(log_start_offset, end_offset):
        producers.forget_before(log_start_offset)
    return ReplayedProducers(producers, from_offset, end_offset)


def _is_state_at(segments: list[Segment], offset: int, producers: ProducerStates) -> bool:
    """Whether a snapshot fits the batches of this log; a file with a valid checksum may be of another log.

    The newest batch in the snapshot must be that producer's in the log. The log's last batch before the snapshot's
    offset must be the last of its producer in the snapshot, unless the snapshot does not know the producer, which may
    have expired."""
    if not producers:
        return True
    newest = max(
        ((entry.batches[-1][1], producer_id) for producer_id, entry in producers.items() if entry.batches), default=None
    )
    if newest is not None and newest[0] >= offset:
        return False
    try:
        header = _batch_with(segments, newest[0]) if newest is not None else None
        last = _batch_with(segments, offset - 1)
    except StorageFailure:
        # A damaged batch is no evidence against the snapshot.
        return True
    if header is not None and newest is not None and header.producer_id != newest[1]:
        return False
    if last is None or last.is_control:
        return True
    entry = producers.get(last.producer_id)
    return entry is None or not entry.batches or entry.batches[-1][1] == last.last_offset


def _batch_with(segments: list[Segment], offset: int) -> BatchHeader | None:
    for segment in reversed(segments):
        if segment.base_offset <= offset:
            return segment.batch_with(offset)
    return None


def remove_snapshots(
    disk: Disk, directory: str, snapshots: list[int], segments: list[Segment], newest: int, end_offset: int
) -> None:
    """Remove the producer snapshots that a log which ends at `end_offset` does not need; `newest` is the one in use."""
    bases = {segment.base_offset for segment in segments}
    for offset in snapshots:
        # A snapshot at a segment's base stays. A clean stop leaves one at the log's end, until a newer one replaces it.
        if offset > end_offset or (offset < newest and offset not in bases):
            disk.unlink(file_prefix(directory, offset) + SNAPSHOT_SUFFIX)
    if snapshots and snapshots[-1] > end_offset:
        # Without this sync, a power loss could bring back a snapshot that does not fit the batches appended later.
        disk.sync_directory(directory)


def batch_reader(segment: Segment, position: int, header: BatchHeader) -> Callable[[], bytes]:
    """A function that reads a batch: only a marker's batch is read when producers are replayed."""
    return lambda: segment.file.pread(header.size_bytes, position)
