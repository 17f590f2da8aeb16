"""ListOffsets, versions 1 to 11, with Kafka 3.x from 0 (`list_offsets_before.py`).

The first record at or after a timestamp; offset and timestamp are -1 if there is none below the end that the caller may
read. Special times: -1 the end (the high watermark; with read_committed the last stable offset; for replicas and tools
the log end offset), -2 the start, -3 the record with the largest timestamp (version 7, KIP-734), -4 the local start (8,
KIP-405), -5 the last tiered offset (9, KIP-1005), -6 the first offset not yet tiered (11, KIP-1023). Without tiered
storage, as here, Kafka answers -4 like -2, and -5 and -6 with offset -1. A special time that the version does not have
is UNSUPPORTED_VERSION. Version 2 adds the isolation level, 4 leader epochs (KIP-320), 10 a timeout for remote reads,
which never applies.

A partition named twice is answered once, with INVALID_REQUEST. A topic without partitions in the request is left out.
An unknown isolation level is UNKNOWN_SERVER_ERROR for every partition.

A leader whose high watermark is below the start of its epoch answers a consumer that asks for the end, or for a time
behind it, with OFFSET_NOT_AVAILABLE, before version 5 LEADER_NOT_AVAILABLE (KIP-207).

Gaps: no tiered storage: the local log is the whole log.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context
    from pykafkad.log.partition_log import PartitionLog

(_DESCRIBE_TOPIC,) = RULES["ListOffsets"]
_Topic = messages.ListOffsetsResponse.ListOffsetsTopicResponse
_Row = messages.ListOffsetsResponse.ListOffsetsPartitionResponse

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
# Special time: the first version that has it.
_SPECIAL_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_CONSUMER = -1
_NOT_AVAILABLE_SINCE = 5
_DEBUGGING = -2
_READ_COMMITTED = 1
_ISOLATION_LEVELS = (0, _READ_COMMITTED)
_NO_EPOCH = -1


def handle(ctx: Context, request: messages.ListOffsetsRequest) -> Generator[None, None, object]:
    if request.isolation_level not in _ISOLATION_LEVELS:
        return _refused(request, errors.UNKNOWN_SERVER_ERROR)
    twice = yield from _named_twice(request.topics)
    release = ctx.settings.release
    is_repeated = release is not None and "ListOffsets.repeats_rows" in release.answers
    topics: dict[str, dict[int | tuple[int, int], _Row]] = {}
    for topic in request.topics:
        allowed = may(ctx, _DESCRIBE_TOPIC, topic.name)
        rows = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            yield
            index = asked.partition_index
            row = rows[(index, len(rows)) if is_repeated and index in rows else index] = _Row(partition_index=index)
            if not allowed:
                row.error_code = _DESCRIBE_TOPIC.error
            elif (topic.name, asked.partition_index) in twice and ctx.version:
                row.error_code = errors.INVALID_REQUEST
            elif asked.timestamp < 0 and _is_not_known(ctx, asked.timestamp):
                row.error_code = errors.UNSUPPORTED_VERSION
            else:
                _answer(ctx, request, topic.name, asked, row)
    return messages.ListOffsetsResponse(
        topics=[_Topic(name=name, partitions=list(rows.values())) for name, rows in topics.items() if rows]
    )


def _is_not_known(ctx: Context, time_ms: int) -> bool:
    """Whether a special time is not one of the request's version. Not every release asks that in version 0."""
    release = ctx.settings.release
    if not ctx.version and release is not None and "ListOffsets.any_time_in_version_0" in release.answers:
        return False
    return ctx.version < _SPECIAL_SINCE.get(time_ms, 1 << 15)


def _refused(request: messages.ListOffsetsRequest, error_code: int) -> object:
    topics = [
        _Topic(
            name=topic.name,
            partitions=[_Row(partition_index=each.partition_index, error_code=error_code) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    return messages.ListOffsetsResponse(topics=topics)


def _named_twice(
    topics: list[messages.ListOffsetsRequest.ListOffsetsTopic],
) -> Generator[None, None, set[tuple[str, int]]]:
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in topics:
        for asked in topic.partitions:
            key = topic.name, asked.partition_index
            (twice if key in seen else seen).add(key)
            yield
    return twice


def _answer(
    ctx: Context,
    request: messages.ListOffsetsRequest,
    topic: str,
    asked: messages.ListOffsetsRequest.ListOffsetsPartition,
    row: _Row,
) -> None:
    log = ctx.partitions.get(topic, asked.partition_index)
    if log is None:
        row.error_code = ctx.error_of_absent(topic, asked.partition_index)
        return
    try:
        row.error_code = leader_error(
            ctx, log, asked.current_leader_epoch, from_leader=request.replica_id != _DEBUGGING
        )
        if row.error_code:
            return
        if not ctx.version:
            from pykafkad.handlers.list_offsets_before import offsets_before

            is_consumer = request.replica_id == _CONSUMER
            most = asked.max_num_offsets
            row.old_style_offsets = offsets_before(log, asked.timestamp, most, ctx.now_ms, for_consumer=is_consumer)
            return
        found = _find(log, asked.timestamp, _last_fetchable(request, log))
        if request.replica_id == _CONSUMER and _is_behind(log) and (found is None or asked.timestamp == LATEST):
            row.error_code = (
                errors.OFFSET_NOT_AVAILABLE if ctx.version >= _NOT_AVAILABLE_SINCE else errors.LEADER_NOT_AVAILABLE
            )
            return
    except errors.StorageFailure:
        row.error_code = errors.KAFKA_STORAGE_ERROR
        return
    except errors.KafkaError:
        # A stored batch cannot be decompressed.
        row.error_code = errors.UNKNOWN_SERVER_ERROR
        return
    if found is not None:
        row.offset, row.timestamp, leader_epoch = found
        if ctx.version >= 4:
            row.leader_epoch = leader_epoch


def leader_error(ctx: Context, log: PartitionLog, current_leader_epoch: int, *, from_leader: bool = True) -> int:
    """The error of a caller whose leader epoch differs from the log's (KIP-320; -1 asks for no check), or that takes
    this broker for the leader. KAFKA_STORAGE_ERROR, for a log whose directory is offline, comes first."""
    if log.closed and log.offline is not None:
        return errors.KAFKA_STORAGE_ERROR
    not_led_here = ctx.partitions.not_led_here
    epoch = not_led_here.get(log, log.leader_epoch)
    if current_leader_epoch not in (_NO_EPOCH, epoch):
        return errors.FENCED_LEADER_EPOCH if current_leader_epoch < epoch else errors.UNKNOWN_LEADER_EPOCH
    return errors.NOT_LEADER_OR_FOLLOWER if from_leader and log in not_led_here else errors.NONE


def _is_behind(log: PartitionLog) -> bool:
    """Whether a new leader does not know yet that everything is committed which was before its epoch (KIP-207): the
    high watermark may be below one that consumers have seen."""
    return not log.replica.commits_alone and log.replica.epoch_start_offset > log.high_watermark


def _last_fetchable(request: messages.ListOffsetsRequest, log: PartitionLog) -> int:
    if request.replica_id != _CONSUMER:
        return log.written_end_offset
    return log.last_stable_offset if request.isolation_level == _READ_COMMITTED else log.high_watermark


def _find(log: PartitionLog, timestamp_ms: int, last_fetchable: int) -> tuple[int, int, int] | None:
    """(offset, timestamp, leader epoch), or None if no record matches."""
    if timestamp_ms == LATEST:
        return last_fetchable, -1, log.leader_epoch
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return log.log_start_offset, -1, log.epochs.epoch_for(log.log_start_offset)
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    found = log.max_timestamp_offset() if timestamp_ms == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp_ms)
    return found if found is not None and found[0] < last_fetchable else None
