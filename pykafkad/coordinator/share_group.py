"""A share group (KIP-932): its members, its target assignment, and which share partitions have delivery state.

The group epoch counts the changes of members, subscriptions and topics. For each epoch the coordinator computes a
target, and each member takes its target over with its next heartbeat: nothing has to be given up first, as members
share partitions. A partition is assigned once the share coordinator has its state (`initialized`).

Only `apply` functions change this, with the records of the log (`share_group_rules.py`). Soft state are the deadlines
of the members, when the share coordinator was last asked, and whether the topics have to be looked at again."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import share_group_records
from pykafkad.coordinator.group_types import SHARE
from pykafkad.coordinator.member import NEVER
from pykafkad.effects import CancelTimer, SetTimer

EMPTY = "Empty"
STABLE = "Stable"

FIRST_EPOCH = 1
"""The epoch of a group before its first member joins."""
LEAVE_EPOCH = -1
JOIN_EPOCH = 0
TIMER_MEMBERS = "members"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.share_assignor import Assignment
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord
    from pykafkad.wire import messages

    Topics = dict[bytes, tuple[str, frozenset[int]]]
    """Topic id to its name and partitions."""


class ShareMember:
    """One member. It is a value: a change makes a copy."""

    __slots__ = (
        "assigned",
        "client_host",
        "client_id",
        "epoch",
        "member_id",
        "previous_epoch",
        "rack_id",
        "topic_names",
    )

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.previous_epoch = -1
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.topic_names: frozenset[str] = frozenset()
        self.assigned: Assignment = {}

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has the target of this epoch: it takes one over at once."""
        return self.epoch == assignment_epoch

    def copy(self, **changes: Any) -> ShareMember:
        """The member with other values of some attributes."""
        twin = ShareMember.__new__(ShareMember)
        for name in ShareMember.__slots__:
            setattr(twin, name, changes[name] if name in changes else getattr(self, name))
        return twin

    def __eq__(self, other: object) -> bool:
        return type(other) is ShareMember and all(
            getattr(self, name) == getattr(other, name) for name in ShareMember.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ShareMember({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class ShareGroup:
    """One group. `targets` has the target of each member. `initializing` and `initialized` are the partitions whose
    delivery state the share coordinator was asked to begin, or has; `deleting` are the topics whose state it was asked
    to delete, with their names. `asked_ms` says when it was last asked to begin the state of a topic.

    `topic_counts` has the number of subscribers of each topic. `all_assigned`: since somebody has looked, nothing has
    changed that could leave a partition without a member."""

    __slots__ = (
        "all_assigned",
        "asked_ms",
        "deadlines",
        "deleting",
        "epoch",
        "group_id",
        "initialized",
        "initializing",
        "members",
        "metadata_hash",
        "target_epoch",
        "target_timestamp_ms",
        "targets",
        "timer_at",
        "topic_counts",
        "topics_changed",
    )

    type = SHARE
    protocol_type: str | None = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        self.initializing: Topics = {}
        self.initialized: Topics = {}
        self.deleting: dict[bytes, str] = {}
        # What follows from the above.
        self.topic_counts: dict[str, int] = {}
        # Soft state.
        self.asked_ms: dict[bytes, int] = {}
        self.deadlines: dict[str, float] = {}
        self.timer_at = NEVER
        self.topics_changed = True
        self.all_assigned = False

    # What a shard asks of a group of any type.

    @property
    def state(self) -> str:
        """Kafka's name of the state."""
        return STABLE if self.members else EMPTY

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def check_commit(self, request: messages.OffsetCommitRequest, has_member_epochs: bool = True) -> int:
        """Share groups have no committed offsets."""
        return errors.GROUP_ID_NOT_FOUND

    def check_fetch(self, member_id: str | None, epoch: int) -> int:
        """The same."""
        return errors.GROUP_ID_NOT_FOUND

    def check_offset_delete(self) -> int:
        """The same."""
        return errors.GROUP_ID_NOT_FOUND

    def check_delete(self) -> int:
        """NONE, or NON_EMPTY_GROUP."""
        return errors.NON_EMPTY_GROUP if self.members else errors.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic."""
        return topic in self.topic_counts

    def offsets_expire_since(self) -> tuple[bool, int | None]:
        """There are none to expire."""
        return False, None

    def tombstones(self) -> list[StoredRecord]:
        """The records that delete the group."""
        return share_group_records.group_tombstones(self.group_id, list(self.members))

    def cancel_timers(self, step: Step) -> None:
        """The group is deleted: no session ends any more."""
        if self.timer_at != NEVER:
            self.timer_at = NEVER
            step.effects.append(CancelTimer((TIMER_MEMBERS, self.group_id)))

    # Members.

    def topic_names(self, changed: ShareMember | None = None) -> dict[str, int]:
        """How many members subscribe to each topic, with one member changed."""
        counts = dict(self.topic_counts)
        if changed is not None:
            _count(counts, self.members.get(changed.member_id), changed)
        return counts

    def put(self, member: ShareMember) -> None:
        """Add or replace a member."""
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        _count(self.topic_counts, before, member)

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is there."""
        _count(self.topic_counts, self.members.pop(member_id, None), None)

    def expect(self, step: Step, member_id: str, timeout_ms: int) -> None:
        """The member's session ends `timeout_ms` from now, unless it sends a heartbeat."""
        deadline = self.deadlines[member_id] = step.now + timeout_ms / 1000
        if deadline < self.timer_at:
            self.set_timer(step, deadline)

    def set_timer(self, step: Step, at: float) -> None:
        """Look at the sessions at that time."""
        self.timer_at = at
        step.effects.append(SetTimer((TIMER_MEMBERS, self.group_id), at))


def _count(counts: dict[str, int], before: ShareMember | None, after: ShareMember | None) -> None:
    """Count what a member subscribes to in place of what it subscribed to."""
    for member, change in ((after, 1), (before, -1)):
        for name in () if member is None else member.topic_names:
            counts[name] = counts.get(name, 0) + change
            if not counts[name]:
                del counts[name]
