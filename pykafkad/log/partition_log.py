"""The log of one partition: append and read. Start here.

`append` takes one whole batch as the client sent it, checks it, writes base offset and leader epoch into it in place
and gathers it; `write_pending` (`log_files.py`) brings what was gathered to the file in one write. Until then
`end_offset` is ahead of `written_end_offset`, and nothing may be promised. `read` gives a slice of a file, never bytes
in between.

`append` is the broker's hottest function and is written flat: one header unpack, a handful of comparisons against
numbers that `update_settings` prepared, no call that is not needed. A batch that fails any comparison takes the long
way through `append_rules`, which knows why."""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log.file_slice import FileSlice
from pykafkad.log.log_files import GATHER_SIZE_BYTES, LOADED_SLOTS, LogFiles
from pykafkad.log.producers import ProducerEntry, check_sequence
from pykafkad.log.segment import Segment
from pykafkad.wire.batch import (
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE_BYTES,
    PREFIX,
    TRANSACTIONAL_BIT,
    build_batch,
    control_key,
    crc32c,
)
from pykafkad.wire.compression import FRAME_STARTS

# Where a batch comes from, which says how much is checked. Verified: the transaction coordinator says that the
# partition belongs to the producer's ongoing transaction, so a batch may begin it here.
CLIENT = "client"
VERIFIED_CLIENT = "verified client"
COORDINATOR = "coordinator"

# Batches below this size are gathered, larger ones written at once: copying them would cost more than the call saves.
DIRECT_WRITE_BYTES = 16 * 1024

AppendResult = namedtuple("AppendResult", ("base_offset", "last_offset", "log_append_time_ms", "log_start_offset"))
AppendResult.__doc__ = "Where a batch was put. `log_append_time_ms` is -1 unless the topic stamps records itself."

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.replica import Replica
    from pykafkad.log.txn_index import AbortedTransaction

_NO_HEADER = (0,) * 13
_CHECKED = slice(21, None)
_unpack_header = HEADER.unpack_from
_pack_prefix = PREFIX.pack_into


class PartitionLog(LogFiles):
    """See the module. `replica` says what is committed; it is given by whoever knows the metadata."""

    __slots__ = ("replica",)

    replica: Replica

    # -- append --------------------------------------------------------------------------------------------------------

    def append(
        self, records, now_ms: int, produce_version: int = 13, origin: str = CLIENT, checked: tuple | None = None
    ) -> AppendResult:
        """Check one batch (`records`: a writable view that holds it), assign its offsets in place and gather it.

        Keeps no reference to `records`. Raises `KafkaError`, for rejected records with `record_errors`, or
        `StorageFailure`. A rejected batch uses no offset and is left as it came. A client's batch of very many records
        that must be opened is `append_rules.OpenElsewhere`: what its `check` returned is handed in as `checked`, its
        batch as `records`."""
        return AppendResult(*self.append_batch(records, now_ms, produce_version, origin, checked))

    def append_batch(
        self, records, now_ms: int, produce_version: int = 13, origin: str = CLIENT, checked: tuple | None = None
    ) -> tuple[int, int, int, int]:
        """`append`, with the result as a plain tuple in the order of `AppendResult`: a call less where it counts."""
        size = len(records)
        log_append_time_ms = -1
        # Zeros let what is too short for a header fall through to the rules, which name the reason.
        (
            base_offset,
            length,
            _,
            magic,
            crc,
            attributes,
            last_delta,
            base_timestamp_ms,
            max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _unpack_header(records) if size >= HEADER_SIZE_BYTES else _NO_HEADER
        if (
            length != size - 12
            or base_offset
            or magic != 2
            or attributes not in self._plain_attributes
            or size > self._plain_size_limit
            or count != last_delta + 1
            or count <= 0
            or max_timestamp_ms > now_ms + self._after_max_ms
            or max_timestamp_ms < base_timestamp_ms
            or producer_id >= 0 > base_sequence
            or (attributes == 4 and produce_version < 7)
            or (records[61:63] != FRAME_STARTS[attributes] if attributes else count * 7 > size - 61)
            or crc32c(records[_CHECKED]) != crc
        ):
            records, header, log_append_time_ms = checked or self._check(records, now_ms, produce_version, origin)
            size = len(records)
            (
                _,
                length,
                _,
                _,
                _,
                attributes,
                last_delta,
                _,
                max_timestamp_ms,
                producer_id,
                producer_epoch,
                base_sequence,
                _,
            ) = header
        entry = None
        if producer_id >= 0 and not attributes & CONTROL_BIT:
            entry = self.producers.get(producer_id)
            if (
                entry is None
                or base_sequence != entry.next_sequence
                or producer_epoch != entry.epoch
                or attributes & TRANSACTIONAL_BIT
                or entry.transaction_offset >= 0
            ):
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
            position + size > segment.size_limit
            or max_timestamp_ms > segment.roll_after_ms
            or last_offset > segment.last_offset_limit
        ):
            segment = self._roll_if_due(size, max_timestamp_ms, last_offset, now_ms)
            position = segment.size
        _pack_prefix(records, 0, base_offset, length, self.leader_epoch)
        if size < DIRECT_WRITE_BYTES:
            fill = self._fill
            if fill + size > GATHER_SIZE_BYTES:
                self.write_pending()
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
        if max_timestamp_ms > segment.max_timestamp_ms:
            segment.max_timestamp_ms = max_timestamp_ms
            segment.max_timestamp_offset = last_offset
        if segment.bytes_since_index > self._index_interval_bytes:
            segment.add_index_entries(last_offset, position, self.settings.segment_index_bytes)
        segment.bytes_since_index += size
        if entry is not None:
            self.producers[producer_id] = entry
            entry.add(producer_epoch, base_sequence, last_offset, last_delta, max_timestamp_ms)
            if attributes & TRANSACTIONAL_BIT and entry.transaction_offset < 0:
                self.producers.begin(producer_id, base_offset)
        return base_offset, last_offset, log_append_time_ms, self.log_start_offset

    def append_records(
        self, records, now_ms: int, *, control_type: int | None = None, leader_epoch: int | None = None, codec: int = 0
    ) -> AppendResult:
        """Append `records` (`(key, value)` each) as one batch of our own: coordinators and the metadata log.

        With `control_type` the one record is a control record: its key is made here, its value is `records[0][1]`.
        """
        if leader_epoch is not None and leader_epoch != self.leader_epoch:
            self.assign_epoch(leader_epoch)
        if control_type is not None:
            records = [(control_key(control_type), records[0][1])]
        batch = build_batch(records, timestamp_ms=now_ms, codec=codec, is_control=control_type is not None)
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
        """End a producer's transaction in this partition: its control batch, and what read_committed then knows.

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

    def _check(self, records, now_ms: int, produce_version: int, origin: str):
        if self.offline is not None:
            raise self.offline.copy()
        from pykafkad.log import append_rules

        if origin != COORDINATOR and append_rules.is_long(records):
            raise append_rules.OpenElsewhere
        return append_rules.check(
            records, self.settings, now_ms, produce_version, origin != COORDINATOR, f"{self.topic}-{self.partition}"
        )

    def _check_producer(
        self, entry, producer_id: int, epoch: int, base_sequence: int, last_delta: int, attributes: int, origin: str
    ) -> AppendResult | None:
        where = f"{self.topic}-{self.partition}"
        if entry is not None and origin != COORDINATOR:
            duplicate = entry.find_duplicate(epoch, base_sequence, last_delta)
            if duplicate is not None:
                # Kafka answers a duplicate with the first batch's timestamp as its append time, whatever the topic's
                # type.
                base_offset, last_offset, timestamp_ms = duplicate
                return AppendResult(base_offset, last_offset, timestamp_ms, self.log_start_offset)
        if attributes & TRANSACTIONAL_BIT or (entry is not None and entry.transaction_offset >= 0):
            from pykafkad.log import transactions

            transactions.check_batch(
                entry,
                producer_id,
                epoch,
                bool(attributes & TRANSACTIONAL_BIT),
                origin in (VERIFIED_CLIENT, COORDINATOR),
                where,
            )
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
            # The next read of a tailing consumer begins where this one ends.
            segment.remember(end_offset, end_position)
        return FileSlice(segment.file, start, size)

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
                    # A segment may end below the offset that the next one begins with; the read goes on there.
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

    def aborted_transactions(self, offset: int, records: FileSlice) -> list[AbortedTransaction]:
        """The aborted transactions that a read_committed reader must leave out of what `read(offset, …)` gave it."""
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
        """Where read_committed ends: the high watermark, or the first offset below it of a transaction not decided
        there."""
        producers = self.producers
        if not producers.ongoing and not producers.ended:
            return self.high_watermark
        return max(self.log_start_offset, producers.last_stable_offset(self.high_watermark))

    def advance_high_watermark(self, offset: int) -> int:
        """Raise the high watermark, at most to what is written; it never falls. Returns it."""
        if offset > self.written_end_offset:
            offset = self.written_end_offset
        if offset > self.high_watermark:
            self.high_watermark = offset
        return self.high_watermark

    def lead(self, epoch: int, *, sole_replica: bool) -> None:
        """This broker leads the partition in `epoch` from the end of its log on. Opens nothing.

        A sole replica has everything that counts as committed: its high watermark is its end.
        """
        self._sole_replica = sole_replica
        if self.is_loaded:
            self.assign_epoch(epoch)
            if sole_replica:
                self.advance_high_watermark(self.written_end_offset)
        self.leader_epoch = epoch

    def assign_epoch(self, epoch: int, start_offset: int | None = None) -> None:
        """Batches from `start_offset` (default: the end) on carry `epoch`."""
        self.leader_epoch = epoch
        self.epochs.assign(epoch, self.end_offset if start_offset is None else start_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest known epoch at or below `epoch`, its end offset), (-1, -1) when unknown."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    # -- what goes away ------------------------------------------------------------------------------------------------

    def before_change(self) -> None:
        """Called before anything else than an append changes what the log holds or where: a snapshot may want it as it
        is."""

    def delete_records(self, before_offset: int) -> int:
        """Make the log start at `before_offset` at least; the new start. The files go with the next `run_retention`.

        Raises `KafkaError(OFFSET_OUT_OF_RANGE)` above the high watermark or below 0.
        """
        from pykafkad.log import retention

        return retention.delete_records(self, before_offset)

    def run_retention(self, now_ms: int) -> int:
        """Remove the segments that time, size or the log start have passed; how many went."""
        from pykafkad.log import retention

        return retention.run(self, now_ms)

    def _forget(self) -> None:
        super()._forget()
        if type(self) is PartitionLog:
            self.__class__ = UnopenedLog


class UnopenedLog(PartitionLog):
    """A log as it is made: `__getattr__`, which Python asks only for what is missing, opens the files, and it is a
    `PartitionLog`.

    A class of its own, because where a class has `__getattr__` Python looks every attribute up anew each time: for the
    forty of one small append that is a tenth of what the whole request costs."""

    __slots__ = ()

    def __getattr__(self, name: str):
        if name not in LOADED_SLOTS:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        if self.closed:
            raise StorageFailure("use", self.directory, "the log is closed")
        if self.offline is not None:
            raise self.offline.copy()
        self.load()
        return object.__getattribute__(self, name)

    def load(self) -> None:
        super().load()
        if type(self) is UnopenedLog:
            self.__class__ = PartitionLog
