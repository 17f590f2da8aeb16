"""Members leave a consumer group (KIP-848), or are removed because they sent nothing in time."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import consumer_migration, consumer_records, metadata_hash
from pykafkad.coordinator.consumer_change import check_instance, known_member
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.coordinator.consumer_member import STATIC_LEAVE_EPOCH, ConsumerMember
from pykafkad.coordinator.reconciled_group import REVOCATION
from pykafkad.errors import KafkaError
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord

    Request = messages.ConsumerGroupHeartbeatRequest
    Response = messages.ConsumerGroupHeartbeatResponse


def leave(shard: GroupShard, step: Step, request: Request) -> Response:
    """Remove a member, or note that a static member will be back."""
    group = shard.groups.get(request.group_id)
    if group is None:
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
    if request.instance_id is None:
        member = known_member(group, request.member_id)
    else:
        member = check_instance(group, request.instance_id, request.member_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            away = member.copy(
                epoch=STATIC_LEAVE_EPOCH,
                assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
                revoking={},
            )
            group.cancel(REVOCATION, member.member_id)
            step.append([consumer_records.current(group.group_id, away)])
            return messages.ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=STATIC_LEAVE_EPOCH)
    fence(shard, step, group, [member])
    return messages.ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def fence(shard: GroupShard, step: Step, group: ConsumerGroup, members: list[ConsumerMember]) -> None:
    """Remove members. If only members of the classic protocol are left, the group becomes a classic one."""
    if consumer_migration.downgraded_without(shard, step, group, members):
        return
    records: list[StoredRecord] = []
    names = dict(group.topic_counts)
    regexes = dict(group.regexes)
    for member in members:
        records += consumer_records.member_tombstones(group.group_id, member.member_id)
        group.cancel_all(member.member_id)
        for name in member.topic_names:
            names[name] -= 1
        if member.topic_regex:
            regexes[member.topic_regex] -= 1
    gone = [regex for regex, count in regexes.items() if not count]
    records += [consumer_records.pattern_tombstone(group.group_id, regex) for regex in gone]
    topics = {name for name, count in names.items() if count}
    for regex, pattern in group.patterns.items():
        if regex not in gone:
            topics |= pattern.topics
    assert shard.metadata is not None
    found = metadata_hash.of_topics(shard.metadata, topics, shard.topic_hashes)
    records.append(consumer_records.group_epoch(group.group_id, group.epoch + 1, found))
    step.append(records)
