"""What a partition knows of its idempotent producers and of their transactions (KIP-98, KIP-360).

For every producer id: the epoch, the last five batches, the time of the last one, where its ongoing transaction began.
A batch that equals one of the five is a duplicate and gets its first answer; any other must follow the last sequence.
The state is a function of the log: `track` replays a batch that is in the log already, and gives the same state as the
live append.

Snapshots, as Kafka's, keep the last batch of each producer, so five become one over a restart, as in Kafka.
"""

from __future__ import annotations

from struct import Struct

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log.txn_index import AbortedTransaction
from pykafkad.wire.batch import (
    CONTROL_ABORT,
    CONTROL_BIT,
    CONTROL_KEY,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    advance_sequence,
    crc32c,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.wire.batch import BatchHeader

# Batches kept per producer: clients send at most five requests to a partition at once (KIP-98).
BATCHES_KEPT = 5

_SNAPSHOT_HEADER = Struct(">hIi")
# The checksum covers everything behind version (2) and itself (4).
_CHECKED_FROM = 6
# Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of a
# transaction.
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1

NO_TRANSACTION = -1
# Value of a control record that ends a transaction: version and epoch of the coordinator.
END_MARKER_VALUE = Struct(">hi")


class ProducerEntry:
    """State of one producer id. `batches`: up to five `(last_sequence, last_offset, offset_delta, timestamp_ms)`."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "next_sequence", "transaction_offset")

    def __init__(self, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.epoch = epoch
        # What the next batch must start with; -1 while no batch is known, which no batch can match.
        self.next_sequence = NO_SEQUENCE
        self.batches: list[tuple[int, int, int, int]] = []
        self.last_timestamp_ms = -1
        self.coordinator_epoch = -1
        # First offset of the ongoing transaction.
        self.transaction_offset = NO_TRANSACTION

    def add(self, epoch: int, base_sequence: int, last_offset: int, offset_delta: int, timestamp_ms: int) -> None:
        """Account for a batch that is appended; a new epoch forgets the batches of the old one.

        What a coordinator writes in a producer's name has no sequence: -1.
        """
        batches = self.batches
        if epoch != self.epoch:
            self.epoch = epoch
            batches.clear()
        last_sequence = (base_sequence + offset_delta) & MAX_SEQUENCE if base_sequence >= 0 else NO_SEQUENCE
        batches.append((last_sequence, last_offset, offset_delta, timestamp_ms))
        if len(batches) > BATCHES_KEPT:
            del batches[0]
        self.next_sequence = (last_sequence + 1) & MAX_SEQUENCE
        self.last_timestamp_ms = timestamp_ms

    def find_duplicate(self, epoch: int, base_sequence: int, offset_delta: int) -> tuple[int, int, int] | None:
        """(base offset, last offset, timestamp) of the kept batch with exactly these sequences; None without one."""
        if epoch == self.epoch:
            last_sequence = advance_sequence(base_sequence, offset_delta)
            for kept_last_sequence, last_offset, kept_delta, timestamp_ms in self.batches:
                if kept_last_sequence == last_sequence and kept_delta == offset_delta:
                    return last_offset - kept_delta, last_offset, timestamp_ms
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerEntry) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ProducerEntry(epoch={self.epoch}, next_sequence={self.next_sequence}, batches={self.batches})"


def check_sequence(
    entry: ProducerEntry | None, producer_id: int, epoch: int, base_sequence: int | None, where: str
) -> None:
    """Whether a batch may follow what is known of its producer. `base_sequence` None: a coordinator's, which has none.

    Raises `KafkaError`: INVALID_PRODUCER_EPOCH for an older epoch, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, a repetition
    older than the kept batches, or a new epoch that does not start at 0. Without state any first sequence is accepted
    (KIP-360: its state may have been deleted with its records).
    """
    if entry is None or entry.epoch == NO_PRODUCER_EPOCH:
        return
    if epoch < entry.epoch:
        raise KafkaError(
            errors.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id} of epoch {epoch} is fenced by epoch {entry.epoch} in {where}",
        )
    if base_sequence is None:
        return
    if epoch != entry.epoch:
        if base_sequence:
            raise KafkaError(
                errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} starts epoch {epoch} with sequence {base_sequence}, not 0, in {where}",
            )
    elif base_sequence != entry.next_sequence and not (base_sequence == 0 and not entry.batches):
        raise KafkaError(
            errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} sends sequence {base_sequence}, {entry.next_sequence} is due in {where}",
        )


class ProducerStates(dict[int, ProducerEntry]):
    """Producer id -> `ProducerEntry` of one partition; the dict is read directly on the append path.

    `ongoing` is first offset -> producer id of the transactions without an end, ascending. `ended` lists (first offset,
    offset of the marker) of those whose marker the high watermark has not passed yet.
    """

    __slots__ = ("ended", "ongoing")

    def __init__(self) -> None:
        self.ongoing: dict[int, int] = {}
        self.ended: list[tuple[int, int]] = []

    def track(self, header: BatchHeader, read: Callable[[], bytes]) -> AbortedTransaction | None:
        """Replay a stored batch; `read()` gives its bytes, which are asked for only when it is a control batch.

        Returns the transaction that it aborted, if any.
        """
        producer_id = header.producer_id
        if producer_id < 0:
            return None
        if header.attributes & CONTROL_BIT:
            return self._track_marker(header, read) if header.record_count else None
        entry = self.get(producer_id)
        if entry is None:
            entry = self[producer_id] = ProducerEntry()
        entry.add(
            header.producer_epoch,
            header.base_sequence,
            header.last_offset,
            header.last_offset_delta,
            header.max_timestamp_ms,
        )
        if header.attributes & TRANSACTIONAL_BIT and entry.transaction_offset < 0:
            self.begin(producer_id, header.base_offset)
        return None

    def _track_marker(self, header: BatchHeader, read: Callable[[], bytes]) -> AbortedTransaction | None:
        from pykafkad.wire.records import iterate_records

        marker = next(iterate_records(memoryview(read()), header))
        _, control_type = CONTROL_KEY.unpack_from(marker.key or b"")
        _, coordinator_epoch = END_MARKER_VALUE.unpack_from(marker.value or b"")
        return self.end(
            header.producer_id,
            header.producer_epoch,
            coordinator_epoch,
            header.base_offset,
            marker.timestamp_ms,
            is_abort=control_type == CONTROL_ABORT,
        )

    # -- transactions --------------------------------------------------------------------------------------------------

    def begin(self, producer_id: int, first_offset: int) -> None:
        """A producer's transaction begins with the batch at `first_offset`, which is the last of the log."""
        self[producer_id].transaction_offset = first_offset
        self.ongoing[first_offset] = producer_id

    def end(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        marker_offset: int,
        timestamp_ms: int,
        *,
        is_abort: bool,
    ) -> AbortedTransaction | None:
        """A marker ends a producer's transaction; what is to be remembered of an aborted one that had records."""
        entry = self.get(producer_id)
        if entry is None:
            entry = self[producer_id] = ProducerEntry()
        if epoch != entry.epoch:
            entry.epoch = epoch
            entry.batches.clear()
            entry.next_sequence = 0
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        first_offset, entry.transaction_offset = entry.transaction_offset, NO_TRANSACTION
        if first_offset < 0:
            return None
        del self.ongoing[first_offset]
        self.ended.append((first_offset, marker_offset))
        if not is_abort:
            return None
        return AbortedTransaction(producer_id, first_offset, marker_offset, next(iter(self.ongoing), marker_offset + 1))

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset at or below the high watermark that belongs to a transaction which is not decided, or whose
        marker is above the high watermark; else the high watermark."""
        if self.ended:
            self.forget_ended(high_watermark)
        undecided = min((first_offset for first_offset, _ in self.ended), default=high_watermark)
        return min(high_watermark, undecided, next(iter(self.ongoing), high_watermark))

    def forget_ended(self, high_watermark: int) -> None:
        """Transactions whose marker everybody may read are decided for good."""
        self.ended = [row for row in self.ended if row[1] >= high_watermark]

    # -- what survives -------------------------------------------------------------------------------------------------

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers whose last batch is `producer.id.expiration.ms` old, but for ongoing transactions; how many
        went."""
        expired = [
            key
            for key, entry in self.items()
            if now_ms - entry.last_timestamp_ms >= expiration_ms and entry.transaction_offset < 0
        ]
        for producer_id in expired:
            del self[producer_id]
        return len(expired)

    def forget_before(self, offset: int) -> None:
        """Forget producers whose last batch lies before `offset`, but for ongoing transactions."""
        for producer_id in [
            key
            for key, entry in self.items()
            if entry.batches and entry.batches[-1][1] < offset and entry.transaction_offset < 0
        ]:
            del self[producer_id]

    def without_sequences(self) -> ProducerStates:
        """Only the producers of ongoing transactions: of all others any next sequence is accepted."""
        states = ProducerStates()
        states.update((producer_id, entry) for producer_id, entry in self.items() if entry.transaction_offset >= 0)
        return states

    def to_snapshot(self) -> bytes:
        """The file's content."""
        body = bytearray(_SNAPSHOT_HEADER.size)
        for producer_id, entry in self.items():
            last_sequence, last_offset, offset_delta, _ = (
                entry.batches[-1] if entry.batches else (NO_SEQUENCE, -1, 0, -1)
            )
            body += _SNAPSHOT_ENTRY.pack(
                producer_id,
                entry.epoch,
                last_sequence,
                last_offset,
                offset_delta,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.transaction_offset,
            )
        _SNAPSHOT_HEADER.pack_into(body, 0, SNAPSHOT_VERSION, 0, len(self))
        _SNAPSHOT_HEADER.pack_into(body, 0, SNAPSHOT_VERSION, crc32c(memoryview(body)[_CHECKED_FROM:]), len(self))
        return bytes(body)

    @classmethod
    def from_snapshot(cls, data: bytes) -> ProducerStates | None:
        """Read a file's content; None when it is damaged, so that an older one and the log take its place."""
        if len(data) < _SNAPSHOT_HEADER.size:
            return None
        version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
        if version != SNAPSHOT_VERSION or crc32c(data[_CHECKED_FROM:]) != crc:
            return None
        if len(data) != _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size:
            return None
        states = cls()
        for row in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEADER.size :]):
            (
                producer_id,
                epoch,
                last_sequence,
                last_offset,
                offset_delta,
                timestamp_ms,
                coordinator_epoch,
                transaction_offset,
            ) = row
            entry = states[producer_id] = ProducerEntry(epoch)
            entry.last_timestamp_ms = timestamp_ms
            entry.coordinator_epoch = coordinator_epoch
            if last_offset >= 0:
                entry.batches.append((last_sequence, last_offset, offset_delta, timestamp_ms))
            entry.next_sequence = advance_sequence(last_sequence, 1)
            if transaction_offset >= 0:
                states.begin(producer_id, transaction_offset)
        states.ongoing = dict(sorted(states.ongoing.items()))
        return states
