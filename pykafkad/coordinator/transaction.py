"""One transactional id: its producer, and the transaction that is or was last open (KIP-98).

Only `adopt` changes what must survive a restart. The functions that begin with a verb make the record of the next
state; the caller appends it, and the record is adopted when it is applied."""

from __future__ import annotations

from pykafkad.coordinator.transaction_records import NO_PRODUCER_ID, partitions_of, transaction_state
from pykafkad.coordinator.transaction_states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    STATES,
    TRANSITIONS,
)

NO_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = 2**15 - 1
NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a transaction with two-phase commit (KIP-939): it is never aborted by the coordinator."""

EPOCH_BUMP_SINCE = 2
"""The transaction version from which each end raises the producer's epoch (KIP-890)."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.effects import StoredRecord
    from pykafkad.wire import messages

    Place = tuple[str, int]


def is_exhausted(epoch: int) -> bool:
    """Whether no producer gets a further epoch of its id. The last epoch is kept, so that a producer can always be
    fenced."""
    return epoch >= MAX_EPOCH - 1


class Transaction:
    """The state of one transactional id.

    `previous_producer_id` is the producer id before the last transition, `next_producer_id` the one that a prepared end
    goes on with. `partitions` are those that belong to the transaction, as keys `(topic, partition)`, in the order in
    which they were added. `start_ms` is -1 if none was begun; `update_ms` is when the last record was written.
    `client_version` is the transaction version of the client that asked for the last transition.

    Soft state, which a restart loses: `last_epoch` is the epoch that the last answer replaced, or -1; a producer that
    repeats its request has that one."""

    __slots__ = (
        "client_version",
        "last_epoch",
        "next_producer_id",
        "partitions",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
        "update_ms",
    )

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = NO_PRODUCER_ID
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_EPOCH
        self.last_epoch = NO_EPOCH
        self.timeout_ms = 0
        self.state = EMPTY
        self.partitions: dict[Place, None] = {}
        self.start_ms = NO_TIMESTAMP
        self.update_ms = NO_TIMESTAMP
        self.client_version = 0

    def adopt(self, value: messages.TransactionLogValue) -> None:
        """Take over the state of a record."""
        self.producer_id = value.producer_id
        self.previous_producer_id = value.previous_producer_id
        self.next_producer_id = value.next_producer_id
        self.producer_epoch = value.producer_epoch
        self.timeout_ms = value.transaction_timeout_ms
        self.state = STATES[value.transaction_status]
        self.partitions = partitions_of(value)
        self.start_ms = value.transaction_start_timestamp_ms
        self.update_ms = value.transaction_last_update_timestamp_ms
        self.client_version = value.client_transaction_version

    # The records of the next state.

    def begin_anew(self, producer_id: int, epoch: int, timeout_ms: int, now_ms: int) -> StoredRecord:
        """The record of an initialized producer: no transaction is open."""
        return self._transition(
            EMPTY, producer_id, epoch, (), NO_TIMESTAMP, now_ms, self.client_version, timeout_ms, self.next_producer_id
        )

    def add(self, partitions: list[Place], client_version: int, now_ms: int) -> StoredRecord:
        """The record of a transaction with further partitions; the first of them begin it."""
        start_ms = self.start_ms if self.state is ONGOING else now_ms
        return self._transition(
            ONGOING,
            self.producer_id,
            self.producer_epoch,
            {**self.partitions, **dict.fromkeys(partitions)},
            start_ms,
            now_ms,
            client_version,
            self.timeout_ms,
            self.next_producer_id,
        )

    def prepare(self, state: str, epoch: int, client_version: int, next_producer_id: int, now_ms: int) -> StoredRecord:
        """The record of the decision: PREPARE_COMMIT or PREPARE_ABORT. A transaction that was never begun starts now,
        because a prepared one has a start."""
        start_ms = self.start_ms if self.state is ONGOING else now_ms
        return self._transition(
            state,
            self.producer_id,
            epoch,
            self.partitions,
            start_ms,
            now_ms,
            client_version,
            self.timeout_ms,
            next_producer_id,
        )

    def complete(self, now_ms: int) -> StoredRecord:
        """The record of the end: every partition has its marker."""
        state = COMPLETE_COMMIT if self.state is PREPARE_COMMIT else COMPLETE_ABORT
        producer_id, epoch = self.producer_id, self.producer_epoch
        if self.client_version >= EPOCH_BUMP_SINCE and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = self.next_producer_id, 0
        return self._transition(
            state,
            producer_id,
            epoch,
            (),
            self.start_ms,
            now_ms,
            self.client_version,
            self.timeout_ms,
            NO_PRODUCER_ID,
        )

    def repeat(self, now_ms: int) -> StoredRecord:
        """The record of an end that has been reached, once more."""
        return transaction_state(
            self.transactional_id,
            state=self.state,
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            timeout_ms=self.timeout_ms,
            partitions=(),
            start_ms=self.start_ms,
            update_ms=now_ms,
            client_version=self.client_version,
        )

    def _transition(
        self,
        state: str,
        producer_id: int,
        epoch: int,
        partitions: dict[Place, None] | tuple[()],
        start_ms: int,
        now_ms: int,
        client_version: int,
        timeout_ms: int,
        next_producer_id: int,
    ) -> StoredRecord:
        assert state in TRANSITIONS[self.state], f"{self.state} to {state}"
        return transaction_state(
            self.transactional_id,
            state=state,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=epoch,
            timeout_ms=timeout_ms,
            partitions=partitions,
            start_ms=start_ms,
            update_ms=now_ms,
            client_version=client_version,
        )

    # Questions.

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction is open for longer than its timeout."""
        return self.state is ONGOING and self.timeout_ms != NO_TIMEOUT_MS and self.start_ms + self.timeout_ms < now_ms
