"""DescribeShareGroupOffsets, versions 0 to 1 (KIP-932).

The start offsets of share partitions, and from version 1 the lag: the records behind the start offset whose delivery is
not completed (KIP-1226). Without topics in the request, all partitions of the group that have delivery state. What has
none has the start offset -1.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors, uuids
from pykafkad.coordinator.group_types import SHARE
from pykafkad.coordinator.share_state import coordinator_key
from pykafkad.coordinator.share_state_events import ReadSummary
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.metadata.features import SHARE_VERSION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.handlers.context import Context

_DESCRIBE_GROUP, _DESCRIBE_TOPIC = RULES["DescribeShareGroupOffsets"]
_Group = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_Topic = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
_Row = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
_NO_OFFSET = -1
_NO_LAG = -1


def handle(ctx: Context, request: messages.DescribeShareGroupOffsetsRequest) -> Generator[None, None, object]:
    groups: list[_Group] = []
    share = ctx.share_groups
    # The rows that wait, in the order of the answers: for each that of the share coordinator, and the partition's end.
    waiting: list[tuple[str, _Row]] = []
    composite = share.states.composite_reply(lambda answers: _answer(groups, waiting, answers), ctx.token)
    for asked in request.groups:
        group = _Group(group_id=asked.group_id)
        groups.append(group)
        group.error_code, group.error_message = _error(ctx, asked)
        for topic in () if group.error_code else _topics(ctx, asked, group):
            for row in topic.partitions:
                waiting.append((topic.topic_name, row))
                _ask(ctx, (asked.group_id, topic.topic_id, row.partition_index), composite.part())
                _find_end(ctx, topic.topic_name, row.partition_index, composite.part())
                yield
    composite.close()
    return DEFERRED


def _error(ctx: Context, asked: Any) -> tuple[int, str | None]:
    if not ctx.metadata.features.get(SHARE_VERSION, 0):
        return errors.UNSUPPORTED_VERSION, None
    if error := refusal(ctx, _DESCRIBE_GROUP, asked.group_id):
        return error, None
    if asked.topics == []:
        return errors.NONE, None
    error = ctx.groups.shard_for(asked.group_id)[1] if asked.topics is None else errors.NONE
    return error, errors.message(error) if error else None


def _topics(ctx: Context, asked: Any, group: _Group) -> list[_Topic]:
    """The topics of which the share coordinator is asked; they and the others are added to the group."""
    wanted: list[_Topic] = []
    others: list[_Topic] = []
    if asked.topics is None:
        known = ctx.groups.shard_for(asked.group_id)[0].groups.get(asked.group_id)
        for topic_id, (_, partitions) in () if known is None or known.type != SHARE else known.initialized.items():
            found = ctx.metadata.topic_by_id(topic_id)
            if found is not None and may(ctx, _DESCRIBE_TOPIC, found.name):
                wanted.append(_topic(found.name, topic_id, sorted(partitions)))
    for topic in asked.topics or ():
        found = ctx.metadata.topics.get(topic.topic_name)
        if not may(ctx, _DESCRIBE_TOPIC, topic.topic_name):
            row = _topic(topic.topic_name, bytes(16), topic.partitions)
            for each in row.partitions:
                each.error_code = _DESCRIBE_TOPIC.error
                each.error_message = errors.message(_DESCRIBE_TOPIC.error)
            others.append(row)
        elif found is None:
            others.append(_topic(topic.topic_name, bytes(16), topic.partitions))
        else:
            wanted.append(_topic(topic.topic_name, found.id, topic.partitions))
    group.topics = wanted + others
    return wanted


def _topic(name: str, topic_id: bytes, partitions: list[int]) -> _Topic:
    rows = [_Row(partition_index=index, start_offset=_NO_OFFSET, lag=_NO_LAG) for index in partitions]
    return _Topic(topic_name=name, topic_id=topic_id, partitions=rows)


def _ask(ctx: Context, key: tuple[str, bytes, int], part: Any) -> None:
    share = ctx.share_groups
    name = coordinator_key(key[0], uuids.to_text(key[1]), key[2])
    asked = messages.ReadShareGroupStateSummaryRequest.PartitionData(partition=key[2], leader_epoch=-1)
    error = share.states.shard_for(name)[1]
    if error == errors.NOT_COORDINATOR and share.has_state_elsewhere(key):
        share.store(ReadSummary, key, asked, part.deliver)
    elif error:
        part.deliver(messages.ReadShareGroupStateSummaryResponse.PartitionResult(error_code=error))
    else:
        share.states.submit(name, ReadSummary(key, asked, share.is_known(key), part))


def _find_end(ctx: Context, topic: str, index: int, part: Any) -> None:
    """Tell an error code and the high watermark."""
    log = ctx.partitions.get(topic, index)
    if log is not None:
        part.deliver((errors.NONE, log.high_watermark))
        return
    code = ctx.error_of_absent(topic, index)
    if code != errors.NOT_LEADER_OR_FOLLOWER or not ctx.share_groups.find_end_elsewhere(topic, index, part.deliver):
        part.deliver((code, _NO_OFFSET))


def _answer(groups: list[_Group], waiting: list[tuple[str, _Row]], answers: list[Any]) -> object:
    for (_, row), summary, (code, end_offset) in zip(waiting, answers[::2], answers[1::2], strict=True):
        if summary.error_code:
            continue
        row.start_offset = summary.start_offset
        row.leader_epoch = summary.leader_epoch
        if summary.start_offset == _NO_OFFSET or summary.delivery_complete_count < 0:
            continue
        if code:
            row.error_code = code
            row.error_message = errors.message(row.error_code)
            row.start_offset, row.leader_epoch, row.lag = 0, 0, _NO_LAG
        else:
            row.lag = end_offset - summary.start_offset - summary.delivery_complete_count
    return messages.DescribeShareGroupOffsetsResponse(groups=groups)
