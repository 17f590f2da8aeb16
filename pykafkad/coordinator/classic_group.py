"""A group of the classic protocol: its members, phase and generation, and the questions that can be asked of it.

Two kinds of state live here. *Hard* is what the last GroupMetadata record says: generation, protocol, leader, members
and assignments of the last completed rebalance; only `adopt` sets it. *Soft* is the rebalance under way: who asked to
join or sync, who is expected when. A coordinator that restarts forgets the soft part, and members rejoin, as in Kafka.
"""

from __future__ import annotations

from pykafkad.coordinator import consumer_protocol
from pykafkad.coordinator.group_states import (
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    TRANSITIONS,
)
from pykafkad.coordinator.member import NEVER, Member
from pykafkad.errors import FENCED_INSTANCE_ID, ILLEGAL_GENERATION, NONE, UNKNOWN_MEMBER_ID


class ClassicGroup:
    """One group. `protocol_type`, `protocol_name` and `leader_id` are None while there is none; `state_timestamp_ms` is
    -1 when unknown. `members` keeps the order of arrival, so the eldest is next in line to lead."""

    __slots__ = (
        "arriving",
        "generation",
        "group_id",
        "initial_delay_ms",
        "join_deadline",
        "leader_id",
        "members",
        "new_member_added",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol_counts",
        "protocol_name",
        "protocol_type",
        "remaining_delay_ms",
        "session_timer_at",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "sync_deadline",
    )

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.previous_state: str | None = None
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # instance id: member id
        self.subscribed_topics: frozenset[str] | None = None
        self.pending_joins: dict[str, float] = {}  # member id that was given out: when it lapses
        self.pending_syncs: set[str] = set()
        self.arriving: dict[str, Member] = {}  # members that a record just appended brings in
        self.protocol_counts: dict[str, int] = {}
        self.new_member_added = False
        self.initial_delay_ms = self.remaining_delay_ms = 0
        self.join_deadline = self.sync_deadline = self.session_timer_at = NEVER

    def transition(self, state: str, now_ms: int) -> None:
        """Move to `state`, which must be one that the table allows."""
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state} to {state}")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def adopt(self, value: object) -> None:
        """Make the hard state what a GroupMetadataValue says: the only place that does.

        A rebalance that has begun since the record was written is newer than it and is left alone: that is the record
        that only notes that a group exists, written when its first member knocks.
        """
        if self.state is PREPARING_REBALANCE and value.generation <= self.generation:
            return
        # Members that have joined this very generation are kept: they know more than the record, such as all their
        # protocols. On load the members of an older record are no match for those of a newer one.
        present = self.members if value.generation == self.generation else {}
        self.members, self.static_members, self.protocol_counts = {}, {}, {}
        self.previous_state = self.state
        self.state = STABLE if value.members else EMPTY
        self.state_timestamp_ms = value.current_state_timestamp
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.leader_id = value.leader
        for stored in value.members:
            member = present.get(stored.member_id) or self.arriving.get(stored.member_id)
            if member is None:
                member = self._loaded_member(stored)
            member.assignment = bytes(stored.assignment)
            self._insert(member)
        self.arriving.clear()
        self.pending_syncs.intersection_update(self.members)
        self.subscribed_topics = self.find_subscribed_topics()

    def _loaded_member(self, stored: object) -> Member:
        """A member as a record remembers it: of its protocols only the chosen one is kept."""
        return Member(
            stored.member_id,
            stored.group_instance_id,
            stored.client_id,
            stored.client_host,
            stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
            stored.session_timeout,
            self.protocol_type or "",
            ((self.protocol_name or "", bytes(stored.subscription)),),
        )

    # Membership.

    def add(self, member: Member) -> None:
        """Take in a newcomer. The first of a group gives it its protocol type, and leads."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.pending_joins.pop(member.member_id, None)
        self._insert(member)

    def _insert(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._count_protocols(member, 1)

    def remove(self, member_id: str) -> None:
        """Let a member go, or a pending one; a leader that goes is followed by the eldest."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)

    def replace(self, old_member_id: str, member: Member) -> None:
        """Put `member` in the place of one with the same instance id."""
        leads = self.leader_id == old_member_id
        self._count_protocols(self.members.pop(old_member_id), -1)
        self.pending_syncs.discard(old_member_id)
        self._insert(member)
        if leads:
            self.leader_id = member.member_id

    def update(self, member: Member, request: object, protocols: tuple[tuple[str, bytes], ...]) -> None:
        """Note what a member says when it joins again."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms

    def _count_protocols(self, member: Member, change: int) -> None:
        counts = self.protocol_counts
        for name in {name for name, _ in member.protocols}:
            counts[name] = counts.get(name, 0) + change
            if not counts[name]:
                del counts[name]

    def check_member(self, member_id: str, instance_id: str | None) -> int:
        """NONE if the member may speak for the group, else the error that says why not (KIP-345 for instance ids)."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                return UNKNOWN_MEMBER_ID
            if known != member_id:
                return FENCED_INSTANCE_ID
        return NONE if member_id in self.members else UNKNOWN_MEMBER_ID

    def check_member_of_generation(self, member_id: str, instance_id: str | None, generation: int) -> int:
        """As `check_member`, and then ILLEGAL_GENERATION for a member that speaks of another generation than this one."""
        error_code = self.check_member(member_id, instance_id)
        if error_code:
            return error_code
        return NONE if generation == self.generation else ILLEGAL_GENERATION

    def has_all_joined(self) -> bool:
        return not self.pending_joins and all(member.join_token is not None for member in self.members.values())

    def awaiting_join_count(self) -> int:
        return sum(1 for member in self.members.values() if member.join_token is not None)

    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is a member that has joined; False when nobody has."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is None:
            return False
        if leader.join_token is None:
            joined = next((member for member in self.members.values() if member.join_token is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True

    # Protocols.

    def supports(self, protocol_type: str, names: list[str]) -> bool:
        """Whether a member with these protocols can be in the group: there must be one that all others have too."""
        if self.state is EMPTY:
            return bool(protocol_type and names)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(self.protocol_counts.get(name, 0) == count for name in names)

    def select_protocol(self, replaced: str | None = None, replacement: Member | None = None) -> str:
        """The protocol that all support and most members prefer; as it would be with one member replaced by another."""
        members = [replacement if member.member_id == replaced else member for member in self.members.values()]
        candidates = set.intersection(*({name for name, _ in member.protocols} for member in members))
        votes: dict[str, int] = {}
        for member in members:
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == consumer_protocol.PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member wants the topic; a consumer group whose subscriptions are unreadable may want any."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol()
        return topic in self.subscribed_topics

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """The topics of all members, for a `consumer` group whose metadata can be read; else None."""
        if not self.uses_consumer_protocol() or (self.members and self.protocol_name is None):
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscription = consumer_protocol.subscribed_topics(member.metadata(self.protocol_name))
            if subscription is None:
                return None
            topics |= subscription
        return frozenset(topics)
