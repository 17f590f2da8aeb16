"""Produce with a transactional id: which partitions may hold batches of the transaction (KIP-98, KIP-890).

The first batch of a transaction in a partition waits for the word of the transaction coordinator. Up to version 11 the
coordinator says whether the producer has added the partition to its transaction; from 12 it adds the partition. Later
batches of the transaction are appended without that. Without `transaction.partition.verification.enable` versions up
to 11 do not ask.

What the coordinator answers becomes the error of the row. Errors that older clients would take badly are
NOT_ENOUGH_REPLICAS, which makes them send again. TRANSACTION_ABORTABLE is told from version 11, INVALID_TXN_STATE
before. A coordinator that has not ended the producer's last transaction yet is asked again for a short time from
version 12 (`add.partitions.to.txn.retry.backoff.ms`).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import produce
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.handlers.produce import ErrorWithText
from pykafkad.log.append_rules import is_transactional
from pykafkad.log.partition_log import TRANSACTION, VERIFIED_CLIENT
from pykafkad.log.transactions import begin_verification
from pykafkad.wire.batch import parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.log.append_rules import Checked, Writable
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.producers import Verification
    from pykafkad.wire import messages
    from pykafkad.wire.batch import BatchHeader

    Place = tuple[str, int]

_, _WRITE_TRANSACTIONAL_ID = RULES["Produce"]
_ABORTABLE_SINCE = 11
ADDS_PARTITIONS_SINCE = 12

_NOT_ALLOWED = errors.KafkaError(_WRITE_TRANSACTIONAL_ID.error)
_SEVERAL_PRODUCERS = ErrorWithText(
    errors.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
)
# Answers of a coordinator that could not be asked. Older clients do not send again after them.
_NOT_ASKED = frozenset(
    (
        errors.NETWORK_EXCEPTION,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
    )
)


def handle(ctx: Context, request: messages.ProduceRequest) -> object | None:
    """As `produce.handle`; DEFERRED while the transaction coordinator is asked."""
    batches = list(_transactional(request))
    if not batches:
        return produce.handle(ctx, request, produce.Appending(ctx, request))
    if not may(ctx, _WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return produce.handle(ctx, request, _Refusing(ctx, request, _NOT_ALLOWED))
    return _Verifying(ctx, request).begin()


def _transactional(
    request: messages.ProduceRequest,
) -> Iterator[tuple[messages.ProduceRequest.TopicProduceData, messages.ProduceRequest.PartitionProduceData]]:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records: Any = data.records
            if records is not None and is_transactional(records):
                yield topic, data


class _Refusing(produce.Appending):
    """Refuses a request as a whole."""

    __slots__ = ("_error",)

    def __init__(self, ctx: Context, request: messages.ProduceRequest, error: errors.KafkaError) -> None:
        super().__init__(ctx, request)
        self._error = error

    def try_data(self, row: Any, topic: Any, data: Any, by_id: bool) -> None:
        self.refused(row, self._error, None)


class _Appending(produce.Appending):
    """Appends batches with what the coordinator has said of their partitions."""

    __slots__ = ("_refusals", "_verifications", "origin")

    def __init__(
        self,
        ctx: Context,
        request: messages.ProduceRequest,
        verifications: dict[PartitionLog, str | Verification],
        refusals: dict[Place, errors.KafkaError],
    ) -> None:
        super().__init__(ctx, request)
        self._verifications = verifications
        self._refusals = refusals

    def try_data(self, row: Any, topic: Any, data: Any, by_id: bool) -> None:
        error = self._refusals.get((topic.name, data.index))
        if error is not None:
            self.refused(row, error, None)
        else:
            super().try_data(row, topic, data, by_id)

    def _append(self, row: Any, log: PartitionLog, records: Writable, checked: Checked | None) -> None:
        self.origin = self._verifications.get(log, TRANSACTION)
        super()._append(row, log, records, checked)
        # The connection may have ended while the coordinator was asked.
        self._ctx.written_without_answer(log)


class _Verifying:
    """One request while its partitions are looked up and the coordinator is asked."""

    __slots__ = ("_appending", "_asked_since", "_ctx", "_is_waiting", "_refusals", "_request", "_verifications")

    def __init__(self, ctx: Context, request: messages.ProduceRequest) -> None:
        self._ctx = ctx
        self._request = request
        self._asked_since = ctx.now
        self._is_waiting = False
        # None until the coordinator has answered.
        self._appending: produce.Appending | None = None
        self._refusals: dict[Place, errors.KafkaError] = {}
        self._verifications: dict[PartitionLog, str | Verification] = {}

    def begin(self) -> object | None:
        """The answer if the coordinator gave its word at once, else DEFERRED."""
        self._ask()
        if self._appending is not None:
            return self._append()
        self._is_waiting = True
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                records: Any = data.records
                if records is not None:
                    # The receive buffer is used for other requests meanwhile.
                    data.records = memoryview(bytearray(records))
        return DEFERRED

    def _append(self) -> object | None:
        return produce.handle(self._ctx, self._request, self._appending)

    def _decide(self, appending: produce.Appending) -> None:
        self._appending = appending
        if self._is_waiting:
            self._ctx.resume(self._append)

    def _ask(self) -> None:
        """Ask the coordinator about the partitions that need it."""
        ctx, request = self._ctx, self._request
        self._refusals.clear()
        self._verifications.clear()
        producers: set[tuple[int, int]] = set()
        asked: list[Place] = []
        for place, log, header in self._batches():
            producers.add((header.producer_id, header.producer_epoch))
            if len(producers) > 1:
                self._decide(_Refusing(ctx, request, _SEVERAL_PRODUCERS))
                return
            try:
                if self._begin_verification(log, header):
                    asked.append(place)
            except errors.KafkaError as error:
                self._refusals[place] = errors.KafkaError(error.code, error.text)
            except errors.StorageFailure as failure:
                ctx.storage_failed(log, failure)
                self._refusals[place] = errors.KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure))
        if not asked:
            self._decide(_Appending(ctx, request, self._verifications, self._refusals))
            return
        ((producer_id, epoch),) = producers
        assert request.transactional_id is not None
        verify_only = ctx.version < ADDS_PARTITIONS_SINCE
        ctx.transactions.add_partitions(
            request.transactional_id, producer_id, epoch, asked, verify_only, self._answered
        )

    def _batches(self) -> Iterator[tuple[Place, PartitionLog, BatchHeader]]:
        """The transactional batches whose partition can be written; the others are refused when they are appended."""
        ctx, request = self._ctx, self._request
        by_id = ctx.version >= 13
        for topic, data in _transactional(request):
            records: Any = data.records
            header = parse_header(records)
            if header.producer_id < 0:
                continue
            try:
                log = produce.log_of(ctx, request, topic, data.index, by_id)
            except errors.KafkaError:
                continue
            yield (topic.name, data.index), log, header

    def _begin_verification(self, log: PartitionLog, header: BatchHeader) -> bool:
        """Whether the coordinator must be asked about the partition."""
        ctx = self._ctx
        adds = ctx.version >= ADDS_PARTITIONS_SINCE
        if not adds and not ctx.settings.transaction_partition_verification_enable:
            self._verifications[log] = VERIFIED_CLIENT
            return False
        verification = begin_verification(
            log, header.producer_id, header.producer_epoch, header.base_sequence, adds, ctx.now_ms
        )
        if verification is not None:
            self._verifications[log] = verification
        return verification is not None

    def _answered(self, answers: dict[Place, int]) -> None:
        ctx, settings = self._ctx, self._ctx.settings
        if ctx.version >= ADDS_PARTITIONS_SINCE and errors.CONCURRENT_TRANSACTIONS in answers.values():
            limit_ms = min(settings.add_partitions_to_txn_retry_backoff_max_ms, settings.request_timeout_ms)
            if (ctx.now - self._asked_since) * 1000 < limit_ms:
                ctx.call_later(settings.add_partitions_to_txn_retry_backoff_ms / 1000, self._ask)
                return
        for place, code in answers.items():
            if code:
                self._refusals[place] = _error(ctx.version, code)
        self._decide(_Appending(ctx, self._request, self._verifications, self._refusals))


def _error(version: int, code: int) -> errors.KafkaError:
    """The error of a row for what the coordinator has answered."""
    if code == errors.PRODUCER_FENCED:
        return errors.KafkaError(errors.INVALID_PRODUCER_EPOCH)
    if code == errors.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE:
        code = errors.INVALID_TXN_STATE
    if code == errors.INVALID_TXN_STATE:
        return ErrorWithText(code, "Partition was not added to the transaction")
    if code in _NOT_ASKED or (code == errors.CONCURRENT_TRANSACTIONS and version < ADDS_PARTITIONS_SINCE):
        return ErrorWithText(
            errors.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {errors.name(code)}",
        )
    return errors.KafkaError(code)
