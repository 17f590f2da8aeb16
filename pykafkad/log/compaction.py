"""Compaction of one log, in small steps: which batches and records stay, and the segment that they are copied to.

There are two passes. `build_map` reads the dirty part and notes the newest offset of every key. `copy_segment` copies
the old segments into a new one and leaves out superseded records. Kafka's rules, beyond "the newest record of each key
stays":

* The offsets, sequences and leader epoch of a batch never change. A batch that loses records keeps its first and last
  offset.
* A batch that loses no record is copied unchanged, compressed or not.
* Tombstones: the first pass that finds one gives its batch a delete horizon, now plus `delete.retention.ms`. The
  horizon takes the place of the base timestamp and is marked by an attribute bit (KIP-534). A later pass removes the
  tombstone once the horizon has passed.
* Records of aborted transactions are removed at once. The abort marker is removed when the last of them is gone and the
  marker's own delete horizon has passed.
* The last batch of a known producer stays, without records if need be, because it carries the producer's last sequence.
  The last batch of the pass stays too, because it marks the end of the cleaned part.
* Records without a key are removed.

Everything here is a generator. Between two `yield`s a step reads at most `STEP_RECORDS` records or `STEP_BYTES` bytes.
Work that takes longer and can run on another thread (decompressing and compressing large bodies, syncing) is yielded as
a function without arguments; its result is sent back into the generator."""

from __future__ import annotations

from struct import Struct

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log.record_scan import Retention, index_keys, shift_timestamps
from pykafkad.wire.batch import (
    ATTRIBUTES_POSITION,
    CHECKED_HEADER,
    CODEC_MASK,
    CONTROL_ABORT,
    CONTROL_BIT,
    CONTROL_COMMIT,
    CONTROL_KEY,
    HEADER_SIZE_BYTES,
    LENGTH_OVERHEAD_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    PREFIX,
    TRANSACTIONAL_BIT,
    crc32c,
    parse_header,
)
from pykafkad.wire.compression import compress, decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any, Literal, TypeVar

    from pykafkad.log.offset_map import OffsetMap
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.producers import ProducerStates
    from pykafkad.log.segment import Segment
    from pykafkad.log.txn_index import AbortedTransaction
    from pykafkad.wire.batch import BatchHeader

    Result = TypeVar("Result")
    # Yields None, or a job for another thread, whose result is sent in.
    Steps = Generator[Callable[[], object] | None, Any, Result]

# One to two milliseconds of work on a slow machine.
STEP_RECORDS = 1000
STEP_BYTES = 256 * 1024
STEP_BATCHES = 200
# Bodies above this size are decompressed and compressed on another thread.
INLINE_BYTES = 32 * 1024
# The attribute bit which says that the base timestamp is the delete horizon: the time from which on tombstones and
# markers of empty transactions may be removed (KIP-534).
DELETE_HORIZON_BIT = 0x40
# The largest size that a batch may decompress to. The broker accepted the batch once, so this only guards against
# damage.
MAX_BODY_BYTES = 1 << 30
_UINT32 = Struct(">I")

DELETE, RETAIN_EMPTY, DELETE_EMPTY = range(3)


class Io:
    """`chunk_bytes` are read at once; `moved_bytes` counts the bytes read and written so far."""

    __slots__ = ("chunk_bytes", "moved_bytes")

    def __init__(self, chunk_bytes: int) -> None:
        self.chunk_bytes = chunk_bytes
        self.moved_bytes = 0


class CleanedTransactions:
    """The transactions met while walking a log from its start: which data is aborted, which markers are still needed.

    `aborted` lists the aborted transactions with records or a marker in the walked range. `kept` collects those whose
    marker stays; it becomes the transaction index of the cleaned segment."""

    __slots__ = ("_aborted", "_coming", "_committed", "kept")

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        # Producer id -> (transaction, whether a batch of it was met).
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []

    def _advance(self, offset: int) -> None:
        coming = self._coming
        while coming and coming[-1].first_offset <= offset:
            transaction = coming.pop()
            self._aborted.setdefault(transaction.producer_id, (transaction, False))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(header.last_offset)
        if not header.attributes & TRANSACTIONAL_BIT:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = (aborted[0], True)
        return True

    def is_superfluous(self, header: BatchHeader, control_type: int | None) -> bool:
        """Whether a control batch (`control_type` None: an empty one) ends a transaction of which nothing is left."""
        self._advance(header.last_offset)
        if control_type is None:
            return True
        if control_type == CONTROL_ABORT:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is not None and aborted[1]:
                self.kept.append(aborted[0])
                return False
            return True
        if control_type == CONTROL_COMMIT:
            if header.producer_id in self._committed:
                self._committed.remove(header.producer_id)
                return False
            return True
        return False


def control_type_of(header: BatchHeader, body: bytes, position: int) -> int | None:
    """The control type of a control batch whose records begin at `position`; None when it has no records."""
    if not header.record_count:
        return None
    position = _after_varint(body, position) + 1
    # Between the attributes and the key are the timestamp delta, the offset delta and the key's length.
    for _ in range(3):
        position = _after_varint(body, position)
    control_type: int
    _, control_type = CONTROL_KEY.unpack_from(body, position)
    return control_type


def _after_varint(body: bytes, position: int) -> int:
    while body[position] > 0x7F:
        position += 1
    return position + 1


def batches_in(segment: Segment, position: int, io: Io) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """Yield `(chunk, begin, header)` for each batch from `position` on: the whole batch is in `chunk`, at `begin`."""
    size = segment.written_size
    file, chunk_bytes = segment.file, io.chunk_bytes
    while position + HEADER_SIZE_BYTES <= size:
        chunk = file.pread(chunk_bytes, position)
        begin, end = 0, len(chunk)
        io.moved_bytes += end
        while begin + HEADER_SIZE_BYTES <= end:
            header = parse_header(chunk, begin)
            batch_bytes = header.length + LENGTH_OVERHEAD_BYTES
            if batch_bytes < HEADER_SIZE_BYTES or header.magic != MAGIC or position + begin + batch_bytes > size:
                raise KafkaError(errors.CORRUPT_MESSAGE, f"{file.path}: no whole batch at position {position + begin}")
            if begin + batch_bytes > end:
                break
            yield chunk, begin, header
            begin += batch_bytes
        if not begin:
            # The first batch is larger than a chunk.
            if end < HEADER_SIZE_BYTES:
                return
            chunk_bytes = max(chunk_bytes, header.length + LENGTH_OVERHEAD_BYTES)
        position += begin


def opened(chunk: bytes, begin: int, header: BatchHeader) -> Steps[tuple[bytes, int]]:
    """`(bytes, position)` of a batch's records, decompressed if they are compressed."""
    codec = header.attributes & CODEC_MASK
    if not codec:
        return chunk, begin + HEADER_SIZE_BYTES
    body = chunk[begin + HEADER_SIZE_BYTES : begin + header.size_bytes]
    if len(body) > INLINE_BYTES:
        return (yield lambda: decompress(codec, body, MAX_BODY_BYTES)), 0
    return decompress(codec, body, MAX_BODY_BYTES), 0


def build_map(
    segments: list[Segment],
    start_offset: int,
    end_offset: int,
    offsets: OffsetMap,
    aborted: list[AbortedTransaction],
    io: Io,
) -> Steps[None]:
    """Enter the newest offset of every key in [start_offset, end_offset) into the map, until the map is full.

    `segments` hold that range. Afterwards `offsets.latest_offset` is the last offset that the map covers.
    """
    transactions = CleanedTransactions(aborted)
    bounds = [segment.base_offset for segment in segments[1:]] + [end_offset]
    for segment, bound in zip(segments, bounds, strict=False):
        pace = Pace()
        position = segment.start_of_search(start_offset)
        for chunk, begin, header in batches_in(segment, position, io):
            if pace.is_due(header):
                if len(offsets) > offsets.max_entries:
                    # The map does not cover the records that follow, so all of them stay.
                    return
                yield None
            if header.attributes & CONTROL_BIT:
                transactions.is_superfluous(header, control_type_of(header, chunk, begin + HEADER_SIZE_BYTES))
            elif not transactions.is_aborted(header) and header.record_count:
                body, position = yield from opened(chunk, begin, header)
                left = header.record_count
                while left:
                    count = min(left, STEP_RECORDS)
                    position = index_keys(body, position, count, header.base_offset, start_offset, offsets.shards)
                    left -= count
                    if left:
                        yield None
            if header.last_offset >= start_offset:
                offsets.latest_offset = header.last_offset
        offsets.latest_offset = max(offsets.latest_offset, bound - 1)
        yield None


class Pace:
    """Says when a walk over batches has done one step's work.

    The walk itself counts the records of batches with more than `STEP_RECORDS`."""

    __slots__ = ("_batches", "_bytes", "_records")

    def __init__(self) -> None:
        self._batches = self._bytes = self._records = 0

    def is_due(self, header: BatchHeader) -> bool:
        """Count the next batch; returns whether the walk must yield before it."""
        self._batches += 1
        self._bytes += header.length
        self._records += header.record_count
        if self._batches <= STEP_BATCHES and self._bytes <= STEP_BYTES and self._records <= STEP_RECORDS:
            return False
        self._batches, self._bytes, self._records = 1, header.length, header.record_count
        return True


class Pass:
    """The state of one pass over a log: times, the offset map, transactions, and each producer's last batch."""

    __slots__ = ("delete_retention_ms", "end_offset", "last_of_producers", "now_ms", "offsets", "transactions")

    def __init__(
        self, log: PartitionLog, offsets: OffsetMap, aborted: list[AbortedTransaction], end_offset: int, now_ms: int
    ) -> None:
        self.now_ms = now_ms
        self.delete_retention_ms = log.settings.delete_retention_ms
        self.offsets = offsets
        self.transactions = CleanedTransactions(aborted)
        self.end_offset = end_offset
        self.last_of_producers: dict[int, tuple[int, int]] = {}

    def note_producers(self, producers: ProducerStates) -> None:
        """Note the last data offset and the epoch of every producer of the log; -1 if only a marker is known."""
        self.last_of_producers = {
            key: (entry.batches[-1][1] if entry.batches else -1, entry.epoch) for key, entry in producers.items()
        }

    def judge(self, header: BatchHeader, control_type: int | None) -> tuple[int, bool, bool]:
        """`(retention, discard, superfluous)` of a batch.

        `retention` is DELETE, RETAIN_EMPTY or DELETE_EMPTY. `discard` says that all its records go. `superfluous` says
        that it is a marker that no record needs."""
        is_control = header.attributes & CONTROL_BIT
        if is_control:
            superfluous = self.transactions.is_superfluous(header, control_type)
            discard = (
                superfluous and bool(header.attributes & DELETE_HORIZON_BIT) and header.base_timestamp_ms <= self.now_ms
            )
        else:
            superfluous = False
            discard = self.transactions.is_aborted(header)
        if self._is_last_of_producer(header) or header.end_offset == self.end_offset:
            return RETAIN_EMPTY, discard, superfluous
        return DELETE if discard else DELETE_EMPTY, discard, superfluous

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_of_producers.get(header.producer_id)
        if last is None or header.producer_id < 0:
            return False
        last_data_offset, epoch = last
        if last_data_offset >= 0:
            return header.last_offset == last_data_offset
        return bool(header.attributes & CONTROL_BIT) and header.producer_epoch == epoch


def retained(each: Pass, chunk: bytes, begin: int, header: BatchHeader) -> Steps[bytes | Literal[True] | None]:
    """The part of a batch that stays: True for the unchanged batch, None for nothing, or the bytes of a new batch."""
    is_control = header.attributes & CONTROL_BIT
    control_type = control_type_of(header, chunk, begin + HEADER_SIZE_BYTES) if is_control else None
    retention, discard, superfluous = each.judge(header, control_type)
    if retention == DELETE:
        return None
    has_horizon = header.attributes & DELETE_HORIZON_BIT
    if (
        discard
        or not header.record_count
        or (not is_control and not each.offsets.has_newest(header.base_offset, header.last_offset))
    ):
        return empty_batch(header) if retention == RETAIN_EMPTY else None
    body, position = yield from opened(chunk, begin, header)
    count = header.record_count
    if is_control:
        if not superfluous or has_horizon:
            return True
        runs, kept, latest_delta = [(position, begin + header.size_bytes)], count, None
    else:
        found = Retention(
            body,
            position,
            count,
            header.base_offset,
            each.offsets.readers,
            each.offsets.latest_offset,
            tombstones_stay=not has_horizon or each.now_ms < header.base_timestamp_ms,
        )
        while not found.step(STEP_RECORDS):
            yield None
        runs, kept, superfluous, latest_delta = (
            found.runs,
            found.kept,
            found.has_tombstones,
            found.latest_timestamp_delta,
        )
    if not kept:
        return empty_batch(header) if retention == RETAIN_EMPTY else None
    needs_horizon = superfluous and not has_horizon
    if kept == count and not needs_horizon:
        return True
    # A damaged batch must not get a new, valid checksum.
    if crc32c(memoryview(chunk)[begin + ATTRIBUTES_POSITION : begin + header.size_bytes]) != header.crc:
        raise KafkaError(
            errors.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} does not match its checksum"
        )
    return (yield from _rebuilt(each, body, runs, kept, header, latest_delta, needs_horizon))


def _rebuilt(
    each: Pass,
    body: bytes,
    runs: list[tuple[int, int]],
    kept: int,
    header: BatchHeader,
    latest_delta: int | None,
    needs_horizon: bool,
) -> Steps[bytes]:
    attributes, base_timestamp_ms = header.attributes, header.base_timestamp_ms
    records = body[runs[0][0] : runs[0][1]] if len(runs) == 1 else b"".join([body[start:end] for start, end in runs])
    shift, out = 0, None
    if needs_horizon:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp_ms = each.now_ms + each.delete_retention_ms
        shift, out = header.base_timestamp_ms - base_timestamp_ms, bytearray()
    max_timestamp_ms = header.max_timestamp_ms
    if out is not None or latest_delta is None:
        position, left = 0, kept
        while left:
            count = min(left, STEP_RECORDS)
            position, delta = shift_timestamps(records, position, count, shift, out)
            latest_delta = delta if latest_delta is None else max(latest_delta, delta)
            left -= count
            if left:
                yield None
    if latest_delta is not None and not attributes & LOG_APPEND_TIME_BIT:
        max_timestamp_ms = header.base_timestamp_ms + latest_delta
    if out is not None:
        records = bytes(out)
    codec = attributes & CODEC_MASK
    if codec:
        if len(records) > INLINE_BYTES:
            plain = records
            records = yield lambda: compress(codec, plain)
        else:
            records = compress(codec, records)
    return _encode(header, attributes, base_timestamp_ms, max_timestamp_ms, kept, records)


def empty_batch(header: BatchHeader) -> bytes:
    """A batch without records that keeps offsets, epochs and sequences of its header."""
    attributes = header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT | LOG_APPEND_TIME_BIT)
    return _encode(header, attributes, NO_TIMESTAMP, header.max_timestamp_ms, 0, b"")


def _encode(
    header: BatchHeader, attributes: int, base_timestamp_ms: int, max_timestamp_ms: int, count: int, records: bytes
) -> bytes:
    checked = CHECKED_HEADER.pack(
        attributes,
        header.last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        count,
    )
    length = HEADER_SIZE_BYTES - LENGTH_OVERHEAD_BYTES + len(records)
    prefix = PREFIX.pack(header.base_offset, length, header.leader_epoch)
    return b"".join((prefix, bytes((MAGIC,)), _UINT32.pack(crc32c(records, crc32c(checked))), checked, records))


def copy_segment(each: Pass, source: Segment, target: Segment, io: Io, index_interval_bytes: int) -> Steps[None]:
    """Append the batches of `source` that stay to `target`."""
    out: list[bytes] = []
    held = 0
    # Neighbouring batches that stay unchanged are written as one piece: `chunk[kept_from:kept_to]`.
    last_chunk, kept_from, kept_to = b"", 0, 0
    pace = Pace()
    for chunk, begin, header in batches_in(source, 0, io):
        if pace.is_due(header):
            yield None
        stays = yield from retained(each, chunk, begin, header)
        if stays is True:
            if chunk is not last_chunk or kept_to != begin:
                out.append(last_chunk[kept_from:kept_to])
                last_chunk, kept_from = chunk, begin
            kept_to = begin + header.size_bytes
            held += header.size_bytes
            target.track(header, target.size, index_interval_bytes)
            target.size += header.size_bytes
        elif stays is not None:
            out.append(last_chunk[kept_from:kept_to])
            kept_from = kept_to
            out.append(stays)
            held += len(stays)
            target.track(parse_header(stays), target.size, index_interval_bytes)
            target.size += len(stays)
        if held >= STEP_BYTES:
            out.append(last_chunk[kept_from:kept_to])
            kept_from = kept_to
            write(target, out, io)
            held = 0
            yield None
    out.append(last_chunk[kept_from:kept_to])
    write(target, out, io)
    yield None


def write(target: Segment, pieces: list[bytes], io: Io) -> None:
    """Append the collected pieces to the file of `target`, and clear the list."""
    data = b"".join(pieces)
    pieces.clear()
    if data:
        target.file.pwrite(data, target.written_size)
        target.written_size += len(data)
        io.moved_bytes += len(data)
