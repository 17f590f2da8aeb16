"""A consumer group (KIP-848): its members, its target assignment and its epochs.

The group epoch counts the changes of members, subscriptions and topics. For each epoch the coordinator computes a
target: which member shall have which partition. A member moves to its target step by step (`reconciliation.py`), and
its own epoch says how far it has come.

All of this is hard state. Only `apply` changes it, with the records of the log. Counts and indexes follow from it. Soft
state are the deadlines of the members and whether the topics have to be looked at again.
"""

from __future__ import annotations

from pykafkad.coordinator import consumer_records
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.consumer_member import ConsumerMember
from pykafkad.coordinator.group_types import CONSUMER
from pykafkad.coordinator.reconciled_group import NO_TARGET_EPOCH, REVOCATION, SESSION, ReconciledGroup
from pykafkad.errors import ILLEGAL_GENERATION, NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION
from pykafkad.wire import messages

REJOIN = "rejoin"
SYNC = "sync"
"""Further deadlines of a member of the classic protocol: the end of the times in which it must join again and fetch its
assignment."""

_COUNTED = ("topic_names", "topic_regex", "assignor", "classic")
"""What a group counts of its members."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.coordinator.assignors import Assignment
    from pykafkad.coordinator.consumer_patterns import Matching
    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.effects import StoredRecord


class Pattern:
    """The topics that a pattern matched in a `version` of the metadata, at `timestamp_ms`."""

    __slots__ = ("timestamp_ms", "topics", "version")

    def __init__(self, topics: frozenset[str], version: int, timestamp_ms: int) -> None:
        self.topics = topics
        self.version = version
        self.timestamp_ms = timestamp_ms


class ConsumerGroup(ReconciledGroup):
    """One group. `target_owners` has the targets by partition: topic id to partition to member id. `owners` says which
    member has a partition now, or is giving it up. `topics_created` is true when patterns may match more topics.
    `matching` are the patterns that are being held against the topics."""

    __slots__ = (
        "assignors",
        "classic_count",
        "classic_protocols",
        "has_partition_metadata",
        "matching",
        "owners",
        "patterns",
        "regexes",
        "static_members",
        "target_owners",
        "topic_counts",
        "topics_created",
    )

    type = CONSUMER
    protocol_type: str | None = "consumer"
    members: dict[str, ConsumerMember]
    targets: dict[str, Assignment]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.patterns: dict[str, Pattern] = {}
        self.has_partition_metadata = False
        # What follows from the above.
        self.static_members: dict[str, str] = {}
        self.target_owners: dict[bytes, dict[int, str]] = {}
        self.owners: dict[bytes, dict[int, str]] = {}
        self.topic_counts: dict[str, int] = {}  # How many members name a topic.
        self.regexes: dict[str, int] = {}  # How many members subscribe to a pattern.
        self.assignors: dict[str, int] = {}  # How many members ask for an assignor.
        self.classic_count = 0
        self.classic_protocols: dict[str, int] = {}
        # Soft state.
        self.topics_created = True
        self.matching: Matching | None = None

    # What a shard asks of a group of any type.

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member names the topic, or one of the patterns matches it."""
        return topic in self.topic_counts or any(topic in pattern.topics for pattern in self.patterns.values())

    def tombstones(self) -> list[StoredRecord]:
        """The records that delete the group, without its offsets."""
        return consumer_records.group_tombstones(self.group_id, list(self.members), self.patterns)

    def check_commit(self, request: messages.OffsetCommitRequest, has_member_epochs: bool = True) -> int:
        """The error code that refuses a commit as a whole, or NONE. `has_member_epochs`: the request is of a version
        (9 and later) that members of the consumer protocol may use.

        A member may name an older epoch than its own, if it had all partitions of the request in that epoch: it may not
        have heard of the new one yet (KIP-1251).
        """
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return NONE
        member = self.members.get(request.member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if member.classic is None and not has_member_epochs:
            return UNSUPPORTED_VERSION
        if epoch == member.epoch:
            return NONE
        if epoch < member.epoch:
            since = [
                member.assignment_epoch(topic.topic_id, partition.partition_index)
                for topic in request.topics
                for partition in topic.partitions
            ]
            if all(each is not None and each <= epoch for each in since):
                return NONE
        return self.stale_error(member)

    @staticmethod
    def stale_error(member: ConsumerMember) -> int:
        """The error of a request with another epoch than the member's."""
        return STALE_MEMBER_EPOCH if member.classic is None else ILLEGAL_GENERATION

    def cancel_all(self, member_id: str) -> None:
        """Forget all deadlines of a member that is gone."""
        for kind in (SESSION, REVOCATION, REJOIN, SYNC):
            self.deadlines.pop((kind, member_id), None)

    # Reading.

    def is_free(self, topic_id: bytes, partition: int) -> bool:
        """Whether no member has the partition."""
        return partition not in self.owners.get(topic_id, ())

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member with an instance id."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def member_topics(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that a member subscribes to by name or by pattern. A pattern that was not held against the topics
        yet matches none."""
        pattern = self.patterns.get(member.topic_regex) if member.topic_regex else None
        return member.topic_names if pattern is None else member.topic_names | pattern.topics

    # Hard state.

    def put(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if before is not None:
            self._disown(before)
            if any(getattr(before, name) != getattr(member, name) for name in _COUNTED):
                self._count(before, -1)
                self._count(member, 1)
        else:
            self._count(member, 1)
        for partitions in (member.assigned, member.revoking):
            for topic_id, epochs in partitions.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(epochs, member.member_id))
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is there."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, -1)
        self._disown(member)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _disown(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.revoking):
            for topic_id, epochs in partitions.items():
                owners = self.owners.get(topic_id)
                if owners is not None:
                    for partition in epochs:
                        if owners.get(partition) == member.member_id:
                            del owners[partition]
                    if not owners:
                        del self.owners[topic_id]

    def _count(self, member: ConsumerMember, change: int) -> None:
        for name in member.topic_names:
            _add(self.topic_counts, name, change)
        if member.topic_regex:
            _add(self.regexes, member.topic_regex, change)
        if member.assignor is not None:
            _add(self.assignors, member.assignor, change)
        if member.classic is not None:
            self.classic_count += change
            for name, _ in member.classic[1]:
                _add(self.classic_protocols, name, change)

    def set_target(self, member_id: str, target: Assignment | None) -> None:
        """Set or remove the target of a member. A partition that another member's newer target has stays there."""
        before = self.targets.pop(member_id, {})
        if target is not None:
            self.targets[member_id] = target
        after = target or {}
        for topic_id, partitions in before.items():
            owners = self.target_owners.get(topic_id)
            if owners is not None:
                for partition in partitions - after.get(topic_id, frozenset()):
                    if owners.get(partition) == member_id:
                        del owners[partition]
                if not owners:
                    del self.target_owners[topic_id]
        for topic_id, partitions in after.items():
            self.target_owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def described(
        self, metadata: ClusterView, default_assignor: str
    ) -> messages.ConsumerGroupDescribeResponse.DescribedGroup:
        """The group's row of ConsumerGroupDescribe. Topics that are gone are left out."""
        return messages.ConsumerGroupDescribeResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            group_epoch=self.epoch,
            assignment_epoch=self.target_epoch,
            assignor_name=preferred(self.assignors) or default_assignor,
            members=[self._described_member(member, metadata) for member in self.members.values()],
        )

    def _described_member(
        self, member: ConsumerMember, metadata: ClusterView
    ) -> messages.ConsumerGroupDescribeResponse.Member:
        present: dict[bytes, set[int]] = {}
        for partitions in (member.assigned, member.revoking):
            for topic_id, epochs in partitions.items():
                present.setdefault(topic_id, set()).update(epochs)
        return messages.ConsumerGroupDescribeResponse.Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_regex,
            assignment=_described_assignment(present, metadata),
            target_assignment=_described_assignment(self.targets.get(member.member_id, {}), metadata),
            member_type=1 if member.classic is None else 0,
        )


def _add(counts: dict[str, int], key: str, change: int) -> None:
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        del counts[key]


def preferred(counts: dict[str, int]) -> str | None:
    """The assignor that most members ask for, or None when no member asks for one."""
    return max(counts, key=counts.__getitem__) if counts else None


def _described_assignment(
    partitions: dict[bytes, Any], metadata: ClusterView
) -> messages.ConsumerGroupDescribeResponse.Assignment:
    rows = []
    for topic_id, indexes in partitions.items():
        topic = metadata.topic_by_id(topic_id)
        if topic is not None:
            rows.append(
                messages.ConsumerGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=sorted(indexes)
                )
            )
    return messages.ConsumerGroupDescribeResponse.Assignment(topic_partitions=rows)


# The records.


def _group(shard: GroupShard, group_id: str, create: bool) -> ConsumerGroup | None:
    """The group of a record. A record other than a tombstone makes it. A group of the classic protocol gives way if it
    only holds offsets: no record says that it exists."""
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if not create or (group is not None and not (isinstance(group, ClassicGroup) and group.protocol_type is None)):
        return None
    made = shard.groups[group_id] = ConsumerGroup(group_id)
    return made


def _apply(change: Callable[[ConsumerGroup, Any, Any], None]) -> Callable[[GroupShard, Any, Any], None]:
    """A record that changes a group. It is ignored when there is nothing that it could change."""

    def apply(shard: GroupShard, key: Any, value: Any) -> None:
        group = _group(shard, key.group_id, create=value is not None)
        if group is not None:
            change(group, key, value)

    return apply


def _apply_group(shard: GroupShard, key: messages.ConsumerGroupMetadataKey, value: Any) -> None:
    group = _group(shard, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        del shard.groups[key.group_id]
    else:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _apply_partition_metadata(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.has_partition_metadata = value is not None


def _apply_member(group: ConsumerGroup, key: messages.ConsumerGroupMemberMetadataKey, value: Any) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    group.put(consumer_records.with_metadata(member, value))


def _apply_current(group: ConsumerGroup, key: messages.ConsumerGroupCurrentMemberAssignmentKey, value: Any) -> None:
    member = group.members.get(key.member_id)
    if member is None:
        if value is None:
            return
        member = ConsumerMember(key.member_id)
    group.put(consumer_records.with_current(member, value))


def _apply_target(group: ConsumerGroup, key: messages.ConsumerGroupTargetAssignmentMemberKey, value: Any) -> None:
    group.set_target(key.member_id, None if value is None else consumer_records.targets_of(value))


def _apply_target_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.target_epoch = NO_TARGET_EPOCH if value is None else value.assignment_epoch
    group.target_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _apply_pattern(group: ConsumerGroup, key: messages.ConsumerGroupRegularExpressionKey, value: Any) -> None:
    if value is None:
        group.patterns.pop(key.regular_expression, None)
    else:
        topics = frozenset(value.topics)
        group.patterns[key.regular_expression] = Pattern(topics, value.version, value.timestamp)


RECORDS = {
    messages.ConsumerGroupMetadataKey: _apply_group,
    messages.ConsumerGroupPartitionMetadataKey: _apply(_apply_partition_metadata),
    messages.ConsumerGroupMemberMetadataKey: _apply(_apply_member),
    messages.ConsumerGroupTargetAssignmentMetadataKey: _apply(_apply_target_epoch),
    messages.ConsumerGroupTargetAssignmentMemberKey: _apply(_apply_target),
    messages.ConsumerGroupCurrentMemberAssignmentKey: _apply(_apply_current),
    messages.ConsumerGroupRegularExpressionKey: _apply(_apply_pattern),
}
"""Class of a record's key to the function that applies it to a shard."""
