"""OffsetCommit, versions 2 to 10, with Kafka 3.x from 0.

Commits the offsets of a group member. With generation -1 and no member id it commits those of a consumer that assigns
its own partitions, or of an administrator. Topics and partitions that do not exist, and those that the caller may not
read, have their own errors; the others are written as one batch. Versions 2 to 4 may name a retention time; later ones
leave it to the broker (KIP-211). Version 6 adds leader epochs, 7 static members; from 9 an unknown group is
GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION; 10 has topic ids instead of names. Version 0 wrote to ZooKeeper;
acting as 2.8 its offsets are kept with the others, acting as 3.x it is UNSUPPORTED_VERSION, as there without ZooKeeper.
Version 1 may name the time of the commit.

Members of KIP-848 need version 9: the generation is then their epoch (else STALE_MEMBER_EPOCH).

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import offsets
from pykafkad.coordinator.events import OffsetCommit
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


_READ_GROUP, _READ_TOPIC = RULES["OffsetCommit"]
_Topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic
_Partition = messages.OffsetCommitRequest.OffsetCommitRequestPartition
_Row = messages.OffsetCommitResponse.OffsetCommitResponseTopic


def handle(ctx: Context, request: messages.OffsetCommitRequest) -> Generator[None, None, object]:
    group_id = request.group_id
    if not may(ctx, _READ_GROUP, group_id):
        return offsets.refused(request, _READ_GROUP.error)
    refused: dict[tuple[str, bytes], _Row] = {}
    accepted = []
    for topic in request.topics:
        remaining = yield from _checked(ctx, topic, refused)
        if remaining is not None:
            accepted.append(remaining)
    # A topic may have been deleted between the steps. It must not get offsets, which a new topic of its name would
    # inherit.
    request.topics = []
    for topic in accepted:
        if ctx.metadata.topic_by_id(topic.topic_id) is not None:
            request.topics.append(topic)
        else:
            _refuse(
                refused,
                topic,
                topic.partitions,
                errors.UNKNOWN_TOPIC_OR_PARTITION if ctx.version < 10 else errors.UNKNOWN_TOPIC_ID,
            )
    if not request.topics:
        return messages.OffsetCommitResponse(topics=list(refused.values()))
    error_code = ctx.groups.shard_for(group_id)[1]
    if not ctx.version and not (ctx.settings.release and ctx.settings.release.has_zookeeper):
        error_code = errors.UNSUPPORTED_VERSION
    if error_code:
        return _merged(refused, offsets.refused(request, error_code))
    event = OffsetCommit(ctx.token, request, group_id_not_found=ctx.version >= 9)
    if not refused:
        return ctx.groups.submit(group_id, event)
    return ctx.groups.submit_many([(group_id, event)], lambda answers: _merged(refused, answers[0]), ctx.token)


def _checked(
    ctx: Context, topic: _Topic, refused: dict[tuple[str, bytes], _Row]
) -> Generator[None, None, _Topic | None]:
    """The topic with name, id and the partitions that exist; rows for the others are added to `refused`."""
    image = ctx.metadata
    if ctx.version >= 10:
        known = image.topic_by_id(topic.topic_id)
        if known is None:
            _refuse(refused, topic, topic.partitions, errors.UNKNOWN_TOPIC_ID)
            return None
        topic.name = known.name
    else:
        known = image.topics.get(topic.name)
    if not may(ctx, _READ_TOPIC, topic.name):
        _refuse(refused, topic, topic.partitions, _READ_TOPIC.error)
        return None
    if known is None:
        _refuse(refused, topic, topic.partitions, errors.UNKNOWN_TOPIC_OR_PARTITION)
        return None
    topic.topic_id = known.id
    present: list[_Partition] = []
    missing: list[_Partition] = []
    for each in topic.partitions:
        (missing if image.partition(topic.name, each.partition_index) is None else present).append(each)
        yield
    if missing:
        _refuse(refused, topic, missing, errors.UNKNOWN_TOPIC_OR_PARTITION)
        topic.partitions = present
    return topic if topic.partitions else None


def _refuse(
    refused: dict[tuple[str, bytes], _Row], topic: _Topic, partitions: list[_Partition], error_code: int
) -> None:
    row = refused.get((topic.name, topic.topic_id))
    if row is None:
        row = messages.OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        refused[topic.name, topic.topic_id] = row
    row.partitions.extend(
        messages.OffsetCommitResponse.OffsetCommitResponsePartition(
            partition_index=each.partition_index, error_code=error_code
        )
        for each in partitions
    )


def _merged(
    refused: dict[tuple[str, bytes], _Row], answer: messages.OffsetCommitResponse
) -> messages.OffsetCommitResponse:
    """One answer of the rows that were refused here and those of the coordinator, each topic once."""
    topics = list(refused.values())
    for row in answer.topics:
        same = refused.get((row.name, row.topic_id))
        if same is None:
            topics.append(row)
        else:
            same.partitions.extend(row.partitions)
    return messages.OffsetCommitResponse(topics=topics)
