"""TxnOffsetCommit, versions 0 to 5, with Kafka 4.4 to 6.

Commits the offsets of a group in a producer's transaction (KIP-98). They take effect with the transaction's marker in
the group's partition of `__consumer_offsets`. Topics and partitions that do not exist, and those that the caller may
not read, have their own errors. Version 2 adds leader epochs, 3 the consumer's group metadata, by which a consumer that
is no longer in the group is fenced (KIP-447).

The first commit of a transaction in a partition waits for the word of the transaction coordinator, as in Produce. Up to
version 4 the coordinator says whether the producer has added the group to its transaction; from 5 it adds the group
(KIP-890). TRANSACTION_ABORTABLE is told from version 4, INVALID_TXN_STATE before. Versions 0 and 1 are told
COORDINATOR_NOT_AVAILABLE instead of COORDINATOR_LOAD_IN_PROGRESS. Version 6 names topics by id, and tells
GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH where older ones tell ILLEGAL_GENERATION (KIP-1319).

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import pending_offsets, shard
from pykafkad.coordinator.events import TxnOffsetCommit
from pykafkad.coordinator.partitioning import partition_for
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.log.partition_log import VERIFIED_CLIENT
from pykafkad.log.transactions import begin_verification, check_verified
from pykafkad.wire import messages
from pykafkad.wire.batch import NO_SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.producers import Verification

    Row = messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    Key = tuple[str, bytes]
    Place = tuple[str, int]


_WRITE_TRANSACTIONAL_ID, _READ_GROUP, _READ_TOPIC = RULES["TxnOffsetCommit"]
_Answer = messages.TxnOffsetCommitResponse
_ABORTABLE_SINCE = 4
_ADDS_GROUP_SINCE = 5
_LOADING_SINCE = 2
_IDS_SINCE = 6

# Error of the log or of the transaction coordinator: what the client is told.
_TOLD = {
    errors.PRODUCER_FENCED: errors.INVALID_PRODUCER_EPOCH,
    errors.NETWORK_EXCEPTION: errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_COORDINATOR,
    errors.KAFKA_STORAGE_ERROR: errors.NOT_COORDINATOR,
}


def handle(ctx: Context, request: messages.TxnOffsetCommitRequest) -> Generator[None, None, object]:
    """Absent partitions come first in the answer, each topic once, then the others in the order of the request."""
    if not may(ctx, _WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return pending_offsets.refused(request, _WRITE_TRANSACTIONAL_ID.error)
    if not may(ctx, _READ_GROUP, request.group_id):
        return pending_offsets.refused(request, _READ_GROUP.error)
    refused: dict[Key, Row] = {}
    present = []
    for topic in request.topics:
        code = _name(ctx, topic) or refusal(ctx, _READ_TOPIC, topic.name)
        here: list[messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = []
        missing: list[messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = []
        for each in topic.partitions:
            yield
            (
                here if not code and ctx.metadata.partition(topic.name, each.partition_index) is not None else missing
            ).append(each)
        if missing:
            row = refused.setdefault(
                (topic.name, topic.topic_id),
                _Answer.TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id),
            )
            row.partitions += [
                _Answer.TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=code or errors.UNKNOWN_TOPIC_OR_PARTITION
                )
                for each in missing
            ]
        if here:
            topic.partitions = here
            present.append(topic)
    if not present:
        return _Answer(topics=list(refused.values()))
    request.topics = present
    _Commit(ctx, request, refused).begin()
    return DEFERRED


def _name(ctx: Context, topic: messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic) -> int:
    """Name a topic that the request names by its id. The error code of an id that is unknown, or NONE."""
    if ctx.version < _IDS_SINCE:
        return errors.NONE
    known = ctx.metadata.topic_by_id(topic.topic_id)
    if known is None:
        return errors.UNKNOWN_TOPIC_ID
    topic.name = known.name
    return errors.NONE


class _Commit:
    """One request while the transaction coordinator is asked."""

    __slots__ = ("_ctx", "_log", "_part", "_request", "_verification")

    _log: PartitionLog
    _verification: Verification | str | None

    def __init__(self, ctx: Context, request: messages.TxnOffsetCommitRequest, refused: dict[Key, Row]) -> None:
        self._ctx = ctx
        self._request = request
        composite = ctx.groups.composite_reply(lambda answers: self._merged(refused, answers[0]), ctx.token)
        self._part = composite.part()
        composite.close()

    def begin(self) -> None:
        """Ask the coordinator if it must be asked; the answer of the request leaves by its token."""
        ctx, request = self._ctx, self._request
        if not request.group_id:
            self._refuse(errors.INVALID_GROUP_ID)
            return
        adds = ctx.version >= _ADDS_GROUP_SINCE
        try:
            place = self._find_log()
            if not adds and not ctx.settings.transaction_partition_verification_enable:
                self._verification = VERIFIED_CLIENT
            else:
                self._verification = begin_verification(
                    self._log, request.producer_id, request.producer_epoch, NO_SEQUENCE, adds, ctx.now_ms
                )
        except errors.KafkaError as error:
            self._refuse(error.code)
            return
        except errors.StorageFailure:
            self._refuse(errors.KAFKA_STORAGE_ERROR)
            return
        if self._verification in (None, VERIFIED_CLIENT):
            self._commit()
            return
        ctx.transactions.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [place],
            not adds,
            lambda answers: self._answered(answers[place]),
        )

    def _find_log(self) -> Place:
        """Find the log of the group. Raises `KafkaError` or `StorageFailure`."""
        ctx = self._ctx
        topic = ctx.metadata.topics.get(shard.TOPIC)
        if topic is None:
            raise errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        partition = partition_for(self._request.group_id, len(topic.partitions))
        log = ctx.partitions.get(shard.TOPIC, partition)
        if log is None or log in ctx.partitions.not_led_here:
            raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        self._log = log
        return shard.TOPIC, partition

    def _answered(self, code: int) -> None:
        if code:
            self._refuse(code)
        else:
            self._commit()

    def _commit(self) -> None:
        ctx, request = self._ctx, self._request
        try:
            # A marker may have been written since the coordinator was asked.
            check_verified(self._log, request.producer_id, request.producer_epoch, self._verification)
        except errors.KafkaError as error:
            self._refuse(error.code)
            return
        except errors.StorageFailure:
            self._refuse(errors.KAFKA_STORAGE_ERROR)
            return
        error_code = ctx.groups.shard_for(request.group_id)[1]
        if error_code:
            self._refuse(error_code)
        else:
            ctx.groups.submit(request.group_id, TxnOffsetCommit(self._part, request, ctx.version >= _IDS_SINCE))

    def _refuse(self, code: int) -> None:
        code = _TOLD.get(code, code)
        if code == errors.TRANSACTION_ABORTABLE and self._ctx.version < _ABORTABLE_SINCE:
            code = errors.INVALID_TXN_STATE
        elif code == errors.COORDINATOR_LOAD_IN_PROGRESS and self._ctx.version < _LOADING_SINCE:
            code = errors.COORDINATOR_NOT_AVAILABLE
        token: Any = self._part
        token.deliver(pending_offsets.refused(self._request, code))

    @staticmethod
    def _merged(refused: dict[Key, Row], answer: messages.TxnOffsetCommitResponse) -> messages.TxnOffsetCommitResponse:
        """One answer of the rows that were refused here and those of the coordinators, each topic once."""
        others = []
        for row in answer.topics:
            same = refused.get((row.name, row.topic_id))
            if same is None:
                others.append(row)
            else:
                same.partitions += row.partitions
        return _Answer(topics=[*refused.values(), *others])
