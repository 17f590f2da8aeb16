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
    """Producer state as of `to_offset`, which began with the snapshot at `snapshot_offset`."""

    __slots__ = ("snapshot_offset", "states", "to_offset")

    def __init__(self, states: ProducerStates, snapshot_offset: int, to_offset: int) -> None:
        self.states = states
        self.snapshot_offset = snapshot_offset
        self.to_offset = to_offset


def load_producers(
    disk: Disk, directory: str, segments: list[Segment], snapshots: list[int], log_start_offset: int, end_offset: int
) -> ReplayedProducers:
    """The state at `end_offset`: the newest snapshot that can be read, then the batches behind it.

    Of a snapshot from before the first segment some of those batches are gone; what it says of a producer may be long
    over. So it may be where batches are missing on the way from the snapshot to the log's start: segments that were
    deleted, of which some came back, maybe broken."""
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
                # Nobody reads what is below the start.
                has_gap = True
    if has_gap or reached < min(log_start_offset, end_offset):
        producers.forget_before(log_start_offset)
    return ReplayedProducers(producers, from_offset, end_offset)


def _is_state_at(segments: list[Segment], offset: int, producers: ProducerStates) -> bool:
    """Whether a snapshot with a good checksum can be of this log at this offset: it knows the batches that are there.

    The newest batch that it knows has to be its producer's, and the producer of the last batch before it has to have
    sent none before that one. A producer that it does not know may have expired."""
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
        # A damaged batch says nothing about the snapshot.
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
        # A clean stop leaves one at the end of the log, which the next one makes superfluous.
        if offset > end_offset or (offset < newest and offset not in bases):
            disk.unlink(file_prefix(directory, offset) + SNAPSHOT_SUFFIX)
    if snapshots and snapshots[-1] > end_offset:
        # Else a power loss could bring back what tells of other batches than those that will be there.
        disk.sync_directory(directory)


def batch_reader(segment: Segment, position: int, header: BatchHeader) -> Callable[[], bytes]:
    """A function that reads a batch: only a marker's batch is read when producers are replayed."""
    return lambda: segment.file.pread(header.size_bytes, position)
