"""Transactions in one partition: checks of their batches, end markers, and aborted transactions for readers (KIP-98).

The transaction coordinator is in another package. The state of ongoing transactions is in `producers.py`, the index of
aborted ones in `txn_index.py`.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log import txn_index
from pykafkad.log.partition_log import COORDINATOR, VERIFIED_CLIENT
from pykafkad.log.producers import END_MARKER_VALUE, ProducerEntry, Verification
from pykafkad.wire.batch import CONTROL_ABORT, CONTROL_COMMIT, NO_PRODUCER_EPOCH, build_batch, control_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.file_slice import FileSlice
    from pykafkad.log.partition_log import AppendResult, PartitionLog

_MAX_EPOCH = 0x7FFF
_NO_COORDINATOR_EPOCH = -1
_NO_VERSION = -1


class TransactionMarker(
    namedtuple(
        "TransactionMarker",
        ("producer_id", "producer_epoch", "coordinator_epoch", "is_commit", "partitions", "transaction_version"),
    )
):
    """The end of one producer's transaction in `partitions`, pairs of topic and partition.

    `coordinator_epoch` is the leader epoch of the coordinator's log. `transaction_version` is that of the transaction:
    from 2 on a marker's epoch is above that of the transaction's batches (KIP-890)."""

    __slots__ = ()

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    partitions: list[tuple[str, int]]
    transaction_version: int


def begin_verification(
    log: PartitionLog, producer_id: int, epoch: int, base_sequence: int, is_version_2: bool, now_ms: int
) -> Verification | None:
    """What a batch that may begin a producer's transaction must be appended with, once the transaction coordinator has
    confirmed the partition. None if the transaction is ongoing here, so that nobody need be asked.

    Batches that wait at the same time have one `Verification`. Raises `KafkaError` INVALID_PRODUCER_EPOCH for an older
    epoch."""
    entry = log.producers.get(producer_id)
    if entry is not None:
        if epoch < entry.epoch:
            raise KafkaError(
                errors.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} of epoch {epoch} is fenced by epoch {entry.epoch}"
                f" in {log.topic}-{log.partition}",
            )
        if entry.transaction_offset >= 0 and entry.epoch == epoch:
            return None
    verifying = log.producers.verifying
    waiting = verifying.get(producer_id)
    if waiting is None:
        waiting = verifying[producer_id] = Verification(epoch, base_sequence, is_version_2, now_ms)
    else:
        waiting.note(epoch, base_sequence)
    return waiting


def check_verified(log: PartitionLog, producer_id: int, epoch: int, verification: str | Verification | None) -> None:
    """Check that a batch of a producer's transaction can be appended, with what `begin_verification` has given.

    Raises `KafkaError` as `check_batch` does."""
    known = log.producers.verifying.get(producer_id)
    is_verified = verification == VERIFIED_CLIENT or (known is not None and verification is known)
    check_batch(log.producers.get(producer_id), producer_id, epoch, True, is_verified, f"{log.topic}-{log.partition}")


def check_batch(
    entry: ProducerEntry | None, producer_id: int, epoch: int, is_transactional: bool, verified: bool, where: str
) -> None:
    """Check that a batch fits the producer's transaction.

    A transaction begins only with a verified batch, and holds only transactional batches. Raises `KafkaError`:
    INVALID_PRODUCER_EPOCH for an older epoch, else INVALID_TXN_STATE.
    """
    ongoing = entry is not None and entry.transaction_offset >= 0
    if is_transactional and (entry is None or not ongoing or entry.epoch != epoch):
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                errors.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} of epoch {epoch} is fenced by epoch {entry.epoch} in {where}",
            )
        if not verified:
            raise KafkaError(
                errors.INVALID_TXN_STATE,
                f"batch of producer {producer_id} for {where} is not part of an ongoing transaction",
            )
    elif ongoing and not is_transactional:
        raise KafkaError(
            errors.INVALID_TXN_STATE,
            f"producer {producer_id} has a transaction in {where}, and this batch is not part of it",
        )


def check_marker(
    entry: ProducerEntry, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int, where: str
) -> None:
    """Check that a marker may end a producer's transaction; raises as `PartitionLog.append_end_marker` does.

    From transaction version 2 on (KIP-890) the epoch rises with each transaction. So a marker of the current epoch is a
    repetition, and is refused while a transaction is ongoing that it could end."""
    known = entry.epoch
    if epoch < known or (
        transaction_version >= 2 and epoch == known and entry.transaction_offset >= 0 and epoch != _MAX_EPOCH
    ):
        raise KafkaError(
            errors.INVALID_PRODUCER_EPOCH,
            f"marker of producer {producer_id} with epoch {epoch} comes after epoch {known} in {where}",
        )
    if entry.coordinator_epoch > coordinator_epoch:
        raise KafkaError(
            errors.TRANSACTION_COORDINATOR_FENCED,
            f"marker of coordinator epoch {coordinator_epoch} comes after {entry.coordinator_epoch} in {where}",
        )


def append_end_marker(
    log: PartitionLog,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    now_ms: int,
    *,
    is_abort: bool,
    transaction_version: int,
) -> AppendResult:
    """See `PartitionLog.append_end_marker`."""
    producers = log.producers
    entry = producers.get(producer_id)
    where = f"{log.topic}-{log.partition}"
    if entry is not None:
        check_marker(entry, producer_id, producer_epoch, coordinator_epoch, transaction_version, where)
    elif producer_epoch < NO_PRODUCER_EPOCH:
        raise KafkaError(errors.INVALID_PRODUCER_EPOCH, f"marker of epoch {producer_epoch} in {where}")
    elif coordinator_epoch < _NO_COORDINATOR_EPOCH:
        raise KafkaError(
            errors.TRANSACTION_COORDINATOR_FENCED, f"marker of coordinator epoch {coordinator_epoch} in {where}"
        )
    if transaction_version == _NO_VERSION:
        # Kafka throws IllegalArgumentException here.
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, f"marker without a transaction version in {where}")
    batch = build_batch(
        [(control_key(CONTROL_ABORT if is_abort else CONTROL_COMMIT), END_MARKER_VALUE.pack(0, coordinator_epoch))],
        timestamp_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    result = log.append(memoryview(batch), now_ms, origin=COORDINATOR)
    producers.forget_ended(log.high_watermark)
    if producer_id < 0:
        return result
    aborted = producers.end(
        producer_id, producer_epoch, coordinator_epoch, result.base_offset, now_ms, is_abort=is_abort
    )
    if aborted is not None:
        log.segments[-1].add_aborted(aborted)
        log.has_aborted = True
    return result


def aborted_in(log: PartitionLog, offset: int, records: FileSlice) -> list[txn_index.AbortedTransaction]:
    """See `PartitionLog.aborted_transactions`. The end of the records is looked up in the offset index, as in Kafka."""
    segments = log.segments
    for at in range(log.segment_at(offset), len(segments)):
        segment = segments[at]
        if segment.file is not records.file:
            continue
        log.touch(segment)
        end = records.position + records.chunk_size
        entry = segment.offset_index.first_from(end)
        if not segment.trusted(entry):
            entry = segment.offset_index.first_from(end)
        if entry is not None:
            end_offset = segment.base_offset + entry[0]
        else:
            end_offset = segments[at + 1].base_offset if at + 1 < len(segments) else log.end_offset
        return txn_index.collect(segments[at:], offset, end_offset)
    return []
