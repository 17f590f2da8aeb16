"""What one request changes in a consumer group (KIP-848): the parts that heartbeats and classic members share."""

from __future__ import annotations

from binascii import b2a_base64

from pykafkad import errors
from pykafkad.coordinator import (
    consumer_patterns,
    consumer_records,
    group_settings,
    metadata_hash,
    target_computation,
)
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.coordinator.consumer_member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNREVOKED_PARTITIONS,
    ConsumerMember,
)
from pykafkad.coordinator.consumer_target import TargetWork
from pykafkad.coordinator.in_steps import at_once
from pykafkad.coordinator.reconciled_group import REVOCATION
from pykafkad.coordinator.reconciliation import Reconciliation
from pykafkad.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.coordinator.assignors import Assignment
    from pykafkad.coordinator.consumer_member import Partitions
    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.reconciliation import Owned
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord

MUST_REJOIN = "The member must abandon all its partitions and rejoin."


def check_room(shard: GroupShard, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Raises `KafkaError` when the group is full and the member is new."""
    limit = shard.settings.group_consumer_max_size
    if group.static_member(instance_id) is None and len(group.members) >= limit and member_id not in group.members:
        text = f"The consumer group has reached its maximum capacity of {limit} members."
        raise KafkaError(errors.GROUP_MAX_SIZE_REACHED, text)


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Raises `KafkaError` (FENCED_MEMBER_EPOCH) for another epoch than the member's.

    Epoch 0 joins again. The epoch before is accepted from a member that has nothing else than it may have: the answer
    with its new epoch may have been lost.
    """
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    if epoch > member.epoch:
        kind = "greater"
    elif epoch == member.previous_epoch and _is_within(owned, member.assigned):
        return
    else:
        kind = "smaller"
    text = (
        f"The consumer group member has a {kind} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). {MUST_REJOIN}"
    )
    raise KafkaError(errors.FENCED_MEMBER_EPOCH, text)


def _is_within(owned: Owned | None, assigned: Partitions) -> bool:
    if owned is None:
        return False
    return all(
        partition in assigned.get(topic_id, ()) for topic_id, partitions in owned.items() for partition in partitions
    )


def check_instance(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member with the instance id. Raises `KafkaError` when there is none, or when it has another member id."""
    known = group.static_member(instance_id)
    if known is None:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        text = f"Static member {member_id} with instance id {instance_id} was fenced by member {known.member_id}."
        raise KafkaError(errors.FENCED_INSTANCE_ID, text)
    return known


def known_member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    """The member with the id. Raises `KafkaError` (UNKNOWN_MEMBER_ID) when there is none."""
    member = group.members.get(member_id)
    if member is None:
        text = f"Member {member_id} is not a member of group {group.group_id}."
        raise KafkaError(errors.UNKNOWN_MEMBER_ID, text)
    return member


def new_member_id(step: Step) -> str:
    """An id for a member that brings none: a random UUID in Kafka's form."""
    text = b2a_base64(step.random.randbytes(16), newline=False).decode("ascii")
    return text.rstrip("=").replace("+", "-").replace("/", "_")


class Change:
    """What one request changes in a group: the records, and the state that they will lead to. A request that is refused
    half-way has changed nothing."""

    __slots__ = ("_has_looked_at_topics", "_replaced", "group", "may_describe", "records", "shard", "step")

    def __init__(
        self, shard: GroupShard, step: Step, group: ConsumerGroup, may_describe: Callable[[str], bool] | None
    ) -> None:
        """`may_describe` says of a topic whether the caller may know of it; None: of every one."""
        self.may_describe = may_describe
        self.shard = shard
        self.step = step
        self.group = group
        self.records: list[StoredRecord] = []
        self._replaced: str | None = None
        self._has_looked_at_topics = False

    def write(self) -> None:
        """Write what has changed, if anything has."""
        if self._replaced is not None:
            self.group.cancel_all(self._replaced)
        if self._has_looked_at_topics:
            self.group.topics_changed = False
        if self.records:
            # The records make a new group when they are applied. Its deadlines are in this object.
            self.shard.groups[self.group.group_id] = self.group
            self.step.append(self.records)

    def subscribe(self, member_id: str, instance_id: str | None, epoch: int, owned: Owned | None) -> ConsumerMember:
        """The member that sends a heartbeat, made if it joins."""
        joins = epoch == JOIN_EPOCH
        if instance_id is None:
            if joins and member_id not in self.group.members:
                return ConsumerMember(member_id)
            member = known_member(self.group, member_id)
            check_epoch(member, epoch, owned)
            return member
        if not joins:
            member = check_instance(self.group, instance_id, member_id)
            check_epoch(member, epoch, owned)
            return member
        known = self.group.static_member(instance_id)
        if known is None:
            return self.group.members.get(member_id) or ConsumerMember(member_id)
        if known.classic is None and known.epoch != STATIC_LEAVE_EPOCH:
            text = (
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {known.member_id} member."
            )
            raise KafkaError(errors.UNRELEASED_INSTANCE_ID, text)
        return self.replace(known, member_id)

    def replace(self, known: ConsumerMember, member_id: str) -> ConsumerMember:
        """A static member comes back under another member id: the new one takes over what the old one had."""
        group_id = self.group.group_id
        member = known.copy(member_id=member_id, epoch=0, previous_epoch=0)
        self.records += consumer_records.member_tombstones(group_id, known.member_id)
        self.records += (
            consumer_records.member(group_id, member),
            consumer_records.target(group_id, member_id, self.group.targets.get(known.member_id, {})),
            consumer_records.current(group_id, member),
        )
        if known.member_id != member_id:
            self._replaced = known.member_id
        return member

    def update(self, member: ConsumerMember, updated: ConsumerMember, owned: Owned | None) -> ConsumerMember:
        """The three parts of a heartbeat. Returns the member after them."""
        group = self.group
        names_changed = False
        if updated != member:
            self.records.append(consumer_records.member(group.group_id, updated))
            names_changed = updated.topic_names != member.topic_names
        regex_changed, is_resolved = consumer_patterns.update(self, member, updated)
        epoch = group.epoch
        if names_changed or is_resolved or group.topics_changed:
            epoch = self.bump(member, updated, names_changed or is_resolved)
        target_epoch, target = self.target(epoch, member, updated)
        return self.reconcile(updated, target_epoch, target, names_changed or regex_changed, owned)

    def bump(self, member: ConsumerMember, updated: ConsumerMember, must_bump: bool) -> int:
        """Begin a new epoch of the group if it must be, or if the topics have changed. Returns the group's epoch."""
        group = self.group
        names = self.counts(member, updated).keys() | self.matched_topics(member, updated)
        found = metadata_hash.of_topics(self.metadata, names, self.shard.topic_hashes)
        epoch = group.epoch
        if must_bump or found != group.metadata_hash:
            epoch += 1
            self.records.append(consumer_records.group_epoch(group.group_id, epoch, found))
        self._has_looked_at_topics = True
        if group.has_partition_metadata:
            self.records.append(consumer_records.partition_metadata_tombstone(group.group_id))
        return epoch

    @property
    def metadata(self) -> ClusterView:
        """The view of the cluster: a shard that serves has one."""
        assert self.shard.metadata is not None
        return self.shard.metadata

    def counts(self, member: ConsumerMember, updated: ConsumerMember) -> dict[str, int]:
        """How many members will name each topic."""
        counts = dict(self.group.topic_counts)
        for name in member.topic_names:
            counts[name] -= 1
        for name in updated.topic_names:
            counts[name] = counts.get(name, 0) + 1
        return {name: count for name, count in counts.items() if count}

    def matched_topics(self, member: ConsumerMember, updated: ConsumerMember) -> set[str]:
        """The topics of all patterns that the group will still subscribe to."""
        group = self.group
        gone = member.topic_regex if member.topic_regex != updated.topic_regex else None
        if gone and group.regexes.get(gone, 0) > 1:
            gone = None
        topics: set[str] = set()
        for regex, pattern in group.patterns.items():
            if regex != gone:
                topics |= pattern.topics
        return topics

    def target(self, epoch: int, member: ConsumerMember, updated: ConsumerMember) -> tuple[int, Assignment]:
        """The epoch of the target assignment and the member's target, computed anew if the group's epoch has none and
        the last one is old enough. That of a large group is computed later, in steps."""
        group = self.group
        if group.target_epoch >= epoch or not self.may_assign() or target_computation.is_under_way(self.shard, group):
            return self._last_target(updated)
        work = TargetWork(self, member, updated)
        if work.size > target_computation.LARGE_WORK:
            work.keep()
            self.step.computation = target_computation.TargetComputation(
                group,
                epoch,
                work.before,
                work.steps(),
                consumer_records.target_epoch,
                {each.instance_id: member_id for member_id, each in work.members.items() if each.instance_id},
                consumer_records.target,
            )
            return self._last_target(updated)
        targets, records = at_once(work.steps())
        self.records += records.values()
        self.records.append(consumer_records.target_epoch(group.group_id, epoch, self.step.now_ms))
        return epoch, targets[updated.member_id]

    def _last_target(self, updated: ConsumerMember) -> tuple[int, Assignment]:
        """The target that holds for now. A static member that comes back has that of its former member id."""
        group = self.group
        known = group.static_member(updated.instance_id)
        if updated.instance_id is None:
            return group.target_epoch, group.targets.get(updated.member_id, {})
        return group.target_epoch, {} if known is None else group.targets.get(known.member_id, {})

    def may_assign(self) -> bool:
        """Whether the last target is as old as the group's assignment interval."""
        group = self.group
        interval_ms = group_settings.number(self.shard, group.group_id, "consumer_assignment_interval_ms")
        since_ms = group.target_timestamp_ms
        return not since_ms or not interval_ms or self.step.now_ms >= since_ms + interval_ms

    def regexes(self, member: ConsumerMember, updated: ConsumerMember) -> dict[str, int]:
        """How many members will subscribe to each pattern."""
        counts = dict(self.group.regexes)
        if member.topic_regex != updated.topic_regex:
            if member.topic_regex:
                counts[member.topic_regex] -= 1
            if updated.topic_regex:
                counts[updated.topic_regex] = counts.get(updated.topic_regex, 0) + 1
        return {regex: count for regex, count in counts.items() if count}

    def reconcile(
        self,
        updated: ConsumerMember,
        target_epoch: int,
        target: Assignment,
        subscription_changed: bool,
        owned: Owned | None,
    ) -> ConsumerMember:
        """Take the member one step nearer to its target."""
        if not subscription_changed and updated.is_reconciled_to(target_epoch):
            return updated
        group, topics = self.group, self.metadata.topics
        topic_ids = frozenset(topics[name].id for name in group.member_topics(updated) if name in topics)
        following = Reconciliation(updated, target_epoch, target, topic_ids, self.is_free, owned).next(
            subscription_changed
        )
        if following != updated:
            self.records.append(consumer_records.current(group.group_id, following))
            if following.classic is None:
                if following.state == UNREVOKED_PARTITIONS:
                    group.expect(self.step, REVOCATION, following.member_id, following.rebalance_timeout_ms)
                else:
                    group.cancel(REVOCATION, following.member_id)
        return following

    def is_free(self, topic_id: bytes, partition: int) -> bool:
        """Whether no member has the partition."""
        return self.group.is_free(topic_id, partition)
