"""The rules of consumer groups (KIP-848) as a shard finds them (`group_types.Rules`)."""

from __future__ import annotations

from pykafkad.coordinator import (
    consumer_classic_members,
    consumer_group,
    consumer_heartbeat,
    consumer_leaving,
    consumer_patterns,
    events,
    group_settings,
)
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.coordinator.consumer_member import UNREVOKED_PARTITIONS
from pykafkad.coordinator.consumer_patterns import TIMER_PATTERNS
from pykafkad.coordinator.reconciled_group import REVOCATION, SESSION, TIMER_MEMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step

STEPS = {
    events.ConsumerGroupHeartbeat: consumer_heartbeat.heartbeat,
    events.JoinGroup: consumer_classic_members.join,
    events.SyncGroup: consumer_classic_members.sync,
    events.Heartbeat: consumer_classic_members.heartbeat,
    events.LeaveGroup: consumer_classic_members.leave,
}
RECORDS = consumer_group.RECORDS
answer_again = consumer_heartbeat.answer_again


def loaded(shard: GroupShard, step: Step, group: ConsumerGroup) -> None:
    """All members get a whole session, and those that must give up partitions the whole time for it."""
    session_ms = group_settings.number(shard, group.group_id, "consumer_session_timeout_ms")
    for member in group.members.values():
        group.expect(step, SESSION, member.member_id, session_ms)
        if member.state == UNREVOKED_PARTITIONS:
            group.expect(step, REVOCATION, member.member_id, member.rebalance_timeout_ms)


def resigned(step: Step, group: ConsumerGroup) -> None:
    """No request of a consumer group waits."""


def metadata_changed(shard: GroupShard, step: Step, group: ConsumerGroup, event: events.MetadataChanged) -> None:
    """Remember that the topics must be looked at again: the next heartbeat of a member does it."""
    group.topics_created |= event.has_created
    if any(group.is_subscribed_to(name) for name in event.topics):
        group.topics_changed = True


def _members_timer(shard: GroupShard, step: Step, group: ConsumerGroup, key: tuple[Any, ...]) -> None:
    """Remove a member whose deadline has passed. Each step removes one: what follows depends on who is left."""
    member = group.pop_late_member(step.now)
    if member is not None:
        consumer_leaving.fence(shard, step, group, [member])
    if shard.groups.get(group.group_id) is group:
        group.expect_the_rest(step)


TIMERS = {TIMER_MEMBERS: _members_timer, TIMER_PATTERNS: consumer_patterns.timer_fired}
