"""The state of a partition's idempotent producers and their transactions (KIP-98, KIP-360).

For every producer id: the epoch, the last five batches, the time of the last one, and the first offset of its ongoing
transaction. A batch with the sequences of one of the five is a duplicate and is answered with the first one's offsets.
Any other batch must continue the last sequence. The state is a function of the log: replaying stored batches with
`track` gives the same state as appending them.

A snapshot file keeps the last batch of each producer only, as in Kafka, so after a restart one batch is known.
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
# The checksum covers everything after the version (2 bytes) and itself (4 bytes).
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
        # The sequence that the next batch must start with. It is -1, which no batch has, while no batch is known.
        self.next_sequence = NO_SEQUENCE
        self.batches: list[tuple[int, int, int, int]] = []
        self.last_timestamp_ms = -1
        self.coordinator_epoch = -1
        # First offset of the ongoing transaction.
        self.transaction_offset = NO_TRANSACTION

    def add(self, epoch: int, base_sequence: int, last_offset: int, offset_delta: int, timestamp_ms: int) -> None:
        """Note an appended batch. A new epoch clears the batches of the old one.

        A batch that a coordinator writes for a producer has no sequence: `base_sequence` is -1.
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
        """(base offset, last offset, timestamp) of the kept batch with exactly these sequences, or None."""
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
    """Check that a batch continues its producer's sequence. `base_sequence` is None for a coordinator's batch.

    Raises `KafkaError`: INVALID_PRODUCER_EPOCH for an older epoch, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, for a
    duplicate older than the kept batches, and for a new epoch that does not start at 0. For an unknown producer any
    first sequence is accepted, because its state may have been deleted with its records (KIP-360).
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


def check_waiting(
    entry: ProducerEntry | None, waiting: Verification, producer_id: int, base_sequence: int, where: str
) -> None:
    """Check the sequence of a producer that has a `Verification`. Raises `KafkaError` OUT_OF_ORDER_SEQUENCE_NUMBER for
    a batch that overtakes one which waited before it, and for the first of a version 2 producer if it is not 0."""
    if waiting.is_version_2 and base_sequence and (entry is None or not entry.batches):
        raise KafkaError(
            errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} begins a transaction with sequence {base_sequence}, not 0, in {where}",
        )
    if base_sequence > waiting.lowest_sequence:
        raise KafkaError(
            errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} sends sequence {base_sequence} before {waiting.lowest_sequence} in {where}",
        )


class Verification:
    """A producer waits for the transaction coordinator's word that this partition belongs to its transaction (KIP-890).

    The object itself is the guard: the word counts only if the producer still has this very object when the batch is
    appended. A marker that was written meanwhile has taken it away. `lowest_sequence` is the lowest first sequence that
    was seen: a batch behind it must not come before it. With `is_version_2` the coordinator adds the partition."""

    __slots__ = ("epoch", "is_version_2", "lowest_sequence", "started_ms")

    def __init__(self, epoch: int, sequence: int, is_version_2: bool, started_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.is_version_2 = is_version_2
        self.started_ms = started_ms

    def note(self, epoch: int, sequence: int) -> None:
        """Another batch waits for the same word."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class ProducerStates(dict[int, ProducerEntry]):
    """The `ProducerEntry` of each producer id of one partition. The append path reads the dict directly.

    `ongoing` maps the first offset of each ongoing transaction to its producer id, in ascending order. `ended` lists
    (first offset, offset of the marker) of ended transactions whose marker the high watermark has not passed yet.
    `verifying` has the `Verification` of each producer whose transaction may begin here; it is not in snapshots.
    """

    __slots__ = ("ended", "ongoing", "verifying")

    def __init__(self) -> None:
        self.ongoing: dict[int, int] = {}
        self.ended: list[tuple[int, int]] = []
        self.verifying: dict[int, Verification] = {}

    def track(self, header: BatchHeader, read: Callable[[], bytes]) -> AbortedTransaction | None:
        """Replay a stored batch. `read()` returns its bytes and is called only for a control batch.

        Returns the transaction that the batch aborts, if any.
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
        """The last batch of the log, at `first_offset`, is transactional. Begin its producer's transaction with it,
        unless one is ongoing."""
        self.verifying.pop(producer_id, None)
        entry = self[producer_id]
        if entry.transaction_offset < 0:
            entry.transaction_offset = first_offset
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
        """End a producer's transaction with a marker; returns the index entry of an aborted one that has records."""
        waiting = self.verifying.get(producer_id)
        # Transaction version 2 raises the epoch with each transaction: with this epoch the next one waits already.
        if waiting is not None and not (waiting.is_version_2 and waiting.epoch == epoch):
            del self.verifying[producer_id]
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
        """The first offset of the earliest transaction whose marker is missing or above the high watermark; at most the
        high watermark."""
        if self.ended:
            self.forget_ended(high_watermark)
        undecided = min((first_offset for first_offset, _ in self.ended), default=high_watermark)
        return min(high_watermark, undecided, next(iter(self.ongoing), high_watermark))

    def forget_ended(self, high_watermark: int) -> None:
        """Forget ended transactions whose marker is below the high watermark."""
        self.ended = [row for row in self.ended if row[1] >= high_watermark]

    # -- expiry and snapshots ------------------------------------------------------------------------------------------

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers whose last batch is `expiration_ms` old and that have no ongoing transaction.

        Returns how many were forgotten."""
        expired = [
            key
            for key, entry in self.items()
            if now_ms - entry.last_timestamp_ms >= expiration_ms and entry.transaction_offset < 0
        ]
        for producer_id in expired:
            del self[producer_id]
        for producer_id, waiting in list(self.verifying.items()):
            if now_ms - waiting.started_ms >= expiration_ms:
                del self.verifying[producer_id]
        return len(expired)

    def forget_before(self, offset: int) -> None:
        """Forget producers whose last known batch lies before `offset`, where batches are missing: later ones of
        theirs, or the ends of their transactions, may be among them."""
        for producer_id in [key for key, entry in self.items() if entry.batches and entry.batches[-1][1] < offset]:
            self.ongoing.pop(self.pop(producer_id).transaction_offset, None)

    def without_sequences(self) -> ProducerStates:
        """A copy with only the producers of ongoing transactions; any next sequence is accepted from the others."""
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
        """Parse a snapshot file's content; None when it is damaged."""
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
