"""A group of the classic protocol: its members, its state and its generation.

A group has two kinds of state. The hard state is the content of the last GroupMetadata record: generation, protocol,
leader, members and assignments of the last completed rebalance. Only `adopt` sets it. The soft state belongs to the
rebalance under way: delayed requests and deadlines. A coordinator that restarts loses the soft state, and the members
join again, as in Kafka.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import consumer_protocol, record_codec
from pykafkad.coordinator.group_states import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    TRANSITIONS,
)
from pykafkad.coordinator.group_types import CLASSIC
from pykafkad.coordinator.member import NEVER, Member
from pykafkad.errors import FENCED_INSTANCE_ID, ILLEGAL_GENERATION, NON_EMPTY_GROUP, NONE, UNKNOWN_MEMBER_ID
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord


class ClassicGroup:
    """One group. `protocol_type`, `protocol_name` and `leader_id` are None while the group has none.
    `state_timestamp_ms` is -1 when unknown. `members` is in the order in which they joined: when the leader leaves, the
    oldest member becomes the leader."""

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
        "rebalance_began",
        "remaining_delay_ms",
        "session_timer_at",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "sync_deadline",
    )

    type = CLASSIC

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
        self.static_members: dict[str, str] = {}  # Instance id to member id.
        self.subscribed_topics: frozenset[str] | None = None
        # Member ids that were given to clients which have not joined with them yet, and when each expires.
        self.pending_joins: dict[str, float] = {}
        self.pending_syncs: set[str] = set()
        # Members that the GroupMetadata record just appended will add to the group when it is applied.
        self.arriving: dict[str, Member] = {}
        self.protocol_counts: dict[str, int] = {}
        self.new_member_added = False
        self.initial_delay_ms = self.remaining_delay_ms = 0
        self.join_deadline = self.sync_deadline = self.session_timer_at = NEVER
        # The second at which the rebalance under way began.
        self.rebalance_began = NEVER

    def transition(self, state: str, now_ms: int) -> None:
        """Move to `state`, which must be one that the table allows."""
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state} to {state}")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def adopt(self, value: messages.GroupMetadataValue) -> None:
        """Set the hard state to the content of a record. No other function sets it.

        The record is ignored when a newer rebalance is under way. This happens to the first record of a group, which
        is written when its first member joins and says only that the group exists.
        """
        if self.state is PREPARING_REBALANCE and value.generation <= self.generation:
            return
        # The members of the same generation are kept: they hold more than the record does, such as all their
        # protocols. While a log is loaded, a newer record replaces the members of an older one.
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

    def _loaded_member(self, stored: messages.GroupMetadataValue.MemberMetadata) -> Member:
        """A member made from a record, which holds only the chosen one of the member's protocols."""
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
        """Add a new member. The first member of a group sets its protocol type and becomes its leader."""
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
        """Remove a member, or a member id that nobody has joined with yet. A removed leader is replaced by the oldest
        member."""
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
        """Replace a member by one with the same instance id."""
        was_leader = self.leader_id == old_member_id
        self._count_protocols(self.members.pop(old_member_id), -1)
        self.pending_syncs.discard(old_member_id)
        self._insert(member)
        if was_leader:
            self.leader_id = member.member_id

    def update(
        self, member: Member, request: messages.JoinGroupRequest, protocols: tuple[tuple[str, bytes], ...]
    ) -> None:
        """Take over the properties that a member gives when it joins again."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms

    def _count_protocols(self, member: Member, change: int) -> None:
        counts = self.protocol_counts
        for name in dict.fromkeys(name for name, _ in member.protocols):
            counts[name] = counts.get(name, 0) + change
            if not counts[name]:
                del counts[name]

    def check_member(self, member_id: str, instance_id: str | None) -> int:
        """NONE when the group has this member, else the error (KIP-345 for instance ids)."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                return UNKNOWN_MEMBER_ID
            if known != member_id:
                return FENCED_INSTANCE_ID
        return NONE if member_id in self.members else UNKNOWN_MEMBER_ID

    def check_member_of_generation(self, member_id: str, instance_id: str | None, generation: int) -> int:
        """Like `check_member`, and ILLEGAL_GENERATION when `generation` is not the group's current one."""
        error_code = self.check_member(member_id, instance_id)
        if error_code:
            return error_code
        return NONE if generation == self.generation else ILLEGAL_GENERATION

    def check_commit(self, request: messages.OffsetCommitRequest, has_member_epochs: bool = True) -> int:
        """The error code that refuses a commit of offsets as a whole, or NONE.

        Administrators, and consumers that choose their partitions themselves, commit with generation -1. They may do
        so while the group has no members.
        """
        generation = request.generation_id_or_member_epoch
        if generation < 0 and self.state is EMPTY:
            return NONE
        if generation >= 0 or request.member_id or request.group_instance_id is not None:
            error_code = self.check_member_of_generation(request.member_id, request.group_instance_id, generation)
            if error_code:
                return error_code
        elif self.state is not EMPTY:
            return UNKNOWN_MEMBER_ID
        return errors.REBALANCE_IN_PROGRESS if self.state is COMPLETING_REBALANCE else NONE

    def described(self) -> messages.DescribeGroupsResponse.DescribedGroup:
        """The description of the group. The members' metadata is left out unless the group is stable."""
        stable = self.state is STABLE
        return messages.DescribeGroupsResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self.protocol_type or "",
            protocol_data=(self.protocol_name or "") if stable else "",
            members=[
                messages.DescribeGroupsResponse.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(self.protocol_name) if stable else b"",
                    member_assignment=member.assignment,
                )
                for member in self.members.values()
            ],
        )

    # What a shard asks of a group of any type.

    def check_fetch(self, member_id: str | None, epoch: int) -> int:
        """NONE: members of the classic protocol may always read offsets."""
        return NONE

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, and none that join."""
        return self.state is EMPTY

    def check_delete(self) -> int:
        """The error code that refuses a DeleteGroups, or NONE."""
        return NONE if self.state is EMPTY else NON_EMPTY_GROUP

    def check_offset_delete(self) -> int:
        """The error code that refuses an OffsetDelete as a whole, or NONE."""
        return NONE if self.state is EMPTY or self.uses_consumer_protocol() else NON_EMPTY_GROUP

    def offsets_expire_since(self) -> tuple[bool, int | None]:
        """Whether offsets of the group can expire now, and the time in ms from which their retention counts; None: from
        the commit of each.

        The retention time begins when the group becomes empty. For offsets of a simple consumer, and for topics that a
        stable consumer group no longer subscribes to, it begins with the commit (KIP-211, KIP-496).
        """
        if self.protocol_type is None:
            return True, None
        if self.state is EMPTY:
            return True, self.state_timestamp_ms if self.state_timestamp_ms != record_codec.NO_TIMESTAMP else None
        return self.subscribed_topics is not None and self.state is STABLE, None

    def tombstones(self) -> list[StoredRecord]:
        """The record that deletes the group, without its offsets."""
        return [record_codec.group_tombstone(self.group_id)]

    def cancel_timers(self, step: Step) -> None:
        """Cancel all timers of the group, which is deleted."""
        step.cancel_timers(self)

    def has_all_joined(self) -> bool:
        return not self.pending_joins and all(member.join_token is not None for member in self.members.values())

    def awaiting_join_count(self) -> int:
        return sum(1 for member in self.members.values() if member.join_token is not None)

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader, unless the leader has joined. False when no member has joined."""
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
        """Whether a member with these protocols can join: every member must support at least one of them."""
        if self.state is EMPTY:
            return bool(protocol_type and names)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(self.protocol_counts.get(name, 0) == count for name in names)

    def select_protocol(self, replaced: str | None = None, replacement: Member | None = None) -> str:
        """The protocol that all members support and most prefer.

        With `replaced` (a member id) and `replacement`, the answer is for the group with one member replaced.
        """
        members = [
            replacement if replacement is not None and member.member_id == replaced else member
            for member in self.members.values()
        ]
        candidates = set.intersection(*({name for name, _ in member.protocols} for member in members))
        votes: dict[str, int] = {}
        for member in members:
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == consumer_protocol.PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic. True for a consumer group whose subscriptions cannot be decoded."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol()
        return topic in self.subscribed_topics

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """The topics that the members of a `consumer` group subscribe to. None for other groups, and when the metadata
        of a member cannot be decoded."""
        if not self.uses_consumer_protocol() or (self.members and self.protocol_name is None):
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscription = consumer_protocol.subscribed_topics(member.metadata(self.protocol_name))
            if subscription is None:
                return None
            topics |= subscription
        return frozenset(topics)
