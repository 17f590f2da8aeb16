"""What a producer may do with its transaction: checks of its id and epoch, and what a request to end it comes to."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.transaction import MAX_EPOCH, Transaction, is_exhausted
from pykafkad.coordinator.transaction_records import NO_PRODUCER_ID
from pykafkad.coordinator.transaction_states import COMPLETE_ABORT, COMPLETE_COMMIT, END, END_WITH_BUMP, PREPARED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.wire import messages


def check_adding(transaction: Transaction | None, producer_id: int, epoch: int) -> int:
    """Whether a producer may add to its transaction: NONE or an error code.

    While the transaction before is being ended, id and epoch are not looked at: the producer may know the new id
    already with which it goes on, and asks again."""
    if transaction is not None and transaction.state in PREPARED:
        return errors.CONCURRENT_TRANSACTIONS
    return check_producer(transaction, producer_id, epoch)


def check_producer(transaction: Transaction | None, producer_id: int, epoch: int) -> int:
    """Whether a producer has the transaction: NONE or an error code."""
    if transaction is None or transaction.producer_id != producer_id:
        return errors.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != epoch:
        return errors.PRODUCER_FENCED
    return errors.CONCURRENT_TRANSACTIONS if transaction.state in PREPARED else errors.NONE


def check_expected(transaction: Transaction, request: messages.InitProducerIdRequest) -> int:
    """Whether a producer that goes on has an id that it may have (KIP-360): the present one, or the one before whose
    epochs were used up. That is known only when a transaction that is being ended has ended."""
    if transaction.state in PREPARED:
        return errors.CONCURRENT_TRANSACTIONS
    if request.producer_id in (NO_PRODUCER_ID, transaction.producer_id):
        return errors.NONE
    if request.producer_id == transaction.previous_producer_id and is_exhausted(request.producer_epoch):
        return errors.NONE
    return errors.PRODUCER_FENCED


def end_without_bump(transaction: Transaction, request: messages.EndTxnRequest) -> str | int:
    """The state that follows, or an error code; NONE if the end asked for has been reached."""
    if transaction.producer_id != request.producer_id:
        return errors.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != request.producer_epoch:
        return errors.PRODUCER_FENCED
    return END[transaction.state, request.committed]


def end_with_bump(transaction: Transaction, request: messages.EndTxnRequest) -> str | int:
    """The same for a producer whose epoch rises with every end. While a transaction is being ended, the producer may
    know the id and epoch already with which it goes on."""
    state, epoch = transaction.state, request.producer_epoch
    if state in PREPARED:
        return errors.CONCURRENT_TRANSACTIONS
    is_overflow = (
        transaction.previous_producer_id == request.producer_id
        and epoch == MAX_EPOCH - 1
        and transaction.producer_epoch == 0
    )
    is_bump = transaction.producer_epoch == epoch + 1
    if transaction.producer_id != request.producer_id and not is_overflow:
        return errors.INVALID_PRODUCER_ID_MAPPING
    if state in (COMPLETE_COMMIT, COMPLETE_ABORT):
        is_valid = is_bump or is_overflow or epoch == transaction.producer_epoch
    else:
        is_valid = epoch == transaction.producer_epoch
    if not is_valid:
        return errors.PRODUCER_FENCED
    table = END if is_bump or is_overflow else END_WITH_BUMP
    return table[state, request.committed]
