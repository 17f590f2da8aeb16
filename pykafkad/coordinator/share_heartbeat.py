"""What a heartbeat of a share group's member changes (KIP-932): the member, the group's epoch, the target assignment,
and what the member has.

The share coordinator is asked to begin the delivery state of the partitions that the group newly subscribes to. They
are assigned in a later epoch, when it has done so."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import (
    group_settings,
    metadata_hash,
    share_assignor,
    share_group_records,
    target_computation,
)
from pykafkad.coordinator.in_steps import at_once
from pykafkad.coordinator.share_group import JOIN_EPOCH, LEAVE_EPOCH, ShareGroup, ShareMember
from pykafkad.coordinator.share_group_events import ShareGroupHeartbeat, StateInitialized
from pykafkad.coordinator.target_computation import MEMBER_WORK, TASK_WORK
from pykafkad.effects import INITIALIZE_STATE, AskShareState
from pykafkad.errors import KafkaError
from pykafkad.wire import messages

NO_OFFSET = -1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.in_steps import Steps
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.share_assignor import Assignment
    from pykafkad.coordinator.share_group import Topics
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord

    Response = messages.ShareGroupHeartbeatResponse


def heartbeat(shard: GroupShard, step: Step, event: ShareGroupHeartbeat) -> None:
    """Serve a heartbeat."""
    request = event.request
    try:
        if request.member_epoch == LEAVE_EPOCH:
            response = _leave(shard, step, request)
        else:
            response = _served(shard, step, event)
    except KafkaError as error:
        step.computation = None
        response = messages.ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.text)
    target_computation.reply(shard, step, event, response)


def _served(shard: GroupShard, step: Step, event: ShareGroupHeartbeat) -> Response:
    """The answer to a member that joins or stays. What changes is written."""
    change = _Heartbeat(shard, step, event)
    response = change.run()
    if change.records:
        shard.groups[change.group.group_id] = change.group
        step.append(change.records)
    change.ask()
    return response


def answer_again(shard: GroupShard, step: Step, event: ShareGroupHeartbeat, response: Response) -> Response:
    """The answer to a heartbeat that has waited for a new target: its member takes it over.

    Raises `KafkaError` if the heartbeat is refused now."""
    first = event.request
    request = messages.ShareGroupHeartbeatRequest(
        group_id=first.group_id, member_id=first.member_id, member_epoch=response.member_epoch
    )
    again = _served(shard, step, ShareGroupHeartbeat(None, request, event.client_id, event.client_host))
    if again.assignment is None:
        again.assignment = response.assignment
    return again


def share_group(shard: GroupShard, group_id: str) -> ShareGroup:
    """The share group with the id. Raises `KafkaError` (GROUP_ID_NOT_FOUND)."""
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group


def _known_member(group: ShareGroup, member_id: str) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        text = f"Member {member_id} is not a member of group {group.group_id}."
        raise KafkaError(errors.UNKNOWN_MEMBER_ID, text)
    return member


def _leave(shard: GroupShard, step: Step, request: messages.ShareGroupHeartbeatRequest) -> Response:
    group = share_group(shard, request.group_id)
    member = _known_member(group, request.member_id)
    fence(shard, step, group, [member.member_id])
    return messages.ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def fence(shard: GroupShard, step: Step, group: ShareGroup, member_ids: list[str]) -> None:
    """Remove members, each with an epoch of its own."""
    assert shard.metadata is not None
    names, found = group.topic_names(), None
    for epoch, member_id in enumerate(member_ids, group.epoch + 1):
        group.deadlines.pop(member_id, None)
        for name in group.members[member_id].topic_names:
            names[name] -= 1
            if not names[name]:
                del names[name]
                found = None
        if found is None:
            found = metadata_hash.of_topics(shard.metadata, names, shard.topic_hashes)
        records = share_group_records.member_tombstones(group.group_id, member_id)
        records.append(share_group_records.group_epoch(group.group_id, epoch, found))
        step.append(records)


class _Heartbeat:
    """One heartbeat under way. `group` is the group as it is, or a new one."""

    __slots__ = ("_event", "_metadata", "_new_partitions", "_shard", "_step", "group", "records")

    def __init__(self, shard: GroupShard, step: Step, event: ShareGroupHeartbeat) -> None:
        request = event.request
        self._shard = shard
        self._step = step
        self._event = event
        assert shard.metadata is not None
        self._metadata: ClusterView = shard.metadata
        self._new_partitions: Topics = {}
        self.records: list[StoredRecord] = []
        known = shard.groups.get(request.group_id)
        if known is None and request.member_epoch != JOIN_EPOCH:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
        self.group = ShareGroup(request.group_id) if known is None else share_group(shard, request.group_id)

    def run(self) -> Response:
        """The records that the heartbeat leads to, and its answer."""
        group, request, step = self.group, self._event.request, self._step
        limit = self._shard.settings.group_share_max_size
        if len(group.members) >= limit and request.member_id not in group.members:
            text = f"The share group has reached its maximum capacity of {limit} members."
            raise KafkaError(errors.GROUP_MAX_SIZE_REACHED, text)
        member = self._subscribe(request.member_id, request.member_epoch)
        names = request.subscribed_topic_names
        updated = member.copy(
            client_id=self._event.client_id,
            client_host=self._event.client_host,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            topic_names=member.topic_names if names is None else frozenset(names),
        )
        if updated != member or updated.member_id not in group.members:
            self.records.append(share_group_records.member(group.group_id, updated))
        epoch, has_changed = self._epoch(member, updated)
        target_epoch, target = self._target(epoch, updated)
        updated = self._reconcile(updated, target_epoch, target, has_changed)
        self._initialize(updated)
        group_id = group.group_id
        group.expect(step, updated.member_id, group_settings.number(self._shard, group_id, "share_session_timeout_ms"))
        response = messages.ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.epoch,
            heartbeat_interval_ms=group_settings.number(self._shard, group_id, "share_heartbeat_interval_ms"),
        )
        if request.member_epoch == JOIN_EPOCH or names is not None or updated.assigned != member.assigned:
            response.assignment = messages.ShareGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    messages.ShareGroupHeartbeatResponse.TopicPartitions(
                        topic_id=topic_id, partitions=sorted(partitions)
                    )
                    for topic_id, partitions in updated.assigned.items()
                ]
            )
        return response

    def _subscribe(self, member_id: str, epoch: int) -> ShareMember:
        """The member that sends the heartbeat, made if it joins."""
        if epoch == JOIN_EPOCH:
            return self.group.members.get(member_id) or ShareMember(member_id)
        member = _known_member(self.group, member_id)
        if epoch > member.epoch:
            text = (
                f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
                f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
            )
            raise KafkaError(errors.FENCED_MEMBER_EPOCH, text)
        if epoch < member.epoch and epoch != member.previous_epoch:
            text = (
                f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
                f"coordinator ({member.epoch}), and it does not match the previous member epoch "
                f"({member.previous_epoch}). The member must abandon all its partitions and rejoin."
            )
            raise KafkaError(errors.FENCED_MEMBER_EPOCH, text)
        return member

    def _epoch(self, member: ShareMember, updated: ShareMember) -> tuple[int, bool]:
        """The group's epoch, and whether this heartbeat has begun it."""
        group = self.group
        must_bump = updated.topic_names != member.topic_names
        if group.target_epoch >= group.epoch and not must_bump:
            must_bump = not group.all_assigned and self._has_unassigned()
            group.all_assigned = not must_bump
        if not must_bump and not group.topics_changed:
            return group.epoch, False
        found = metadata_hash.of_topics(self._metadata, group.topic_names(updated), self._shard.topic_hashes)
        group.topics_changed = False
        if not must_bump and found == group.metadata_hash:
            return group.epoch, False
        self.records.append(share_group_records.group_epoch(group.group_id, group.epoch + 1, found))
        return group.epoch + 1, True

    def _has_unassigned(self) -> bool:
        """Whether a partition with delivery state has no member yet, though the group subscribes to its topic."""
        group = self.group
        if not group.members or not group.initialized:
            return False
        names = group.topic_counts
        assigned: dict[bytes, set[int]] = {}
        for target in group.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            name in names and assigned.get(topic_id, set()) != partitions
            for topic_id, (name, partitions) in group.initialized.items()
        )

    def _target(self, epoch: int, updated: ShareMember) -> tuple[int, Assignment]:
        """The epoch of the target assignment and the member's target, computed anew if the group's epoch has none and
        the last one is old enough. That of a large group is computed later, in steps."""
        group, shard = self.group, self._shard
        last_target = group.target_epoch, group.targets.get(updated.member_id, {})
        if group.target_epoch >= epoch or not self._may_assign() or target_computation.is_under_way(shard, group):
            return last_target
        topics = self._metadata.topics
        ids = {name: topics[name].id for name in group.topic_names(updated) if name in topics}
        members, known = {**group.members, updated.member_id: updated}, dict(group.targets)
        topic_ids = set(ids.values())
        partitions = {
            topic_id: sorted(ready) for topic_id, (_, ready) in group.initialized.items() if topic_id in topic_ids
        }
        steps = target_computation.outcome(
            _assigned(members, known, ids, partitions), group.group_id, known, share_group_records.target
        )
        size = MEMBER_WORK * len(members) + TASK_WORK * sum(map(len, partitions.values()))
        if size > target_computation.LARGE_WORK:
            self._step.computation = target_computation.TargetComputation(
                group, epoch, known, steps, share_group_records.target_epoch
            )
            return last_target
        targets, records = at_once(steps)
        self.records += records.values()
        self.records.append(share_group_records.target_epoch(group.group_id, epoch, self._step.now_ms))
        return epoch, targets[updated.member_id]

    def _may_assign(self) -> bool:
        interval_ms = group_settings.number(self._shard, self.group.group_id, "share_assignment_interval_ms")
        since_ms = self.group.target_timestamp_ms
        return not since_ms or not interval_ms or self._step.now_ms >= since_ms + interval_ms

    def _reconcile(self, updated: ShareMember, epoch: int, target: Assignment, has_changed: bool) -> ShareMember:
        """The member with its target, as far as it subscribes to its topics."""
        if not has_changed and updated.epoch == epoch:
            return updated
        topics = self._metadata.topics
        ids = {topics[name].id for name in updated.topic_names if name in topics}
        following = updated.copy(assigned={each: target[each] for each in target if each in ids})
        if epoch != updated.epoch:
            following = following.copy(epoch=epoch, previous_epoch=updated.epoch)
        if following != updated:
            self.records.append(share_group_records.current(self.group.group_id, following))
        return following

    # Delivery state.

    def _initialize(self, updated: ShareMember) -> None:
        """Note the partitions whose delivery state is to be begun."""
        group, now_ms = self.group, self._step.now_ms
        retry_ms = self._shard.settings.group_share_initialize_retry_interval_ms
        for name in sorted(group.topic_names(updated)):
            topic = self._metadata.topics.get(name)
            if topic is None:
                continue
            known = group.initialized.get(topic.id, (name, frozenset()))[1]
            if topic.id in group.initializing and now_ms - group.asked_ms.get(topic.id, 0) < retry_ms:
                known |= group.initializing[topic.id][1]
            if len(known) == len(topic.partitions):
                continue
            wanted = frozenset(range(len(topic.partitions))) - known
            if wanted:
                self._new_partitions[topic.id] = name, wanted
        if self._new_partitions:
            self.records.append(initializing_record(group, self._new_partitions))

    def ask(self) -> None:
        """Ask the share coordinator for what is noted."""
        wanted = {topic_id: partitions for topic_id, (_, partitions) in self._new_partitions.items()}
        if wanted:
            group = self.group
            for topic_id in wanted:
                group.asked_ms[topic_id] = self._step.now_ms
            self._step.effects.append(
                AskShareState(
                    INITIALIZE_STATE,
                    group.group_id,
                    {topic_id: dict.fromkeys(partitions, NO_OFFSET) for topic_id, partitions in wanted.items()},
                    group.epoch if not self.records else self._epoch_to_come(),
                    lambda failures: StateInitialized(group.group_id, wanted, failures),
                )
            )

    def _epoch_to_come(self) -> int:
        """The group's epoch after the records."""
        for record in self.records:
            if type(record.key) is messages.ShareGroupMetadataKey:
                value: messages.ShareGroupMetadataValue = record.value  # type: ignore[assignment]
                return value.epoch
        return self.group.epoch


def _assigned(
    members: Mapping[str, ShareMember],
    known: Mapping[str, Assignment],
    ids: Mapping[str, bytes],
    partitions: Mapping[bytes, list[int]],
) -> Steps[dict[str, Assignment]]:
    """The targets of all members. `known` are the present ones, `ids` those of the topics that exist."""
    by_names: dict[frozenset[str], frozenset[bytes]] = {}
    subscribers: dict[str, share_assignor.Subscriber] = {}
    for member_id, member in members.items():
        topic_ids = by_names.get(member.topic_names)
        if topic_ids is None:
            topic_ids = frozenset(ids[name] for name in member.topic_names if name in ids)
            by_names[member.topic_names] = topic_ids
        subscribers[member_id] = share_assignor.Subscriber(topic_ids, known.get(member_id, {}))
        yield
    return (yield from share_assignor.assign_in_steps(subscribers, partitions))


def initializing_record(group: ShareGroup, news: Topics) -> StoredRecord:
    """The record that the delivery state of more partitions is about to begin."""
    return share_group_records.partition_states(
        group.group_id, merged(group.initializing, news), group.initialized, group.deleting
    )


def merged(topics: Topics, news: Topics) -> Topics:
    """The partitions of both."""
    result = dict(topics)
    for topic_id, (name, partitions) in news.items():
        result[topic_id] = name, result.get(topic_id, (name, frozenset()))[1] | partitions
    return result


def without(topics: Topics, gone: dict[bytes, frozenset[int]]) -> Topics:
    """The partitions without some."""
    result: Topics = {}
    for topic_id, (name, partitions) in topics.items():
        left = partitions - gone.get(topic_id, frozenset())
        if left:
            result[topic_id] = name, left
    return result
