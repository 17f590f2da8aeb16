"""Groups that change between the classic and the consumer protocol while they live (KIP-848).

A classic group of consumers becomes a consumer group when its first member of the consumer protocol joins. Its other
members keep what they have, and go on with the classic protocol (`consumer_classic_members.py`). The group becomes
classic again when its last member of the consumer protocol leaves. `group.consumer.migration.policy` says which of the
two ways is open.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import consumer_records, metadata_hash, rebalance, record_codec
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.coordinator.consumer_member import ConsumerMember
from pykafkad.coordinator.group_states import EMPTY
from pykafkad.coordinator.member import Member
from pykafkad.coordinator.reconciled_group import SESSION
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.wire import messages

UPGRADES = ("bidirectional", "upgrade")
DOWNGRADES = ("bidirectional", "downgrade")
DISABLED = "disabled"
LATEST_VERSION = 3
"""The latest version of the bytes in which members of a classic group tell their subscriptions and assignments."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.coordinator.assignors import Assignment
    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord


# The bytes of the embedded protocol.


def _decoded(message_class: Any, content: bytes) -> Any:
    """A message that begins with its version. Bytes of a later version begin like those of the latest one."""
    version = int.from_bytes(content[:2], "big", signed=True)
    if len(content) < 2 or version < 0:
        raise ProtocolError(f"a version below 0 or no version, in {len(content)} bytes")
    return messages.decoder(message_class, min(version, LATEST_VERSION))(content, 2)[0]


def decoded_subscription(content: bytes) -> messages.ConsumerProtocolSubscription:
    """A member's subscription. Raises `ProtocolError`."""
    subscription: messages.ConsumerProtocolSubscription = _decoded(messages.ConsumerProtocolSubscription, content)
    return subscription


def encoded_assignment(metadata: ClusterView, partitions: dict[bytes, Any], subscription: bytes) -> bytes:
    """A member's assignment, in the version of its subscription. Topics that are gone are left out."""
    version = min(int.from_bytes(subscription[:2], "big", signed=True), LATEST_VERSION)
    rows = []
    for topic_id, indexes in partitions.items():
        topic = metadata.topic_by_id(topic_id)
        if topic is not None:
            rows.append(
                messages.ConsumerProtocolAssignment.TopicPartition(topic=topic.name, partitions=sorted(indexes))
            )
    content = messages.ConsumerProtocolAssignment(assigned_partitions=rows)
    return version.to_bytes(2, "big") + bytes(messages.encode(content, version))


def owned_by_id(metadata: ClusterView, rows: Iterable[Any]) -> dict[bytes, set[int]]:
    """Rows of topic names and partitions by topic id. Topics that are gone are left out."""
    owned: dict[bytes, set[int]] = {}
    for row in rows:
        topic = metadata.topics.get(row.topic)
        if topic is not None:
            owned.setdefault(topic.id, set()).update(row.partitions)
    return owned


# From classic to consumer.


class Upgrade:
    """The consumer group that takes the place of a classic one, and the records that make it. Raises `KafkaError`
    (GROUP_ID_NOT_FOUND) when the group cannot change. `replace` is called before the records are written."""

    __slots__ = ("group", "old", "records", "shard", "step")

    def __init__(self, shard: GroupShard, step: Step, old: ClassicGroup) -> None:
        self.shard = shard
        self.step = step
        self.old = old
        self.group = ConsumerGroup(old.group_id)
        self.records: list[StoredRecord] = old.tombstones()
        if old.state is EMPTY:
            return
        self._check()
        assert shard.metadata is not None
        group = self.group
        group.epoch = group.target_epoch = old.generation
        for member in old.members.values():
            self._add(member, shard.metadata)
        group.metadata_hash = metadata_hash.of_topics(shard.metadata, group.topic_counts, shard.topic_hashes)
        members = list(group.members.values())
        self.records += [consumer_records.member(group.group_id, member) for member in members]
        self.records.append(consumer_records.group_epoch(group.group_id, group.epoch, group.metadata_hash))
        for member_id, target in group.targets.items():
            self.records.append(consumer_records.target(group.group_id, member_id, target))
        self.records.append(consumer_records.target_epoch(group.group_id, group.target_epoch, 0))
        self.records += [consumer_records.current(group.group_id, member) for member in members]

    def _check(self) -> None:
        settings, old = self.shard.settings, self.old
        reason = None
        if settings.group_consumer_migration_policy.lower() not in UPGRADES:
            reason = "online upgrade is disabled"
        elif not old.uses_consumer_protocol():
            reason = "the group does not use the consumer embedded protocol"
        elif len(old.members) > settings.group_consumer_max_size:
            reason = "the group size exceeds the consumer group maximum size"
        if reason is not None:
            raise _cannot_upgrade(old, f"because {reason}.")

    def _add(self, member: Member, metadata: ClusterView) -> None:
        """Take over a member with what it has. It may have joined and not fetched its assignment yet."""
        old, group = self.old, self.group
        assigned: Assignment = {}
        try:
            if member.assignment:
                content = _decoded(messages.ConsumerProtocolAssignment, member.assignment)
                if content.user_data:
                    text = (
                        "because an unsupported custom assignor is in use. Please refer to the documentation or "
                        "switch to a default assignor before re-attempting the upgrade."
                    )
                    raise _cannot_upgrade(old, text)
                owned = owned_by_id(metadata, content.assigned_partitions)
                assigned = {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}
            chosen = old.protocol_name or member.protocols[0][0]
            subscription = decoded_subscription(member.metadata(chosen))
        except ProtocolError:
            raise _cannot_upgrade(old, "because the embedded consumer protocol is malformed.") from None
        converted = ConsumerMember(member.member_id).copy(
            epoch=old.generation,
            previous_epoch=old.generation,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=frozenset(subscription.topics),
            assigned={topic_id: dict.fromkeys(each, old.generation) for topic_id, each in assigned.items()},
            classic=(member.session_timeout_ms, member.protocols),
        )
        group.put(converted)
        group.set_target(member.member_id, assigned)

    def replace(self) -> None:
        """Send those who wait in the classic group to join again, and expect heartbeats of its members."""
        old, step = self.old, self.step
        for member in old.members.values():
            rebalance.answer_join(step, member, rebalance.join_error(errors.REBALANCE_IN_PROGRESS, member.member_id))
            if member.sync_token is not None:
                step.reply(member.sync_token, messages.SyncGroupResponse(error_code=errors.REBALANCE_IN_PROGRESS))
                member.sync_token = None
        old.cancel_timers(step)
        for converted in self.group.members.values():
            if converted.classic is not None and (SESSION, converted.member_id) not in self.group.deadlines:
                self.group.expect(step, SESSION, converted.member_id, converted.classic[0])


def _cannot_upgrade(group: ClassicGroup, rest: str) -> KafkaError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group {rest}"
    return KafkaError(errors.GROUP_ID_NOT_FOUND, text)


# From consumer to classic.


def may_downgrade(shard: GroupShard, group: ConsumerGroup, gone: list[ConsumerMember]) -> bool:
    """Whether the group becomes a classic one when these members are gone: all others speak the classic protocol."""
    left = len(group.members) - len(gone)
    classic = group.classic_count - sum(1 for member in gone if member.classic is not None)
    settings = shard.settings
    return (
        classic == left > 0
        and settings.group_consumer_migration_policy.lower() in DOWNGRADES
        and left <= settings.group_max_size
    )


def downgraded_without(shard: GroupShard, step: Step, group: ConsumerGroup, gone: list[ConsumerMember]) -> bool:
    """Turn the group into a classic one if all but these members speak the classic protocol. Whether it was done."""
    if not may_downgrade(shard, group, gone):
        return False
    leaving = {member.member_id for member in gone}
    members = [member for member_id, member in group.members.items() if member_id not in leaving]
    downgrade(shard, step, group, members, must_rebalance=True)
    return True


def downgrade(
    shard: GroupShard,
    step: Step,
    group: ConsumerGroup,
    members: list[ConsumerMember],
    must_rebalance: bool,
    records: Iterable[StoredRecord] = (),
    tombstones: list[StoredRecord] | None = None,
    in_place_of: str | None = None,
) -> None:
    """Turn the group into a classic one of these members.

    `records` are written before, `tombstones` in place of those of the group. `in_place_of` is the member id whose
    target the last of the members takes over.
    """
    assert shard.metadata is not None
    classic = ClassicGroup(group.group_id, step.now_ms)
    for member in members:
        assert member.classic is not None
        session_timeout_ms, protocols = member.classic
        classic.add(
            Member(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                session_timeout_ms,
                "consumer",
                protocols,
            )
        )
    classic.generation = group.epoch
    classic.protocol_name = classic.select_protocol()
    assignments = []
    for each in classic.members.values():
        source = in_place_of if in_place_of is not None and each.member_id == members[-1].member_id else each.member_id
        target = group.targets.get(source, {})
        content = encoded_assignment(shard.metadata, target, each.metadata(classic.protocol_name))
        assignments.append((each, content))
    record = record_codec.group_metadata(classic, group.epoch, classic.leader_id, step.now_ms, assignments)
    gone = group.tombstones() if tombstones is None else tombstones
    group.cancel_timers(step)
    # The record describes the group as it is here. A rebalance that begins now has begun when the record is applied.
    shard.groups[group.group_id] = classic
    value: Any = record.value
    classic.adopt(value)
    step.append([*records, *gone, record])
    for each in classic.members.values():
        step.expect_heartbeat(classic, each)
    if must_rebalance:
        rebalance.begin(step, classic, "a consumer group has become a classic one")
