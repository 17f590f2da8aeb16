"""The transactional ids of one partition of `__transaction_state`, as a pure state machine (KIP-98, KIP-890).

`step(event, now, now_ms)` returns effects and changes only soft state. State that must survive a restart changes only
in `apply(record)`. The shell calls `apply` for every record of an `Append` right after the local write and before the
next step. The loader calls it for every record of the log. What follows an `Append` in the list of effects happens when
the append is durable. When a write fails, the shell drops the shard, and the partition is loaded again.

A transaction ends in three steps: the decision is written (PrepareCommit, PrepareAbort) and the producer is answered;
the markers are written into the partitions, again and again until each has its marker; the end is written
(CompleteCommit, CompleteAbort). After a load, prepared transactions go on with the second step.

Reads (`describe`, `listed`) answer at once from the applied state.
"""

from __future__ import annotations

from itertools import islice

from pykafkad import errors
from pykafkad.coordinator import events, loading, transaction_events as asked, transaction_records
from pykafkad.coordinator.partitioning import TRANSACTION_TOPIC
from pykafkad.coordinator.transaction import (
    EPOCH_BUMP_SINCE,
    MAX_EPOCH,
    NO_EPOCH,
    Transaction,
    is_exhausted,
)
from pykafkad.coordinator.transaction_records import NO_PRODUCER_ID
from pykafkad.coordinator.transaction_rules import (
    check_adding,
    check_expected,
    check_producer,
    end_with_bump,
    end_without_bump,
)
from pykafkad.coordinator.transaction_states import EXPIRING, ONGOING, PREPARE_ABORT, PREPARE_COMMIT, PREPARED
from pykafkad.effects import TOLD_PER_STEP, Append, Reply, SetTimer, StoredRecord, Tell, TimerFired, WriteMarkers
from pykafkad.wire import messages

TIMER_TIMEOUTS = ("timeouts",)
TIMER_EXPIRY = ("expiry",)
TIMER_MARKERS = "markers"
RETRY_MARKERS_SECONDS = 0.1
"""The pause before markers that could not be written are tried again."""
RETRY_MARKERS_SECONDS_EACH = 0.0002
"""How much longer the pause is for each transaction that ends: many that cannot end must not keep the broker busy."""

RECORDS_PER_STEP = 200
"""The number of records that are loaded in one step."""

MANY_PARTITIONS = 1_000
BATCH_OVERHEAD_BYTES = 100
"""The headers of a batch and of its one record."""

RECORDS_PER_APPEND = 1_000
"""The most tombstones of one step of an expiry check."""
EXPIRY_PAUSE_SECONDS = 0.05
"""The pause before an expiry check goes on that has found so many: other work is done meanwhile."""

_DONE_WITHOUT_MARKER = (errors.NONE, errors.UNSUPPORTED_VERSION, errors.UNSUPPORTED_FOR_MESSAGE_FORMAT)
"""Answers after which a partition needs no further marker. The old formats hold no transaction."""

_GIVEN_UP = (errors.INVALID_PRODUCER_EPOCH, errors.TRANSACTION_COORDINATOR_FENCED)
"""Answers that say that another coordinator has gone on with the producer."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record

    Place = tuple[str, int]


class TransactionShard:
    """The transactional ids of one partition. `settings` are the broker's.

    `take_producer_id()` gives an unused producer id, or None if none is left at the moment. `transaction_version()` is
    the finalized level of the feature."""

    __slots__ = (
        "_checks_expiry",
        "_checks_timeouts",
        "ending",
        "log",
        "partition",
        "settings",
        "take_producer_id",
        "transaction_version",
        "transactions",
    )

    def __init__(
        self,
        partition: int,
        settings: Settings,
        take_producer_id: Callable[[], int | None],
        transaction_version: Callable[[], int],
    ) -> None:
        self.partition = partition
        self.log = (TRANSACTION_TOPIC, partition)
        self.settings = settings
        self.take_producer_id = take_producer_id
        self.transaction_version = transaction_version
        self.transactions: dict[str, Transaction] = {}
        self.ending: dict[str, dict[Place, None]] = {}
        """Soft state: the partitions of prepared transactions that have no marker yet."""
        self._checks_timeouts = False
        self._checks_expiry = False

    # Hard state.

    def apply(self, record: StoredRecord, offset: int = -1) -> None:
        """Apply one record of the log to the hard state. Where it stands there does not matter."""
        key: Any = record.key
        value: Any = record.value
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            return
        transaction = self.transactions.get(key.transactional_id)
        if transaction is None:
            transaction = self.transactions[key.transactional_id] = Transaction(key.transactional_id)
        transaction.adopt(value)

    def load(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> None:
        """Apply a whole log, oldest batch first. The shell sends the event `Loaded` afterwards. Raises `ProtocolError`
        for bytes that are no record of this topic."""
        for _ in self.load_in_steps(batches):
            pass

    def load_in_steps(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> Iterator[None]:
        """Like `load`, as a generator: between its steps the shell can do other work. Only the last record of each id
        is decoded."""
        latest = loading.LatestByKey()
        for count, record in enumerate(loading.committed_records(batches)):
            if record is not None:
                latest.add(record)
            if count % RECORDS_PER_STEP == 0:
                yield
        for count, (key, value) in enumerate(latest.items()):
            decoded = transaction_records.decode(key, value)
            if decoded is not None:
                self.apply(decoded)
            if count % RECORDS_PER_STEP == 0:
                yield

    # Events.

    def step(self, event: object, now: float, now_ms: int) -> list[object]:
        """The effects of one event of `transaction_events`, of `Loaded`, `Resigned`, `TopicsDeleted` or
        `TimerFired`."""
        return _STEPS[type(event)](self, event, now, now_ms)

    def _append(self, *records: StoredRecord) -> Append:
        return Append(self.log, list(records))

    # Producers begin.

    def _init_producer_id(self, event: asked.InitProducerId, now: float, now_ms: int) -> list[object]:
        request = event.request
        transaction = self.transactions.get(request.transactional_id or "")
        if transaction is None:
            return self._first_producer(event, now, now_ms)
        code = check_expected(transaction, request)
        if code:
            return [_producer_error(event, code)]
        if transaction.state is ONGOING:
            # The open transaction is aborted first. The producer asks again, and then gets an epoch of its own.
            effects, code = self._abort(transaction, now_ms)
            return [*effects, _producer_error(event, code or errors.CONCURRENT_TRANSACTIONS)]
        return self._next_producer(transaction, event, now_ms)

    def _first_producer(self, event: asked.InitProducerId, now: float, now_ms: int) -> list[object]:
        request = event.request
        producer_id = self.take_producer_id()
        if producer_id is None:
            return [_producer_error(event, errors.COORDINATOR_LOAD_IN_PROGRESS)]
        transaction = Transaction(request.transactional_id or "")
        transaction.producer_id = producer_id
        record = transaction.begin_anew(producer_id, 0, request.transaction_timeout_ms, now_ms)
        response = messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        return [self._append(record), Reply(event.token, response), *self._check_expiry(now)]

    def _next_producer(self, transaction: Transaction, event: asked.InitProducerId, now_ms: int) -> list[object]:
        request = event.request
        current = transaction.producer_epoch
        expected = request.producer_epoch if request.producer_id != NO_PRODUCER_ID else None
        producer_id, epoch, last = transaction.producer_id, current + 1, NO_EPOCH
        if is_exhausted(current) and expected in (None, current):
            fresh = self.take_producer_id()
            if fresh is None:
                return [_producer_error(event, errors.COORDINATOR_LOAD_IN_PROGRESS)]
            producer_id, epoch = fresh, 0
            last = NO_EPOCH if expected is None else current
        elif is_exhausted(current):
            # Kafka throws IllegalStateException here.
            return [_producer_error(event, errors.UNKNOWN_SERVER_ERROR)]
        elif expected == current:
            last = current
        elif expected is not None and expected == transaction.last_epoch:
            # The answer to the same request was lost: it is given again.
            epoch, last = current, transaction.last_epoch
        elif expected is not None:
            return [_producer_error(event, errors.PRODUCER_FENCED)]
        transaction.last_epoch = last
        record = transaction.begin_anew(producer_id, epoch, request.transaction_timeout_ms, now_ms)
        response = messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)
        return [self._append(record), Reply(event.token, response)]

    # Partitions.

    def _add_partitions(self, event: asked.AddPartitions, now: float, now_ms: int) -> list[object]:
        transaction = self.transactions.get(event.transactional_id)
        code = check_adding(transaction, event.producer_id, event.producer_epoch)
        if code or transaction is None:
            return [Reply(event.token, code)]
        if transaction.state is ONGOING and all(each in transaction.partitions for each in event.partitions):
            return [Reply(event.token, errors.NONE)]
        record = transaction.add(event.partitions, event.client_version, now_ms)
        if not self._fits(record):
            return [Reply(event.token, errors.UNKNOWN_SERVER_ERROR)]
        return [self._append(record), Reply(event.token, errors.NONE), *self._check_timeouts(now)]

    def _fits(self, record: StoredRecord) -> bool:
        """Whether a transaction's record fits into one batch. It is encoded only when it has very many partitions."""
        value: Any = record.value
        if sum(len(row.partition_ids) for row in value.transaction_partitions) < MANY_PARTITIONS:
            return True
        key, encoded = transaction_records.encode(record, self.transaction_version())
        return len(key) + len(encoded or b"") + BATCH_OVERHEAD_BYTES <= self.settings.message_max_bytes

    def _verify_partitions(self, event: asked.VerifyPartitions, now: float, now_ms: int) -> list[object]:
        transaction = self.transactions.get(event.transactional_id)
        code = check_producer(transaction, event.producer_id, event.producer_epoch)
        if code or transaction is None:
            return [Reply(event.token, dict.fromkeys(event.partitions, code))]
        known = transaction.partitions
        answer = {each: errors.NONE if each in known else errors.TRANSACTION_ABORTABLE for each in event.partitions}
        return [Reply(event.token, answer)]

    # The end of a transaction.

    def _end_txn(self, event: asked.EndTxn, now: float, now_ms: int) -> list[object]:
        request = event.request
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None:
            return [_end_error(event, errors.INVALID_PRODUCER_ID_MAPPING)]
        with_bump = event.client_version >= EPOCH_BUMP_SINCE
        outcome = end_with_bump(transaction, request) if with_bump else end_without_bump(transaction, request)
        if outcome == errors.NONE and with_bump:
            # A repeated request: the producer goes on as the lost answer said.
            return [_end_answer(event, transaction.producer_id, transaction.producer_epoch)]
        if outcome == errors.NONE:
            # It may be the end of the transaction before: a coordinator that was replaced, and has not heard of that,
            # does not know the one that is meant. Kafka answers at once. A replaced coordinator commits no record.
            return [self._append(transaction.repeat(now_ms)), _end_answer(event, NO_PRODUCER_ID, NO_EPOCH)]
        if not isinstance(outcome, str):
            return [_end_error(event, outcome)]
        if not with_bump:
            effects = self._prepare(transaction, outcome, transaction.producer_epoch, 0, NO_PRODUCER_ID, now_ms)
            return [effects[0], _end_answer(event, NO_PRODUCER_ID, NO_EPOCH), *effects[1:]]
        if transaction.producer_epoch == MAX_EPOCH and outcome is PREPARE_COMMIT:
            # An epoch that only a fencing coordinator has. Kafka throws IllegalArgumentException here; an abort works.
            return [_end_error(event, errors.UNKNOWN_SERVER_ERROR)]
        next_id = NO_PRODUCER_ID
        if is_exhausted(transaction.producer_epoch):
            fresh = self.take_producer_id()
            if fresh is None:
                return [_end_error(event, errors.COORDINATOR_LOAD_IN_PROGRESS)]
            next_id = fresh
        epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)
        transaction.last_epoch = transaction.producer_epoch
        effects = self._prepare(transaction, outcome, epoch, event.client_version, next_id, now_ms)
        goes_on = (transaction.producer_id, epoch) if next_id == NO_PRODUCER_ID else (next_id, 0)
        return [effects[0], _end_answer(event, *goes_on), *effects[1:]]

    def _abort(self, transaction: Transaction, now_ms: int) -> tuple[list[object], int]:
        """Fence the producer and abort its open transaction: the effects and NONE, or none of them and an error."""
        epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)
        next_id, version = NO_PRODUCER_ID, self.transaction_version()
        if version < EPOCH_BUMP_SINCE:
            version, last = 0, NO_EPOCH
        else:
            last = transaction.producer_epoch
            if is_exhausted(last):
                fresh = self.take_producer_id()
                if fresh is None:
                    return [], errors.COORDINATOR_LOAD_IN_PROGRESS
                next_id = fresh
        transaction.last_epoch = last
        return self._prepare(transaction, PREPARE_ABORT, epoch, version, next_id, now_ms), errors.NONE

    def _prepare(
        self, transaction: Transaction, state: str, epoch: int, client_version: int, next_producer_id: int, now_ms: int
    ) -> list[object]:
        """The decision, as an `Append`, and the markers."""
        record = transaction.prepare(state, epoch, client_version, next_producer_id, now_ms)
        partitions = list(transaction.partitions)
        self.ending[transaction.transactional_id] = dict.fromkeys(partitions)
        markers = WriteMarkers(
            transaction.transactional_id,
            transaction.producer_id,
            epoch,
            state is PREPARE_COMMIT,
            partitions,
            client_version,
        )
        return [self._append(record), markers]

    def _markers(self, transaction: Transaction) -> WriteMarkers:
        """The markers that a prepared transaction still lacks."""
        return WriteMarkers(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.state is PREPARE_COMMIT,
            list(self.ending[transaction.transactional_id]),
            transaction.client_version,
        )

    def _markers_written(self, event: asked.MarkersWritten, now: float, now_ms: int) -> list[object]:
        transaction = self.transactions.get(event.transactional_id)
        left = self.ending.get(event.transactional_id)
        if transaction is None or left is None or transaction.state not in PREPARED:
            return []
        if (transaction.producer_id, transaction.producer_epoch) != (event.producer_id, event.producer_epoch):
            return []
        if any(code in _GIVEN_UP for code in event.errors.values()):
            return []
        for place, code in event.errors.items():
            if code in _DONE_WITHOUT_MARKER:
                left.pop(place, None)
        if left:
            pause = RETRY_MARKERS_SECONDS + RETRY_MARKERS_SECONDS_EACH * len(self.ending)
            return [SetTimer((TIMER_MARKERS, event.transactional_id), now + pause)]
        del self.ending[event.transactional_id]
        return [self._append(transaction.complete(now_ms))]

    # Start, end and timers.

    def _loaded(self, event: events.Loaded, now: float, now_ms: int) -> list[object]:
        effects: list[object] = []
        for transaction in self.transactions.values():
            if transaction.state in PREPARED:
                self.ending[transaction.transactional_id] = dict.fromkeys(transaction.partitions)
                effects.append(self._markers(transaction))
        if any(transaction.state is ONGOING for transaction in self.transactions.values()):
            effects.extend(self._check_timeouts(now))
        if self.transactions:
            effects.extend(self._check_expiry(now))
        return effects

    def _nothing(self, event: object, now: float, now_ms: int) -> list[object]:
        return []

    def _timer_fired(self, event: TimerFired, now: float, now_ms: int) -> list[object]:
        if event.key == TIMER_TIMEOUTS:
            return self._abort_timed_out(now, now_ms)
        if event.key == TIMER_EXPIRY:
            return self._expire(now, now_ms)
        key: Any = event.key
        transaction = self.transactions.get(key[1])
        if transaction is None or key[1] not in self.ending:
            return []
        return [self._markers(transaction)]

    def _check_timeouts(self, now: float) -> list[object]:
        """Look for transactions past their timeout again and again, as long as one is open."""
        if self._checks_timeouts:
            return []
        self._checks_timeouts = True
        interval_ms = self.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        return [SetTimer(TIMER_TIMEOUTS, now + interval_ms / 1000)]

    def _abort_timed_out(self, now: float, now_ms: int) -> list[object]:
        self._checks_timeouts = False
        effects: list[object] = []
        are_open = False
        aborted = 0
        for transaction in self.transactions.values():
            if transaction.state is ONGOING:
                are_open = True
                if transaction.is_timed_out(now_ms):
                    ended = self._abort(transaction, now_ms)[0]
                    effects.extend(ended)
                    aborted += bool(ended)
                    if ended and aborted <= TOLD_PER_STEP:
                        effects.append(_timed_out(transaction))
        if aborted > TOLD_PER_STEP:
            effects.append(Tell("more-changes", {"count": aborted - TOLD_PER_STEP}))
        return [*effects, *self._check_timeouts(now)] if are_open else effects

    def _check_expiry(self, now: float, is_behind: bool = False) -> list[object]:
        """Look for unused transactional ids again and again, as long as there are ids."""
        if self._checks_expiry:
            return []
        self._checks_expiry = True
        interval_ms = self.settings.transaction_remove_expired_transaction_cleanup_interval_ms
        return [SetTimer(TIMER_EXPIRY, now + (EXPIRY_PAUSE_SECONDS if is_behind else interval_ms / 1000))]

    def _expire(self, now: float, now_ms: int) -> list[object]:
        """Forget the ids that were not used for `transactional.id.expiration.ms` and have no open transaction. If there
        are many, later steps go on."""
        self._checks_expiry = False
        since_ms = now_ms - self.settings.transactional_id_expiration_ms
        expired = (
            transaction_records.tombstone(transaction.transactional_id)
            for transaction in self.transactions.values()
            if transaction.state in EXPIRING and transaction.update_ms <= since_ms
        )
        records = list(islice(expired, RECORDS_PER_APPEND))
        effects: list[object] = [self._append(*records)] if records else []
        if len(records) < len(self.transactions):
            effects.extend(self._check_expiry(now, is_behind=len(records) == RECORDS_PER_APPEND))
        return effects

    # Reads.

    def describe(self, transactional_id: str) -> messages.DescribeTransactionsResponse.TransactionState | None:
        """The row of DescribeTransactions, or None for an unknown id. A prepared transaction shows the partitions that
        have no marker yet."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return None
        row = messages.DescribeTransactionsResponse
        by_topic: dict[str, list[int]] = {}
        for topic, partition in self.ending.get(transactional_id, transaction.partitions):
            by_topic.setdefault(topic, []).append(partition)
        return row.TransactionState(
            transactional_id=transactional_id,
            transaction_state=transaction.state,
            transaction_timeout_ms=transaction.timeout_ms,
            transaction_start_time_ms=transaction.start_ms,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            topics=[row.TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()],
        )


# Answers.


def _producer_error(event: asked.InitProducerId, code: int) -> Reply:
    if code == errors.PRODUCER_FENCED and not event.knows_fenced:
        code = errors.INVALID_PRODUCER_EPOCH
    return Reply(event.token, messages.InitProducerIdResponse(error_code=code, producer_epoch=NO_EPOCH))


def _timed_out(transaction: Transaction) -> Tell:
    """What people are told of a transaction that was open for too long, now that it is being aborted."""
    fields: dict[str, object] = {
        "transactional_id": transaction.transactional_id,
        "producer_id": transaction.producer_id,
        "timeout_ms": transaction.timeout_ms,
        "partitions": len(transaction.partitions),
    }
    return Tell("transaction-timed-out", fields)


def _end_error(event: asked.EndTxn, code: int) -> Reply:
    if code == errors.PRODUCER_FENCED and not event.knows_fenced:
        code = errors.INVALID_PRODUCER_EPOCH
    return Reply(event.token, messages.EndTxnResponse(error_code=code))


def _end_answer(event: asked.EndTxn, producer_id: int, epoch: int) -> Reply:
    return Reply(event.token, messages.EndTxnResponse(producer_id=producer_id, producer_epoch=epoch))


_STEPS: dict[type, Callable[[TransactionShard, Any, float, int], list[object]]] = {
    asked.InitProducerId: TransactionShard._init_producer_id,
    asked.AddPartitions: TransactionShard._add_partitions,
    asked.VerifyPartitions: TransactionShard._verify_partitions,
    asked.EndTxn: TransactionShard._end_txn,
    asked.MarkersWritten: TransactionShard._markers_written,
    events.Loaded: TransactionShard._loaded,
    events.Resigned: TransactionShard._nothing,
    events.TopicsDeleted: TransactionShard._nothing,
    events.MetadataChanged: TransactionShard._nothing,
    TimerFired: TransactionShard._timer_fired,
}
