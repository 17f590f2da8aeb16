"""Members of the classic protocol in a consumer group (KIP-848): JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Such a member gets its assignment from the coordinator, not from a leader. A heartbeat tells it to join again when it
has to give up partitions or may have more. Its generation is its member epoch.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import (
    consumer_leaving,
    consumer_migration,
    consumer_patterns,
    consumer_records,
    rebalance,
    target_computation,
)
from pykafkad.coordinator.consumer_change import Change, check_instance, check_room, known_member, new_member_id
from pykafkad.coordinator.consumer_group import REJOIN, SYNC, ConsumerGroup
from pykafkad.coordinator.consumer_member import UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, ConsumerMember
from pykafkad.coordinator.consumer_protocol import PROTOCOL_TYPE
from pykafkad.coordinator.reconciled_group import SESSION
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator import events
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step


def _group(shard: GroupShard, group_id: str) -> ConsumerGroup:
    group = shard.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


# Joining.


def join(shard: GroupShard, step: Step, event: events.JoinGroup) -> None:
    """Serve a JoinGroup: the answer comes at once, with the member's epoch as the generation."""
    try:
        _join(shard, step, event)
    except KafkaError as error:
        step.reply(event.token, rebalance.join_error(error.code))


def _join(shard: GroupShard, step: Step, event: events.JoinGroup) -> None:
    request = event.request
    group = _group(shard, request.group_id)
    if shard.settings.group_consumer_migration_policy.lower() == consumer_migration.DISABLED:
        raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
    is_unknown = not request.member_id
    member_id = request.member_id or new_member_id(step)
    check_room(shard, group, member_id, request.group_instance_id)
    names = [protocol.name for protocol in request.protocols]
    if request.protocol_type != PROTOCOL_TYPE or not any(
        group.classic_protocols.get(name, 0) == group.classic_count for name in names
    ):
        raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
    if is_unknown and request.group_instance_id is None and event.member_id_required:
        step.reply(event.token, rebalance.join_error(errors.MEMBER_ID_REQUIRED, member_id))
        return
    epoch = _admit(Change(shard, step, group, event.may_describe), event, member_id, is_unknown)
    step.reply(
        event.token,
        messages.JoinGroupResponse(
            generation_id=epoch, protocol_type=PROTOCOL_TYPE, protocol_name=names[0], member_id=member_id
        ),
    )


def _admit(change: Change, event: events.JoinGroup, member_id: str, is_unknown: bool) -> int:
    """Make or update the member, take it one step nearer to its target, and write that. Returns its epoch."""
    request = event.request
    group, step = change.group, change.step
    replaced = group.static_member(request.group_instance_id)
    member = _member(change, request.group_instance_id, member_id, is_unknown)
    try:
        subscription = consumer_migration.decoded_subscription(bytes(request.protocols[0].metadata))
    except ProtocolError:
        raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL) from None
    updated = _updated(member, event, subscription)
    names_changed = False
    if updated != member:
        change.records.append(consumer_records.member(group.group_id, updated))
        names_changed = updated.topic_names != member.topic_names
    regex_changed, _ = consumer_patterns.update(change, member, updated)
    has_changed = names_changed or regex_changed
    epoch = group.epoch
    if has_changed or group.topics_changed:
        epoch = change.bump(member, updated, has_changed)
    owned = consumer_migration.owned_by_id(change.metadata, subscription.owned_partitions)
    if replaced is not None and _may_be_classic(change.shard, group, replaced):
        must_rebalance = group.target_epoch < epoch
        if not must_rebalance:
            target = group.targets.get(replaced.member_id, {})
            updated = change.reconcile(updated, group.target_epoch, target, has_changed, owned)
        _downgrade(change, replaced, updated, must_rebalance)
        return updated.epoch
    target_epoch, target = change.target(epoch, member, updated)
    updated = change.reconcile(updated, target_epoch, target, has_changed, owned)
    group.cancel(REJOIN, member_id)
    group.expect(step, SESSION, member_id, request.session_timeout_ms)
    group.expect(step, SYNC, member_id, request.rebalance_timeout_ms)
    change.write()
    target_computation.start(change.shard, step)
    return updated.epoch


def _updated(
    member: ConsumerMember, event: events.JoinGroup, subscription: messages.ConsumerProtocolSubscription
) -> ConsumerMember:
    """The member with what it says of itself."""
    request = event.request
    return member.copy(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=(
            request.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        ),
    )


def _downgrade(change: Change, replaced: ConsumerMember, updated: ConsumerMember, must_rebalance: bool) -> None:
    """Turn the group into a classic one: its last member of the consumer protocol came back with the classic one."""
    group = change.group
    others = [each for each in group.members.values() if each.member_id != replaced.member_id]
    member_ids = [*(each.member_id for each in others), updated.member_id]
    consumer_migration.downgrade(
        change.shard,
        change.step,
        group,
        [*others, updated],
        must_rebalance,
        change.records,
        consumer_records.group_tombstones(group.group_id, member_ids, group.patterns),
        replaced.member_id,
    )


def _member(change: Change, instance_id: str | None, member_id: str, is_unknown: bool) -> ConsumerMember:
    """The member that joins. A static member that comes without its member id takes over what its instance id had."""
    group = change.group
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not is_unknown:
        return check_instance(group, instance_id, member_id)
    known = group.static_member(instance_id)
    return ConsumerMember(member_id) if known is None else change.replace(known, member_id)


def _may_be_classic(shard: GroupShard, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Whether the group becomes a classic one when this member comes back as a classic member."""
    settings = shard.settings
    return (
        replaced.classic is None
        and group.classic_count == len(group.members) - 1
        and settings.group_consumer_migration_policy.lower() in consumer_migration.DOWNGRADES
        and len(group.members) <= settings.group_max_size
    )


# Assignments and heartbeats.


def _checked(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    """The member of a request. Raises `KafkaError` for others than classic members in their epoch."""
    member = known_member(group, member_id) if instance_id is None else check_instance(group, instance_id, member_id)
    if member.classic is None:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID)
    if member.epoch != generation:
        raise KafkaError(errors.ILLEGAL_GENERATION)
    return member


def _expect_join(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """The member is told to join again, and has its rebalance timeout to do so."""
    if (REJOIN, member.member_id) not in group.deadlines:
        group.expect(step, REJOIN, member.member_id, member.rebalance_timeout_ms)


def sync(shard: GroupShard, step: Step, event: events.SyncGroup) -> None:
    """Serve a SyncGroup: the answer has what the coordinator has assigned, whatever a leader sends."""
    request = event.request
    group = _group(shard, request.group_id)
    try:
        member = _checked(group, request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None and shard.metadata is not None
        session_timeout_ms, protocols = member.classic
        if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, protocols[0][0]):
            raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
        if group.target_epoch > member.epoch and member.state != UNREVOKED_PARTITIONS:
            _expect_join(step, group, member)
            raise KafkaError(errors.REBALANCE_IN_PROGRESS)
    except KafkaError as error:
        step.reply(event.token, messages.SyncGroupResponse(error_code=error.code))
        return
    group.cancel(SYNC, member.member_id)
    group.expect(step, SESSION, member.member_id, session_timeout_ms)
    step.reply(
        event.token,
        messages.SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=consumer_migration.encoded_assignment(shard.metadata, member.assigned, protocols[0][1]),
        ),
    )


def heartbeat(shard: GroupShard, step: Step, event: events.Heartbeat) -> None:
    """Serve a Heartbeat. REBALANCE_IN_PROGRESS tells the member to join again, because it has to give up partitions,
    may have more, or is behind the group."""
    request = event.request
    group = _group(shard, request.group_id)
    error_code = errors.NONE
    try:
        member = _checked(group, request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None
        group.expect(step, SESSION, member.member_id, member.classic[0])
        if (
            member.epoch < group.target_epoch
            or member.state == UNREVOKED_PARTITIONS
            or (member.state == UNRELEASED_PARTITIONS and not _waits_for_others(group, member))
        ):
            _expect_join(step, group, member)
            error_code = errors.REBALANCE_IN_PROGRESS
    except KafkaError as error:
        error_code = error.code
    step.reply(event.token, messages.HeartbeatResponse(error_code=error_code))


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether other members still have a partition of the member's target."""
    return any(
        partition not in member.assigned.get(topic_id, ()) and not group.is_free(topic_id, partition)
        for topic_id, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


# Leaving.


def leave(shard: GroupShard, step: Step, event: events.LeaveGroup) -> None:
    """Serve a LeaveGroup, also of an administrator: members of both protocols can be removed with it."""
    group = _group(shard, event.request.group_id)
    rows = []
    gone: dict[str, ConsumerMember] = {}
    for identity in event.request.members:
        error_code = errors.NONE
        try:
            if identity.group_instance_id is None:
                member = known_member(group, identity.member_id)
            else:
                member_id = identity.member_id or group.static_members.get(identity.group_instance_id, "")
                member = check_instance(group, identity.group_instance_id, member_id)
            gone[member.member_id] = member
        except KafkaError as error:
            error_code = error.code
        rows.append(
            messages.LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error_code
            )
        )
    if gone:
        consumer_leaving.fence(shard, step, group, list(gone.values()))
    step.reply(event.token, messages.LeaveGroupResponse(members=rows))
