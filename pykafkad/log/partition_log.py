"""The log of one partition: append and read. Start here.

`append` takes one whole batch as the client sent it, checks it, writes base offset and leader epoch into it in place,
and copies it to a gather buffer. `write_pending` (`log_files.py`) writes the gathered batches to the file in one call.
Until then `end_offset` is ahead of `written_end_offset`, and the batches may not be acknowledged. `read` returns a
slice of a file, and copies no bytes.

`append_batch` is the broker's hottest function, so it contains only one header unpack, a few comparisons with numbers
that `update_settings` has prepared, and no avoidable call. A batch that fails a comparison takes the slow path through
`append_rules`, which accepts it or raises the right error."""

from __future__ import annotations

from bisect import bisect_right
from collections import namedtuple

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log.log_files import GATHER_SIZE_BYTES, LOADED_SLOTS, LogFiles
from pykafkad.log.producers import ProducerEntry, check_sequence, check_waiting
from pykafkad.log.segment import Segment
from pykafkad.log.txn_index import NO_ABORTED, collect
from pykafkad.wire.batch import (
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE_BYTES,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PREFIX,
    TRANSACTIONAL_BIT,
    build_batch,
    control_key,
    crc32c,
    header_of,
)
from pykafkad.wire.compression import FRAME_STARTS

# The origin of a batch, which decides what is checked. A client's batch of a transaction comes in a request with a
# transactional id. It may begin a transaction here if its origin is the producer's `Verification`, or a verified
# client, where the transaction coordinator is not asked.
CLIENT = "client"
TRANSACTION = "client with a transactional id"
VERIFIED_CLIENT = "verified client"
COORDINATOR = "coordinator"

# Batches below this size are gathered. Larger ones are written at once, because a copy would cost more than a call. The
# largest are written beside the loop (`large_writes.py`).
DIRECT_WRITE_BYTES = 16 * 1024

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.log.append_rules import Checked, Writable
    from pykafkad.log.file_slice import FileSlice
    from pykafkad.log.producers import Verification
    from pykafkad.log.recovery import Checkpointed, Loaded
    from pykafkad.log.replica import Replica
    from pykafkad.log.txn_index import AbortedTransaction

_NO_HEADER = (0,) * 13
_CHECKED = slice(21, None)
_unpack_header = HEADER.unpack_from
_pack_prefix = PREFIX.pack_into


class AppendResult(
    namedtuple("AppendResult", ("base_offset", "last_offset", "log_append_time_ms", "log_start_offset"))
):
    """The offsets of an appended batch. `log_append_time_ms` is -1 unless the topic uses LogAppendTime."""

    __slots__ = ()

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int


class PartitionLog(LogFiles):
    """See the module. `replica` says what is committed; the broker sets it from the metadata."""

    __slots__ = ("replica",)

    replica: Replica

    # -- append --------------------------------------------------------------------------------------------------------

    def append(
        self,
        records: Writable,
        now_ms: int,
        produce_version: int = 13,
        origin: str | Verification = CLIENT,
        checked: Checked | None = None,
    ) -> AppendResult:
        """Check one batch, which fills the writable view `records`, assign its offsets in place and gather it.

        Keeps no reference to `records`. Raises `StorageFailure` or `KafkaError`, the latter with `record_errors` if
        single records are refused. A refused batch uses no offset and is not changed. For a client's batch with very
        many records that must be opened this raises `append_rules.OpenElsewhere`. The caller then passes the result of
        `append_rules.check` as `checked`, and its batch as `records`.
        """
        return AppendResult(*self.append_batch(records, now_ms, produce_version, origin, checked))

    def append_batch(
        self,
        records: Writable,
        now_ms: int,
        produce_version: int = 13,
        origin: str | Verification = CLIENT,
        checked: Checked | None = None,
    ) -> tuple[int, int, int, int]:
        """`append` with a plain tuple as its result, in the order of `AppendResult`, which saves a call."""
        size = len(records)
        log_append_time_ms = -1
        # With zeros, a batch that is shorter than a header fails the comparisons and takes the slow path.
        (
            base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp_ms, max_timestamp_ms,
            producer_id, producer_epoch, base_sequence, count,
        ) = _unpack_header(records) if size >= HEADER_SIZE_BYTES else _NO_HEADER  # fmt: skip
        if (
            length != size - 12 or base_offset or magic != 2
            or attributes not in self._plain_attributes or size > self._plain_size_limit
            or count != last_delta + 1 or count <= 0
            or max_timestamp_ms > now_ms + self._after_max_ms or max_timestamp_ms < base_timestamp_ms
            or producer_id >= 0 > base_sequence
            or (attributes == 4 and produce_version < 7)
            or (records[61:63] != FRAME_STARTS[attributes] if attributes else count * 7 > size - 61)  # type: ignore[comparison-overlap]
            or crc32c(records[_CHECKED]) != crc
        ):  # fmt: skip
            records, header, log_append_time_ms = checked or self._check(records, now_ms, produce_version, origin)
            size = len(records)
            length, attributes, last_delta = header.length, header.attributes, header.last_offset_delta
            max_timestamp_ms, base_sequence = header.max_timestamp_ms, header.base_sequence
            producer_id, producer_epoch = header.producer_id, header.producer_epoch
        entry = None
        if producer_id >= 0 and not attributes & CONTROL_BIT:
            entry = self.producers.get(producer_id)
            if (
                entry is None or base_sequence != entry.next_sequence or producer_epoch != entry.epoch
                or attributes & TRANSACTIONAL_BIT or entry.transaction_offset >= 0
            ):  # fmt: skip
                duplicate = self._check_producer(
                    entry, producer_id, producer_epoch, base_sequence, last_delta, attributes, origin
                )
                if duplicate is not None:
                    return duplicate
                if entry is None:
                    entry = ProducerEntry()
        base_offset = self.end_offset
        last_offset = base_offset + last_delta
        segment = self._active
        position = segment.size
        if (
            position + size > segment.size_limit or max_timestamp_ms > segment.roll_after_ms
            or last_offset > segment.last_offset_limit
        ):  # fmt: skip
            segment = self.roll_if_due(size, max_timestamp_ms, last_offset, now_ms)
            position = segment.size
        _pack_prefix(records, 0, base_offset, length, self.leader_epoch)
        if size < DIRECT_WRITE_BYTES:
            fill = self._fill
            if fill + size > GATHER_SIZE_BYTES:
                self._make_room()
                fill = 0
            gather = self._gather
            if gather is None:
                gather = self._gather = self._borrow()
            end = fill + size
            gather[fill:end] = records
            self._fill = end
        else:
            self._write_through(segment, records, last_offset + 1)
        segment.size = position + size
        self.end_offset = last_offset + 1
        self.messages_in += last_delta + 1
        if max_timestamp_ms > segment.max_timestamp_ms:
            segment.max_timestamp_ms = max_timestamp_ms
            segment.max_timestamp_offset = last_offset
        if segment.bytes_since_index > self._index_interval_bytes:
            segment.add_index_entries(last_offset, position, self.settings.segment_index_bytes)
        segment.bytes_since_index += size
        if entry is not None:
            self.producers[producer_id] = entry
            entry.add(producer_epoch, base_sequence, last_offset, last_delta, max_timestamp_ms)
            if attributes & TRANSACTIONAL_BIT and (entry.transaction_offset < 0 or self.producers.verifying):
                self.producers.begin(producer_id, base_offset)
        return base_offset, last_offset, log_append_time_ms, self.log_start_offset

    def append_records(
        self,
        records: Sequence[tuple[Any, ...]],
        now_ms: int,
        *,
        control_type: int | None = None,
        leader_epoch: int | None = None,
        codec: int = 0,
        producer: tuple[int, int] | None = None,
    ) -> AppendResult:
        """Append a coordinator's or the quorum's `records`, `(key, value)` each, as one batch.

        With `control_type` the one record is a control record: its key is made here, its value is `records[0][1]`. With
        `producer`, a producer id and its epoch, the batch belongs to the producer's transaction.
        """
        if leader_epoch is not None and leader_epoch != self.leader_epoch:
            self.assign_epoch(leader_epoch)
        if control_type is not None:
            records = [(control_key(control_type), records[0][1])]
        producer_id, producer_epoch = producer or (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        batch = build_batch(
            records,
            timestamp_ms=now_ms,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_control=control_type is not None,
            is_transactional=producer is not None,
        )
        return self.append(memoryview(batch), now_ms, origin=COORDINATOR)

    def append_encoded(self, body: bytes | bytearray, count: int, now_ms: int) -> AppendResult:
        """`append_records` for `count` records of a coordinator that are bytes already: `body`, of one timestamp."""
        batch = header_of(body, count, base_offset=0, timestamp_ms=now_ms, leader_epoch=-1)
        batch += body
        return self.append(memoryview(batch), now_ms, origin=COORDINATOR)

    def append_end_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        now_ms: int,
        *,
        is_abort: bool,
        transaction_version: int = 0,
    ) -> AppendResult:
        """End a producer's transaction in this partition: append its control batch, and note it if it is aborted.

        Raises `KafkaError(INVALID_PRODUCER_EPOCH)` for an epoch that is over, `TRANSACTION_COORDINATOR_FENCED` for a
        marker of an older coordinator. See `transactions.check_marker` for `transaction_version` (KIP-890)."""
        from pykafkad.log import transactions

        return transactions.append_end_marker(
            self,
            producer_id,
            producer_epoch,
            coordinator_epoch,
            now_ms,
            is_abort=is_abort,
            transaction_version=transaction_version,
        )

    def _check(self, records: Writable, now_ms: int, produce_version: int, origin: str | Verification) -> Checked:
        if self.offline is not None:
            raise self.offline.copy()
        from pykafkad.log import append_rules

        if origin == CLIENT and append_rules.is_transactional(records):
            raise KafkaError(
                errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the request of the batch has no transactional id"
            )
        if origin != COORDINATOR and append_rules.is_long(records, produce_version):
            raise append_rules.OpenElsewhere
        return append_rules.check(
            records, self.settings, now_ms, produce_version, origin != COORDINATOR, f"{self.topic}-{self.partition}"
        )

    def _check_producer(
        self,
        entry: ProducerEntry | None,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        last_delta: int,
        attributes: int,
        origin: str | Verification,
    ) -> AppendResult | None:
        where = f"{self.topic}-{self.partition}"
        if entry is not None and origin != COORDINATOR:
            duplicate = entry.find_duplicate(epoch, base_sequence, last_delta)
            if duplicate is not None:
                # As in Kafka, the append time of a duplicate is the first batch's timestamp, for either timestamp type.
                base_offset, last_offset, timestamp_ms = duplicate
                return AppendResult(base_offset, last_offset, timestamp_ms, self.log_start_offset)
        waiting = self.producers.verifying.get(producer_id)
        if attributes & TRANSACTIONAL_BIT or (entry is not None and entry.transaction_offset >= 0):
            from pykafkad.log import transactions

            is_verified = origin in (VERIFIED_CLIENT, COORDINATOR) or (waiting is not None and origin is waiting)
            transactions.check_batch(
                entry, producer_id, epoch, bool(attributes & TRANSACTIONAL_BIT), is_verified, where
            )
        if waiting is not None and origin != COORDINATOR:
            check_waiting(entry, waiting, producer_id, base_sequence, where)
        check_sequence(entry, producer_id, epoch, base_sequence if origin != COORDINATOR else None, where)
        return None

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, end_offset: int, minimum_one_batch: bool = True) -> FileSlice | None:
        """Whole batches from the one that contains `offset`, at most `max_bytes` and below `end_offset`.

        `minimum_one_batch` returns the first batch even if it is larger. None when there is nothing. Raises
        `KafkaError(OFFSET_OUT_OF_RANGE)` below the log's start or above its end.
        """
        segment = self._active
        if offset < segment.base_offset or offset > self.end_offset or offset < self.log_start_offset:
            return self._read_sealed(offset, max_bytes, end_offset, minimum_one_batch)
        if offset >= end_offset:
            return None
        positions = segment.positions
        if end_offset >= self.written_end_offset:
            end_offset = self.written_end_offset
            end_position = segment.written_size
        else:
            end_position = self._end_position(segment, end_offset)
        start = positions.get(offset)
        if start is None:
            start, size = segment.locate(offset)
            if not size:
                return None
            segment.remember(offset, start)
        size = end_position - start
        if size > max_bytes:
            return segment.read(start, max_bytes, end_position, minimum_one_batch)
        if size <= 0:
            return None
        if end_offset not in positions:
            # A tailing consumer's next read begins where this one ends.
            segment.remember(end_offset, end_position)
        return segment.slice(start, size)

    def _read_sealed(self, offset: int, max_bytes: int, end_offset: int, minimum_one_batch: bool) -> FileSlice | None:
        if offset < self.log_start_offset or offset > self.end_offset:
            raise KafkaError(
                errors.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside [{self.log_start_offset}, "
                f"{self.end_offset}] of {self.topic}-{self.partition}",
            )
        if offset >= end_offset:
            return None
        segments = self.segments
        for at in range(self.segment_at(offset), len(segments)):
            segment = segments[at]
            self.touch(segment)
            start = segment.positions.get(offset)
            if start is None:
                start, size = segment.locate(offset)
                if not size:
                    # Compaction may have removed the segment's last offsets, so the read goes on in the next segment.
                    continue
                segment.remember(offset, start)
            if at + 1 < len(segments) and end_offset >= segments[at + 1].base_offset:
                end_position = segment.written_size
            else:
                end_position = self._end_position(segment, end_offset)
            return segment.read(start, max_bytes, end_position, minimum_one_batch)
        return None

    def _end_position(self, segment: Segment, end_offset: int) -> int:
        position = segment.positions.get(end_offset)
        if position is None:
            position, _ = segment.locate(end_offset)
            segment.remember(end_offset, position)
        return position

    def aborted_transactions(self, offset: int, records: FileSlice) -> Sequence[AbortedTransaction]:
        """The aborted transactions whose records a read_committed reader must skip in `records`, read at `offset`."""
        segment = self._active
        if records.file is segment.file and segment.indexes_trusted:
            start = records.position
            end = start + records.chunk_size
            ranges = segment.aborted.ranges
            if ranges is None:
                ranges = segment.aborted.find_ranges(segment)
            at = bisect_right(ranges, start)
            # Most reads end before the next range, and need no further look.
            if not at & 1 and (at == len(ranges) or end <= ranges[at]):
                return NO_ABORTED
            entry = segment.offset_index.first_from(end)
            end_offset = self.end_offset if entry is None else segment.base_offset + entry[0]
            return collect((segment,), offset, end_offset)
        from pykafkad.log import transactions

        return transactions.aborted_in(self, offset, records)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int, int] | None:
        """(offset, timestamp, leader epoch) of the first record at or after a time; None when all are earlier."""
        from pykafkad.log import lookups

        return lookups.offset_for_timestamp(self, timestamp_ms)

    def max_timestamp_offset(self) -> tuple[int, int, int] | None:
        """(offset, timestamp, leader epoch) of the first record with the largest timestamp; None in an empty log."""
        from pykafkad.log import lookups

        return lookups.max_timestamp_offset(self)

    # -- offsets and epochs --------------------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """The end of read_committed reads: the high watermark, or the start of an ongoing transaction below it."""
        producers = self.producers
        if not producers.ongoing and not producers.ended:
            return self.high_watermark
        return max(self.log_start_offset, producers.last_stable_offset(self.high_watermark))

    def advance_high_watermark(self, offset: int) -> int:
        """Raise the high watermark, at most to the written end. It never falls. Returns it."""
        if offset > self.written_end_offset:
            offset = self.written_end_offset
        if offset > self.high_watermark:
            self.high_watermark = offset
        return self.high_watermark

    def lead(self, epoch: int, *, sole_replica: bool) -> None:
        """Begin the leader epoch `epoch` at the end of the log. This does not open the log.

        A sole replica has everything that counts as committed: its high watermark is its end.
        """
        self._sole_replica = sole_replica
        if self.is_loaded:
            self.assign_epoch(epoch)
            if sole_replica:
                self.advance_high_watermark(self.written_end_offset)
        self.leader_epoch = epoch

    def follow(self) -> None:
        """Another broker leads, or nobody: what is written here is its leader's, in its epochs."""
        self._sole_replica, self.leader_epoch = False, -1

    def assign_epoch(self, epoch: int, start_offset: int | None = None) -> None:
        """Let batches from `start_offset` on, by default the end, have the leader epoch `epoch`."""
        self.leader_epoch = epoch
        self.epochs.assign(epoch, self.end_offset if start_offset is None else start_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest known epoch at or below `epoch`, its end offset), (-1, -1) when unknown."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    # -- removing records ----------------------------------------------------------------------------------------------

    def before_change(self) -> None:
        """Called before every change other than an append. A snapshot that is being made saves the log first."""

    def delete_records(self, before_offset: int) -> int:
        """Raise the log start to `before_offset`; returns the log start. The next `run_retention` removes the files.

        Raises `KafkaError(OFFSET_OUT_OF_RANGE)` above the high watermark or below 0.
        """
        from pykafkad.log import retention

        return retention.delete_records(self, before_offset)

    def run_retention(self, now_ms: int) -> int:
        """Remove the segments that are due by time, by size or by the log start; returns how many."""
        from pykafkad.log import retention

        return retention.run(self, now_ms)

    def _forget(self) -> None:
        super()._forget()
        if type(self) is PartitionLog:
            self.__class__ = UnopenedLog


class UnopenedLog(PartitionLog):
    """A log whose files are not open yet.

    The first use of one of `LOADED_SLOTS` calls `__getattr__`, which opens the files and turns the object into a
    `PartitionLog`. This is a class of its own because Python does not cache the attributes of a class with
    `__getattr__`. For the forty attributes of a small append, that would cost a tenth of the whole request.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in LOADED_SLOTS:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        if self.closed:
            raise StorageFailure("use", self.directory, "the log is closed")
        if self.offline is not None:
            raise self.offline.copy()
        self.load()
        return object.__getattribute__(self, name)

    def load(self, known: Checkpointed | None = None, loaded: Loaded | None = None) -> None:
        super().load(known, loaded)
        if type(self) is UnopenedLog:
            self.__class__ = PartitionLog  # type: ignore[assignment]
