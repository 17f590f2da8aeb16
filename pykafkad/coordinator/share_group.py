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
from pykafkad.effects import DELETE_STATE, AskShareState, CancelTimer, SetTimer

EMPTY = "Empty"
STABLE = "Stable"

FIRST_EPOCH = 1
"""The epoch of a group before its first member joins."""
LEAVE_EPOCH = -1
JOIN_EPOCH = 0
TIMER_MEMBERS = "members"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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
    to delete, with their names. `asked_ms` says when it was last asked to begin the state of a topic."""

    __slots__ = (
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
        # Soft state.
        self.asked_ms: dict[bytes, int] = {}
        self.deadlines: dict[str, float] = {}
        self.timer_at = NEVER
        self.topics_changed = True

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
        return any(topic in member.topic_names for member in self.members.values())

    def offsets_expire_since(self) -> tuple[bool, int | None]:
        """There are none to expire."""
        return False, None

    def tombstones(self) -> list[StoredRecord]:
        """The records that delete the group."""
        return share_group_records.group_tombstones(self.group_id, list(self.members))

    def cancel_timers(self, step: Step) -> None:
        """The group is deleted: no session ends any more, and the delivery state of its partitions goes."""
        if self.timer_at != NEVER:
            self.timer_at = NEVER
            step.effects.append(CancelTimer((TIMER_MEMBERS, self.group_id)))
        topics = {
            topic_id: dict.fromkeys(partitions, -1)
            for known in (self.initializing, self.initialized)
            for topic_id, (_, partitions) in known.items()
        }
        if topics:
            step.effects.append(AskShareState(DELETE_STATE, self.group_id, topics, self.epoch, None))

    # Members.

    def topic_names(self, changed: ShareMember | None = None, gone: Sequence[str] = ()) -> dict[str, int]:
        """How many members subscribe to each topic, with one member changed or some gone."""
        counts: dict[str, int] = {}
        members = {**self.members, changed.member_id: changed} if changed is not None else self.members
        for member_id, member in members.items():
            if member_id not in gone:
                for name in sorted(member.topic_names):
                    counts[name] = counts.get(name, 0) + 1
        return counts

    def expect(self, step: Step, member_id: str, timeout_ms: int) -> None:
        """The member's session ends `timeout_ms` from now, unless it sends a heartbeat."""
        deadline = self.deadlines[member_id] = step.now + timeout_ms / 1000
        if deadline < self.timer_at:
            self.set_timer(step, deadline)

    def set_timer(self, step: Step, at: float) -> None:
        """Look at the sessions at that time."""
        self.timer_at = at
        step.effects.append(SetTimer((TIMER_MEMBERS, self.group_id), at))
