"""The metadata log of one member of a quorum, as its shell reads and writes it: `__cluster_metadata-0`.

A member's own records and those of its leader go the same way into the log, with their offsets and epochs given. They
are written at once and synced when the machine asks for it."""

from __future__ import annotations

from pykafkad.log import follower_log
from pykafkad.metadata import record_codec, snapshots
from pykafkad.raft import control_records
from pykafkad.raft.events import Snapshot, Start
from pykafkad.raft.voter_sets import FORMATTED
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch, parse_header
from pykafkad.wire.records import iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pykafkad.clock import Clock
    from pykafkad.effects import StoredRecord
    from pykafkad.log.follower_log import Cut
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.syncing import SyncJob
    from pykafkad.wire.batch import BatchHeader

    Buffer = bytes | memoryview

_OF_THE_QUORUM = (messages.KRaftVersionRecord, messages.VotersRecord)


class RaftLog:
    """A `PartitionLog` with the offsets and epochs of a quorum."""

    __slots__ = ("_clock", "log")

    def __init__(self, log: PartitionLog, clock: Clock) -> None:
        self.log = log
        self._clock = clock

    # ---- at the start

    def fit(self, kept: Sequence[tuple[int, int]]) -> None:
        """Begin the log at the newest snapshot, an (end offset, epoch), if it does not reach that: a snapshot that was
        fetched has taken the place of the log, and the process was killed in between. Raises StorageFailure."""
        if not kept or not kept[-1][0]:
            return
        end_offset, epoch = kept[-1]
        log = self.log
        if log.end_offset < end_offset or log.epochs.latest < epoch:
            follower_log.begin_at(log, end_offset, self._clock.now_ms()).sync()

    def start_event(self, kept: Sequence[tuple[int, int]]) -> Start:
        """What the machine is told of the log and of the snapshots that are kept. Raises StorageFailure."""
        log = self.log
        start_offset = log.log_start_offset
        control: list[tuple[int, object]] = []
        begins_at = 0
        for end_offset, epoch in kept[:1]:
            # A snapshot at 0 has what the directory was formatted with.
            if not end_offset or start_offset:
                begins_at = end_offset
                found = snapshots.read(self._content(end_offset, epoch))
                values = [each.value for each in found if record_codec.is_control(each)]
                place = end_offset - 1 if end_offset else FORMATTED
                control += [(place, value) for value in values if isinstance(value, _OF_THE_QUORUM)]
        control += [each for each in self._control_records() if each[0] >= begins_at]
        newest = None
        if kept and kept[-1][0]:
            newest = Snapshot(*kept[-1], self.snapshot_size(*kept[-1]))
        return Start(start_offset, log.end_offset, list(log.epochs.entries), newest, control)

    def _control_records(self) -> Iterator[tuple[int, object]]:
        for segment in self.log.segments_from(self.log.log_start_offset):
            for position, header in segment.headers():
                if header.is_control and header.end_offset > self.log.log_start_offset:
                    view = memoryview(segment.file.pread(header.size_bytes, position))
                    for offset, value in control_records.in_batch(view):
                        if isinstance(value, _OF_THE_QUORUM):
                            yield offset, value

    # ---- writing

    def append(
        self, records: Sequence[tuple[bytes | None, bytes]], base_offset: int, epoch: int, *, is_control: bool
    ) -> None:
        """Write records of this node as one batch. Raises StorageFailure."""
        now_ms = self._clock.now_ms()
        batch = build_batch(
            records, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=now_ms, is_control=is_control
        )
        self.append_fetched(bytes(batch))

    def append_control(self, records: list[StoredRecord], epoch: int) -> None:
        """Write control records of this node. Raises StorageFailure."""
        encoded = [record_codec.encode(each) for each in records]
        self.append(encoded, self.log.end_offset, epoch, is_control=True)

    def append_fetched(self, data: Buffer) -> None:
        """Write whole batches that have their offsets and epochs. Raises StorageFailure."""
        headers: list[BatchHeader] = []
        position = 0
        while position < len(data):
            headers.append(parse_header(data, position))
            position += headers[-1].size_bytes
        follower_log.append(self.log, data, headers, self._clock.now_ms())

    def truncate(self, end_offset: int) -> Cut:
        """Cut the log. Raises StorageFailure."""
        return follower_log.truncate(self.log, end_offset, self._clock.now_ms())

    def begin_at(self, offset: int) -> Cut:
        """A snapshot takes the place of the log, which is empty and begins at `offset`. Raises StorageFailure."""
        return follower_log.begin_at(self.log, offset, self._clock.now_ms())

    def sync_job(self) -> SyncJob:
        """What syncs all that is written now."""
        return self.log.whole_sync_job()

    # ---- reading

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset`, at least one even if it is larger. Raises StorageFailure."""
        log = self.log
        found = log.read(offset, max_bytes, end_offset=log.written_end_offset)
        return b"" if found is None else found.pread()

    def records(self, offset: int, max_bytes: int) -> Iterator[tuple[BatchHeader, list[tuple[int, StoredRecord]]]]:
        """The batches from `offset`, up to about `max_bytes`, with their records and the offsets of these. Raises
        StorageFailure, `KafkaError` and `ProtocolError`."""
        view = memoryview(self.read(offset, max_bytes))
        position = 0
        while position < len(view):
            header = parse_header(view, position)
            batch = view[position : position + header.size_bytes]
            position += header.size_bytes
            yield (
                header,
                [
                    (each.offset, record_codec.decode(each.key if header.is_control else None, each.value or b""))
                    for each in iterate_records(batch, header)
                ],
            )

    # ---- snapshots

    def snapshot_path(self, end_offset: int, epoch: int) -> str:
        """Where a snapshot is."""
        return f"{self.log.directory}/{snapshots.file_name(end_offset, epoch)}"

    def snapshot_size(self, end_offset: int, epoch: int) -> int:
        """The size of a snapshot. Raises StorageFailure."""
        return self.log.disk.size(self.snapshot_path(end_offset, epoch))

    def _content(self, end_offset: int, epoch: int) -> bytes:
        return self.log.disk.read(self.snapshot_path(end_offset, epoch)) or b""

    def read_snapshot(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> bytes:
        """A part of a snapshot. Raises StorageFailure."""
        file = self.log.disk.open(self.snapshot_path(end_offset, epoch))
        try:
            return file.pread(max_bytes, position)
        finally:
            file.close()
