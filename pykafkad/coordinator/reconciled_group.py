"""What consumer groups (KIP-848) and streams groups (KIP-1071) have in common: members that are reconciled to a target.

The coordinator computes a target for each epoch of the group. A member moves to its target step by step: it gives up
what it shall not have any more, and gets what no other member holds. Each step has a deadline.

Share groups are no such groups: their members take a target over at once.
"""

from __future__ import annotations

from pykafkad.coordinator.member import NEVER
from pykafkad.effects import CancelTimer, SetTimer
from pykafkad.errors import NON_EMPTY_GROUP, NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID

EMPTY = "Empty"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
STABLE = "Stable"

FIRST_EPOCH = 1
"""The epoch of a group before its first member joins."""
NO_TARGET_EPOCH = -1

SESSION = "session"
REVOCATION = "revocation"
"""The deadlines of a member: the end of its session, and the end of the time in which it must give up what it shall not
have any more."""

TIMER_MEMBERS = "members"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.step import Step


class ReconciledGroup:
    """One group. `targets` has the target of each member. `deadlines` maps kind and member id to the second at which
    the member is removed. `topics_changed` is true when the topics of the group must be looked at again."""

    __slots__ = (
        "deadlines",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "target_epoch",
        "target_timestamp_ms",
        "targets",
        "timer_at",
        "topics_changed",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, Any] = {}
        self.targets: dict[str, Any] = {}
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        # Soft state.
        self.deadlines: dict[tuple[str, str], float] = {}
        self.timer_at = NEVER
        self.topics_changed = True

    # What a shard asks of a group of any type.

    @property
    def state(self) -> str:
        """Kafka's name of the state. It follows from the epochs and members."""
        if not self.members:
            return EMPTY
        if self.epoch > self.target_epoch:
            return ASSIGNING
        reconciled = all(member.is_reconciled_to(self.target_epoch) for member in self.members.values())
        return STABLE if reconciled else RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def check_delete(self) -> int:
        """NONE, or NON_EMPTY_GROUP."""
        return NON_EMPTY_GROUP if self.members else NONE

    def check_offset_delete(self) -> int:
        """NONE: the topics that the members read are refused topic by topic."""
        return NONE

    def offsets_expire_since(self) -> tuple[bool, int | None]:
        """Offsets of topics that no member reads expire, each from its commit on."""
        return True, None

    def check_fetch(self, member_id: str | None, epoch: int) -> int:
        """The error code that refuses an OffsetFetch, or NONE. Administrators name no member."""
        if member_id is None and epoch < 0:
            return NONE
        member = None if member_id is None else self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else self.stale_error(member)

    @staticmethod
    def stale_error(member: Any) -> int:
        """The error of a request with another epoch than the member's."""
        return STALE_MEMBER_EPOCH

    # Deadlines. One timer per group is set to the earliest.

    def expect(self, step: Step, kind: str, member_id: str, timeout_ms: int) -> None:
        """Set a deadline of a member, in place of an earlier one of this kind."""
        at = step.now + timeout_ms / 1000
        self.deadlines[kind, member_id] = at
        if at < self.timer_at:
            self._set_timer(step, at)

    def cancel(self, kind: str, member_id: str) -> None:
        """Forget a deadline. The timer may fire for nothing."""
        self.deadlines.pop((kind, member_id), None)

    def pop_late_member(self, now: float) -> Any:
        """The timer has fired: the member whose deadline was the earliest, if that has passed, or None. The deadline is
        forgotten. It may be one of a member that is gone."""
        self.timer_at = NEVER
        deadlines = self.deadlines
        if not deadlines:
            return None
        kind, member_id = min(deadlines, key=deadlines.__getitem__)
        if deadlines[kind, member_id] > now:
            return None
        del deadlines[kind, member_id]
        return self.members.get(member_id)

    def expect_the_rest(self, step: Step) -> None:
        """The timer has fired: set it to the earliest deadline that is left."""
        if self.deadlines:
            self._set_timer(step, min(self.deadlines.values()))

    def cancel_timers(self, step: Step) -> None:
        """Cancel all timers of the group, which is deleted."""
        self.deadlines.clear()
        if self.timer_at != NEVER:
            self.timer_at = NEVER
            step.effects.append(CancelTimer((TIMER_MEMBERS, self.group_id)))

    def _set_timer(self, step: Step, at: float) -> None:
        self.timer_at = at
        step.effects.append(SetTimer((TIMER_MEMBERS, self.group_id), at))
