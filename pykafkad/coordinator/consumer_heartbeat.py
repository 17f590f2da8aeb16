"""ConsumerGroupHeartbeat: members join, stay and leave (KIP-848).

A heartbeat does up to three things. It creates or updates the member, which may begin a new epoch of the group. It
computes a new target for all members, if the group has an epoch without one. It takes the member one step nearer to its
target. All that changes is written as one batch, and the answer follows. The target of a large group takes more turns
(`target_computation.py`).

The checks are in Kafka's order, because the order decides which of several errors a client gets.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import consumer_leaving, consumer_migration, group_settings, target_computation
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.consumer_change import Change, check_room, new_member_id
from pykafkad.coordinator.consumer_group import REJOIN, SYNC, ConsumerGroup
from pykafkad.coordinator.consumer_member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from pykafkad.coordinator.events import ConsumerGroupHeartbeat
from pykafkad.coordinator.reconciled_group import SESSION
from pykafkad.errors import KafkaError
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.coordinator.reconciliation import Owned
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step

    Request = messages.ConsumerGroupHeartbeatRequest
    Response = messages.ConsumerGroupHeartbeatResponse


def heartbeat(shard: GroupShard, step: Step, event: ConsumerGroupHeartbeat) -> None:
    """Serve one heartbeat: answer it, or refuse it with an error and its text."""
    request = event.request
    try:
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            response = consumer_leaving.leave(shard, step, request)
        else:
            response = _heartbeat(shard, step, event)
    except KafkaError as error:
        step.computation = None
        response = messages.ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.text)
    target_computation.reply(shard, step, event, response)


def answer_again(shard: GroupShard, step: Step, event: ConsumerGroupHeartbeat, response: Response) -> Response:
    """The answer to a heartbeat that has waited for a new target: its member goes one step further.

    Raises `KafkaError` if the heartbeat is refused now."""
    assert response.member_id is not None
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id=event.request.group_id,
        member_id=response.member_id,
        member_epoch=response.member_epoch,
        instance_id=event.request.instance_id,
        topic_partitions=event.request.topic_partitions,
    )
    same = ConsumerGroupHeartbeat(None, request, event.client_id, event.client_host, event.may_describe)
    again = _heartbeat(shard, step, same)
    if again.assignment is None:
        again.assignment = response.assignment
    return again


def _heartbeat(shard: GroupShard, step: Step, event: ConsumerGroupHeartbeat) -> Response:
    request = event.request
    found = _group_for(shard, request)
    if isinstance(found, ConsumerGroup) and is_steady(found, event):
        # Most heartbeats are of this kind. The rest of this function would change nothing either.
        return _answer(shard, step, found, request.member_id, request.member_epoch)
    upgrade = consumer_migration.Upgrade(shard, step, found) if isinstance(found, ClassicGroup) else None
    if upgrade is not None:
        group = upgrade.group
    else:
        group = found if isinstance(found, ConsumerGroup) else ConsumerGroup(request.group_id)
    change = Change(shard, step, group, event.may_describe)
    if upgrade is not None:
        change.records += upgrade.records
    check_room(shard, group, request.member_id, request.instance_id)
    owned = owned_partitions(request.topic_partitions)
    member_id = request.member_id or new_member_id(step)
    member = change.subscribe(member_id, request.instance_id, request.member_epoch, owned)
    updated = member.copy(
        instance_id=_given(request.instance_id, member.instance_id),
        rack_id=_given(request.rack_id, member.rack_id),
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        assignor=_given(request.server_assignor, member.assignor),
        topic_names=(
            member.topic_names
            if request.subscribed_topic_names is None or member.topic_names == set(request.subscribed_topic_names)
            else frozenset(request.subscribed_topic_names)
        ),
        topic_regex=_given(request.subscribed_topic_regex, member.topic_regex),
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )
    updated = change.update(member, updated, owned)
    response = _answer(shard, step, group, member_id, updated.epoch)
    # A member that sends all about itself has lost what it knew, and gets its assignment again.
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and owned is not None
    )
    if request.member_epoch == JOIN_EPOCH or is_full or updated.assigned != member.assigned:
        response.assignment = messages.ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                messages.ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in updated.assigned.items()
            ]
        )
    if upgrade is not None:
        upgrade.replace()
    # A member that has spoken the classic protocol has no more to do by its rules.
    group.cancel(REJOIN, member_id)
    group.cancel(SYNC, member_id)
    change.write()
    return response


def is_steady(group: ConsumerGroup, event: ConsumerGroupHeartbeat) -> bool:
    """Whether a heartbeat says nothing new and nothing is to be done for its member or the group."""
    request = event.request
    member = group.members.get(request.member_id)
    return (
        member is not None
        and member.epoch == request.member_epoch
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == -1
        and request.rack_id is None
        and request.instance_id is None
        and member.client_id == event.client_id
        and member.client_host == event.client_host
        and member.classic is None
        # A pattern may have to be resolved again.
        and not member.topic_regex
        and not group.topics_changed
        and group.target_epoch >= group.epoch
        and member.is_reconciled_to(group.target_epoch)
    )


def _answer(shard: GroupShard, step: Step, group: ConsumerGroup, member_id: str, epoch: int) -> Response:
    """The answer without an assignment. The member's session begins anew."""
    group_id = group.group_id
    group.expect(step, SESSION, member_id, group_settings.number(shard, group_id, "consumer_session_timeout_ms"))
    return answer_of(shard, group_id, member_id, epoch)


def answer_of(shard: GroupShard, group_id: str, member_id: str, epoch: int) -> Response:
    """The answer to a heartbeat, without an assignment."""
    return messages.ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=group_settings.number(shard, group_id, "consumer_heartbeat_interval_ms"),
    )


def _given(value: str | None, before: str | None) -> str | None:
    """A field of a request: null means that it has not changed."""
    return before if value is None else value


def owned_partitions(rows: Iterable[messages.ConsumerGroupHeartbeatRequest.TopicPartitions] | None) -> Owned | None:
    """What a member says it has, or None when it does not say."""
    if rows is None:
        return None
    owned: dict[bytes, set[int]] = {}
    for row in rows:
        owned.setdefault(row.topic_id, set()).update(row.partitions)
    return owned


# The group and the member.


def _group_for(shard: GroupShard, request: Request) -> ConsumerGroup | ClassicGroup | None:
    """The group, which need not be a consumer group yet; None for one that is to be made. Only a member that joins
    makes a group, and turns one of the classic protocol into a consumer group."""
    joins = request.member_epoch == JOIN_EPOCH
    group = shard.groups.get(request.group_id)
    if group is None:
        if not joins:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        return None
    if isinstance(group, ConsumerGroup):
        return group
    if not joins or not isinstance(group, ClassicGroup):
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
    return group
