"""DeleteRecords, versions 0 to 2 (KIP-107).

Moves a partition's log start offset up to an offset; -1 means the high watermark. The answer waits until the logs of
all replicas that are alive start there, and tells the low watermark, the lowest of these starts. A partition that does
not get so far in the request's timeout has REQUEST_TIMED_OUT, although its leader has deleted the records. An offset
that is negative or above the high watermark is OFFSET_OUT_OF_RANGE, a topic that is only compacted POLICY_VIOLATION, an
internal topic INVALID_TOPIC_EXCEPTION. The next retention check deletes the files. Version 2 is flexible.

Gaps: a copy of the log that moves to another directory is not waited for.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pykafkad.handlers.context import Context
    from pykafkad.log.partition_log import PartitionLog

    _Deleted = tuple[messages.DeleteRecordsResponse.DeleteRecordsPartitionResult, PartitionLog, int]

(_DELETE_TOPIC,) = RULES["DeleteRecords"]
_Topic = messages.DeleteRecordsResponse.DeleteRecordsTopicResult
_Row = messages.DeleteRecordsResponse.DeleteRecordsPartitionResult

_HIGH_WATERMARK = -1
_INVALID_LOW_WATERMARK = -1
_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def handle(ctx: Context, request: messages.DeleteRecordsRequest) -> Generator[None, None, object]:
    # A partition named twice is served once, with the last offset, as in Kafka.
    topics: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            offsets[asked.partition_index] = asked.offset
            yield
    answer = messages.DeleteRecordsResponse()
    done: list[_Deleted] = []
    for name, offsets in topics.items():
        rows = []
        for index, offset in offsets.items():
            rows.append(_row(ctx, name, index, offset, done))
            yield
        if rows:
            answer.topics.append(_Topic(name=name, partitions=rows))
    if not any(row.low_watermark < offset for row, _, offset in done):
        return answer
    return DelayedDeleteRecords(ctx, answer, done, ctx.now + max(0, request.timeout_ms) / 1000)


def _row(ctx: Context, topic: str, index: int, offset: int, done: list[_Deleted]) -> _Row:
    """The row of a partition. What was deleted is added to those `done`."""
    row = _Row(partition_index=index, low_watermark=_INVALID_LOW_WATERMARK)
    try:
        log = _deletable(ctx, topic, index)
        if offset == _HIGH_WATERMARK:
            offset = log.high_watermark
        log.delete_records(offset)
        row.low_watermark = _low_watermark(ctx, log)
        done.append((row, log, offset))
    except errors.KafkaError as error:
        row.error_code = error.code
    except errors.StorageFailure:
        row.error_code = errors.KAFKA_STORAGE_ERROR
    return row


def _deletable(ctx: Context, topic: str, index: int) -> PartitionLog:
    """The log; raises KafkaError if its records cannot be deleted here."""
    if not may(ctx, _DELETE_TOPIC, topic):
        raise errors.KafkaError(_DELETE_TOPIC.error)
    log = ctx.partitions.get(topic, index)
    absent = ctx.error_of_absent(topic, index) if log is None else errors.NONE
    if absent == errors.UNKNOWN_TOPIC_OR_PARTITION:
        raise errors.KafkaError(absent)
    if topic in _INTERNAL_TOPICS:
        raise errors.KafkaError(errors.INVALID_TOPIC_EXCEPTION)
    if log is None:
        raise errors.KafkaError(absent)
    if log.offline is not None:
        raise log.offline.copy()
    if log in ctx.partitions.not_led_here:
        raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
    policy = log.settings.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise errors.KafkaError(errors.POLICY_VIOLATION)
    return log


def _low_watermark(ctx: Context, log: PartitionLog) -> int:
    brokers = ctx.metadata.brokers
    return log.replica.low_watermark(
        log.log_start_offset, lambda broker: broker in brokers and not brokers[broker].fenced
    )


class DelayedDeleteRecords:
    """Waits until the followers have deleted what the leader has. A partition that has, or cannot any more, is settled;
    it is not looked at again."""

    __slots__ = ("_answer", "_ctx", "_pending", "deadline", "keys")

    ends_early = False

    def __init__(
        self, ctx: Context, answer: messages.DeleteRecordsResponse, pending: list[_Deleted], deadline: float
    ) -> None:
        self._ctx = ctx
        self._answer = answer
        self._pending = pending
        # The metadata says which brokers are alive.
        self.keys = (ctx.metadata, *(log for _, log, _ in pending))
        self.deadline = deadline

    def __repr__(self) -> str:
        return f"DelayedDeleteRecords({len(self._pending)} partitions)"

    def attempt(self, now: float) -> messages.DeleteRecordsResponse | None:
        """The response, if every partition is settled."""
        pending = self._pending
        while pending and self._is_settled(*pending[-1]):
            pending.pop()
        return None if pending else self._answer

    def _is_settled(self, row: _Row, log: PartitionLog, offset: int) -> bool:
        if log.closed:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
        elif log.offline is not None:
            code = errors.KAFKA_STORAGE_ERROR
        elif log in self._ctx.partitions.not_led_here:
            code = errors.NOT_LEADER_OR_FOLLOWER
        else:
            low_watermark = _low_watermark(self._ctx, log)
            if low_watermark < offset:
                return False
            row.low_watermark = low_watermark
            return True
        row.error_code, row.low_watermark = code, _INVALID_LOW_WATERMARK
        return True

    def expire(self, now: float) -> object:
        """The response, in which the partitions that are behind have timed out. A long one comes in steps."""
        if self._ctx.is_long:
            return self._expire_in_steps()
        self._time_out(self._pending)
        return self._answer

    def _expire_in_steps(self) -> Generator[None, None, messages.DeleteRecordsResponse]:
        for each in self._pending:
            yield
            self._time_out((each,))
        return self._answer

    def _time_out(self, pending: Iterable[_Deleted]) -> None:
        for each in pending:
            if not self._is_settled(*each):
                each[0].error_code = errors.REQUEST_TIMED_OUT
