"""The way of one member of a consumer group from its present assignment to its target (KIP-848).

A partition is given to a member only when no other member has it. So a member first gives up what it shall no longer
have, and stays in its epoch until a heartbeat shows that it did. Then it moves to the epoch of the target and gets the
partitions that are free. For the others it waits: each heartbeat gives it those that have become free.
"""

from __future__ import annotations

from pykafkad.coordinator.consumer_member import (
    STABLE,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ConsumerMember,
)
from pykafkad.errors import FENCED_MEMBER_EPOCH, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafkad.coordinator.assignors import Assignment
    from pykafkad.coordinator.consumer_member import Partitions

    Owned = Mapping[bytes, frozenset[int] | set[int]]
    """Topic id to the partitions that a member says it has."""


class Reconciliation:
    """One step of one member.

    `target` is the member's target of `target_epoch`, `topic_ids` the ids of the topics that it subscribes to now.
    `is_free(topic_id, partition)` says whether no member has a partition. `owned` is None when the heartbeat did not
    say what the member has."""

    __slots__ = ("is_free", "member", "owned", "target", "target_epoch", "topic_ids")

    def __init__(
        self,
        member: ConsumerMember,
        target_epoch: int,
        target: Assignment,
        topic_ids: frozenset[bytes],
        is_free: Callable[[bytes, int], bool],
        owned: Owned | None,
    ) -> None:
        self.member = member
        self.target_epoch = target_epoch
        self.target = target
        self.topic_ids = topic_ids
        self.is_free = is_free
        self.owned = owned

    def next(self, subscription_changed: bool) -> ConsumerMember:
        """The member after the step; the same object when nothing can be done. Raises `KafkaError`
        (FENCED_MEMBER_EPOCH) for a member in a state of a later version, unless it owns nothing."""
        member = self.member
        if member.state == STABLE:
            if member.epoch != self.target_epoch:
                return self._towards_target(member.epoch)
            return self._shrunk() if subscription_changed else member
        if member.state == UNREVOKED_PARTITIONS:
            if self._has_any(member.revoking):
                return self._shrunk() if subscription_changed else member
            return self._towards_target(member.epoch)
        if member.state == UNRELEASED_PARTITIONS:
            return self._towards_target(member.epoch)
        if self.owned is None or self.owned:
            raise KafkaError(
                FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return self._towards_target(self.target_epoch)

    def _has_any(self, partitions: Partitions) -> bool:
        """Whether the member still has one of the partitions, as far as the heartbeat tells."""
        if self.owned is None:
            return True
        return any(
            partition in partitions.get(topic_id, ()) for topic_id, owned in self.owned.items() for partition in owned
        )

    def _shrunk(self) -> ConsumerMember:
        """The member without the partitions of topics that it no longer subscribes to."""
        member = self.member
        gone = [topic_id for topic_id in member.assigned if topic_id not in self.topic_ids]
        if not gone:
            return member
        assigned = {topic_id: each for topic_id, each in member.assigned.items() if topic_id in self.topic_ids}
        revoking = dict(member.revoking)
        for topic_id in gone:
            revoking[topic_id] = {**revoking.get(topic_id, {}), **member.assigned[topic_id]}
        if self._has_any(revoking):
            return member.moved_to(member.epoch, UNREVOKED_PARTITIONS, assigned, revoking)
        return member.moved_to(member.epoch, member.state, assigned, member.revoking)

    def _towards_target(self, epoch: int) -> ConsumerMember:
        """The member one step nearer to its target: it gives partitions up, gets free ones, or waits for others."""
        member = self.member
        assigned: Partitions = {}
        revoking: Partitions = {}
        free: dict[bytes, list[int]] = {}
        waits = False
        for topic_id in {**self.target, **member.assigned}:
            wanted = self.target.get(topic_id, frozenset()) if topic_id in self.topic_ids else frozenset()
            present = member.assigned.get(topic_id, {})
            kept = {partition: since for partition, since in present.items() if partition in wanted}
            if kept:
                assigned[topic_id] = kept
            if len(kept) < len(present):
                revoking[topic_id] = {
                    partition: since for partition, since in present.items() if partition not in wanted
                }
            own_revoking = member.revoking.get(topic_id, ())
            for partition in sorted(wanted - kept.keys()):
                # What the member itself is giving up is free for it: no other member can have it.
                if partition in own_revoking or self.is_free(topic_id, partition):
                    free.setdefault(topic_id, []).append(partition)
                else:
                    waits = True
        if revoking and self._has_any(revoking):
            return member.moved_to(epoch, UNREVOKED_PARTITIONS, assigned, revoking)
        for topic_id, partitions in free.items():
            assigned[topic_id] = {**assigned.get(topic_id, {}), **dict.fromkeys(partitions, self.target_epoch)}
        return member.moved_to(self.target_epoch, UNRELEASED_PARTITIONS if waits else STABLE, assigned, {})
