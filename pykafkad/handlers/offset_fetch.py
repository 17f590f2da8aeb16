"""OffsetFetch, versions 1 to 10, with Kafka 3.x from 0.

The committed offsets of the requested partitions, or (version 2 and later, null topics) of all that the group has
committed. An offset that was never committed is -1 without an error. An error of the whole group stands in every
partition in version 1, at the top from version 2, and in the group's row from version 8, where one request may name
several groups (KIP-709). Version 5 adds leader epochs, 7 `require_stable`, 9 member id and epoch; 10 has topic ids
instead of names.

With `require_stable` a partition for which a transaction has committed an offset, and has not ended, is
UNSTABLE_OFFSET_COMMIT (KIP-447). Version 0 read from ZooKeeper (see
`offset_commit.py`), which had no metadata, and
where an offset that was never committed is UNKNOWN_TOPIC_OR_PARTITION.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

NO_OFFSET = -1
NO_TOPIC_ID = bytes(16)
AT_ONCE = 500

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.handlers.context import Context


_DESCRIBE_GROUP, _DESCRIBE_TOPIC, _SEE_TOPIC = RULES["OffsetFetch"]
_Group = messages.OffsetFetchRequest.OffsetFetchRequestGroup
_Topics = messages.OffsetFetchRequest.OffsetFetchRequestTopics
_GroupAnswer = messages.OffsetFetchResponse.OffsetFetchResponseGroup
_Row = messages.OffsetFetchResponse.OffsetFetchResponseTopics


def handle(ctx: Context, request: messages.OffsetFetchRequest) -> Generator[None, None, object]:
    if ctx.version >= 8:
        groups = []
        for group in request.groups:
            groups.append((yield from _group(ctx, group, request.require_stable)))
        return messages.OffsetFetchResponse(groups=groups)
    topics = None
    if request.topics is not None:
        topics = [
            messages.OffsetFetchRequest.OffsetFetchRequestTopics(
                name=topic.name, partition_indexes=topic.partition_indexes
            )
            for topic in request.topics
        ]
    answer = yield from _group(
        ctx,
        messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=request.group_id, topics=topics),
        request.require_stable,
    )
    if not ctx.version:
        for topic in answer.topics:
            for partition in topic.partitions:
                partition.metadata = ""
                if partition.committed_offset == NO_OFFSET and not partition.error_code:
                    partition.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
    return messages.OffsetFetchResponse(
        error_code=answer.error_code,
        topics=[
            messages.OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name, partitions=[_as_before_groups(partition) for partition in topic.partitions]
            )
            for topic in answer.topics
        ],
    )


def _as_before_groups(
    partition: messages.OffsetFetchResponse.OffsetFetchResponsePartitions,
) -> messages.OffsetFetchResponse.OffsetFetchResponsePartition:
    return messages.OffsetFetchResponse.OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


def _group(ctx: Context, group: _Group, require_stable: bool) -> Generator[None, None, _GroupAnswer]:
    yield
    if not may(ctx, _DESCRIBE_GROUP, group.group_id):
        return _group_error(ctx.version, group, _DESCRIBE_GROUP.error)
    shard, error_code = _shard(ctx, group)
    if not ctx.version and not (ctx.settings.release and ctx.settings.release.has_zookeeper):
        error_code = errors.UNSUPPORTED_VERSION
    if error_code:
        return _group_error(ctx.version, group, error_code)
    if group.topics is None:
        rows = _visible(ctx, _look_up(ctx, shard, group.group_id, None, require_stable))
    else:
        asked, refused = _checked(ctx, group.topics)
        rows = []
        for topic in asked:
            row, error_code = yield from _topic(ctx, group, topic, require_stable)
            if error_code:
                return _group_error(ctx.version, group, error_code)
            rows.append(row)
        rows += refused
    return messages.OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group.group_id, topics=rows)


def _shard(ctx: Context, group: _Group) -> tuple[GroupShard, int]:
    """The shard of a group that may be read and NONE, or an error code. It holds until the next yield: the group may be
    deleted, or coordinated elsewhere, since then."""
    shard, error_code = ctx.groups.shard_for(group.group_id)
    return shard, error_code or shard.check_fetch(group.group_id, group.member_id, group.member_epoch)


def _topic(
    ctx: Context, group: _Group, topic: _Topics, require_stable: bool
) -> Generator[None, None, tuple[_Row, int]]:
    """The row of one topic and NONE, in steps of a limited number of partitions; or an error code of the group."""
    row = _Row(name=topic.name, topic_id=topic.topic_id)
    indexes = topic.partition_indexes
    for start in range(0, len(indexes) or 1, AT_ONCE):
        yield
        shard, error_code = _shard(ctx, group)
        if error_code:
            return row, error_code
        part = _Topics(name=topic.name, topic_id=topic.topic_id, partition_indexes=indexes[start : start + AT_ONCE])
        row.partitions += _look_up(ctx, shard, group.group_id, [part], require_stable)[0].partitions
    return row, errors.NONE


def _look_up(
    ctx: Context, shard: GroupShard, group_id: str, topics: list[_Topics] | None, require_stable: bool
) -> list[_Row]:
    # A commit since the last step may not be synced yet.
    ctx.groups.read(group_id, ctx.token)
    return shard.fetch_offsets(group_id, topics, require_stable)


def _group_error(version: int, group: _Group, error_code: int) -> _GroupAnswer:
    if version >= 2:
        return messages.OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group.group_id, error_code=error_code)
    return messages.OffsetFetchResponse.OffsetFetchResponseGroup(
        group_id=group.group_id, topics=[_refused(topic, error_code) for topic in group.topics or ()]
    )


def _refused(topic: _Topics, error_code: int) -> _Row:
    return messages.OffsetFetchResponse.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            messages.OffsetFetchResponse.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=error_code
            )
            for index in topic.partition_indexes
        ],
    )


def _checked(ctx: Context, topics: list[_Topics]) -> tuple[list[_Topics], list[_Row]]:
    """The topics to look up, and the rows of those with an unknown id or that the caller may not describe."""
    asked, refused = [], []
    for topic in topics:
        if ctx.version >= 10:
            known = ctx.metadata.topic_by_id(topic.topic_id)
            if known is None:
                refused.append(_refused(topic, errors.UNKNOWN_TOPIC_ID))
                continue
            topic.name = known.name
        if may(ctx, _DESCRIBE_TOPIC, topic.name):
            asked.append(topic)
        else:
            refused.append(_refused(topic, _DESCRIBE_TOPIC.error))
    return asked, refused


def _visible(ctx: Context, rows: list[_Row]) -> list[_Row]:
    """The committed topics that the caller may describe. By id, only topics that exist can be named."""
    rows = [row for row in rows if may(ctx, _SEE_TOPIC, row.name)]
    if ctx.version < 10:
        return rows
    topics = ctx.metadata.topics
    rows = [row for row in rows if row.name in topics]
    for row in rows:
        row.topic_id = topics[row.name].id
    return rows
