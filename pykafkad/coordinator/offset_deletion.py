"""Committed offsets that are deleted by an OffsetDelete, or with their group or their topics.

Many that go with their group or topics are deleted in steps. The tombstones of a group are collected in steps, and
written as one batch in the end: a broker that fails meanwhile has all of the group afterwards, or nothing of it. A
group whose tombstones are larger than a batch may be can't be deleted. Both are so in Kafka 4.3.1
(`GroupCoordinatorShard.deleteGroups`). Meanwhile the shell tells whoever asks for the group that its coordinator is
being loaded, which clients try again. So nobody joins it.

Offsets of deleted topics need no such care: as in Kafka (`onTopicsDeleted`), they are written in several batches, and
those that a broker that stops has left are not looked for later.
"""

from __future__ import annotations

from itertools import islice

from pykafkad import errors
from pykafkad.coordinator import record_codec
from pykafkad.coordinator.step import TIMER_DELETION
from pykafkad.effects import Append, SetTimer
from pykafkad.wire import messages
from pykafkad.wire.batch import HEADER_SIZE_BYTES
from pykafkad.wire.records import encode_record

RECORDS_PER_STEP = 500
"""How many offsets one step looks at."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.coordinator.group_types import Group
    from pykafkad.coordinator.offsets import Offsets
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord


def asked(
    offsets: Offsets, group: Group, request: messages.OffsetDeleteRequest
) -> tuple[list[StoredRecord], messages.OffsetDeleteResponse]:
    """The records that delete what an OffsetDelete names, and its response. What the group subscribes to stays."""
    records, rows = [], []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        row = messages.OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            row.partitions.append(
                messages.OffsetDeleteResponse.OffsetDeleteResponsePartition(
                    partition_index=index,
                    error_code=errors.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else errors.NONE,
                )
            )
            if not subscribed and (
                offsets.get(group.group_id, topic.name, index) is not None
                or offsets.is_pending(group.group_id, topic.name, index)
            ):
                records.append(record_codec.offset_commit(group.group_id, topic.name, index, None))
        rows.append(row)
    return records, messages.OffsetDeleteResponse(topics=rows)


class GroupDeletion:
    """A group that is deleted, and the token of who waits for it. `tombstones` gives what is left to collect, `records`
    and `body` are what was collected, as values and as bytes of a batch."""

    __slots__ = ("body", "group_id", "records", "token", "tombstones")

    def __init__(self, group_id: str, token: object, tombstones: Iterator[StoredRecord]) -> None:
        self.group_id = group_id
        self.token = token
        self.tombstones = tombstones
        self.records: list[StoredRecord] = []
        self.body = bytearray()

    def collect(self, tombstones: list[StoredRecord]) -> None:
        """Add to the batch."""
        for record in tombstones:
            key, value = record_codec.encode(record)
            encode_record(self.body, len(self.records), 0, key, value)
            self.records.append(record)


def begin(shard: GroupShard, step: Step, group_id: str, token: object) -> None:
    """Delete a group that may be deleted, with its offsets."""
    shard.deleting[group_id] = GroupDeletion(group_id, token, shard.offsets.tombstones(group_id))
    go_on(shard, step)


def go_on(shard: GroupShard, step: Step) -> None:
    """Delete some more."""
    deletion = next(iter(shard.deleting.values()), None)
    if deletion is not None:
        _go_on_with_group(shard, step, deletion)
    elif shard.topic_deletions:
        records = list(islice(shard.topic_deletions[0], RECORDS_PER_STEP))
        if len(records) < RECORDS_PER_STEP:
            del shard.topic_deletions[0]
        tombstones = [record for record in records if record is not None]
        if tombstones:
            step.append(tombstones)
    if shard.deleting or shard.topic_deletions:
        step.effects.append(SetTimer(TIMER_DELETION, step.now))


def _go_on_with_group(shard: GroupShard, step: Step, deletion: GroupDeletion) -> None:
    tombstones = list(islice(deletion.tombstones, RECORDS_PER_STEP))
    deletion.collect(tombstones)
    if HEADER_SIZE_BYTES + len(deletion.body) > shard.settings.message_max_bytes:
        _end(shard, step, deletion, errors.UNKNOWN_SERVER_ERROR)
    elif len(tombstones) < RECORDS_PER_STEP:
        _end(shard, step, deletion, _write(shard, step, deletion))


def _write(shard: GroupShard, step: Step, deletion: GroupDeletion) -> int:
    """Write what was collected, and delete the group. It may have changed, or expired, meanwhile."""
    group = shard.groups.get(deletion.group_id)
    error_code = errors.NONE if group is None else group.check_delete()
    if group is not None and not error_code:
        deletion.collect(group.tombstones())
        step.effects.append(Append(step.log, deletion.records, body=deletion.body))
        group.cancel_timers(step)
        shard.rebalances.pop(deletion.group_id, None)
    return error_code


def _end(shard: GroupShard, step: Step, deletion: GroupDeletion, error_code: int) -> None:
    del shard.deleting[deletion.group_id]
    _reply(step, deletion, error_code)


def _reply(step: Step, deletion: GroupDeletion, error_code: int) -> None:
    row = messages.DeleteGroupsResponse.DeletableGroupResult(group_id=deletion.group_id, error_code=error_code)
    step.reply(deletion.token, row)


def resigned(shard: GroupShard, step: Step) -> None:
    """The shard ends: who waits looks for the next coordinator."""
    for deletion in shard.deleting.values():
        _reply(step, deletion, errors.NOT_COORDINATOR)
    shard.deleting.clear()
    shard.topic_deletions.clear()


def topics_deleted(shard: GroupShard, step: Step, tombstones: Iterator[StoredRecord | None]) -> None:
    """Delete what `Offsets.tombstones_of_topics` gives, a part of it at once."""
    shard.topic_deletions.append(tombstones)
    if len(shard.topic_deletions) == 1 and not shard.deleting:
        go_on(shard, step)
