"""The context of one `GroupShard.step`: time, settings, random numbers, and the effects that the step returns."""

from __future__ import annotations

from pykafkad.coordinator.member import NEVER, Member
from pykafkad.effects import TOLD_PER_STEP, Append, CancelTimer, Reply, SetTimer, StoredRecord, Tell

TIMER_SESSION = "session"
TIMER_JOIN = "join"
TIMER_SYNC = "sync"
TIMER_DELETION = ("deletion",)
"""More committed offsets are to be deleted."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.config import Settings
    from pykafkad.coordinator.classic_group import ClassicGroup
    from pykafkad.coordinator.target_computation import TargetComputation


class Step:
    """One step under way. `now` is in monotonic seconds; `now_ms` is the wall clock, for the timestamps of records.
    `computation` is that of a target, if the step asks for one. `has_written` is true when there are records."""

    __slots__ = (
        "_more",
        "_told",
        "computation",
        "effects",
        "has_written",
        "log",
        "now",
        "now_ms",
        "random",
        "settings",
    )

    def __init__(self, log: tuple[str, int], settings: Settings, random: Random, now: float, now_ms: int) -> None:
        self.log = log
        self.settings = settings
        self.random = random
        self.now = now
        self.now_ms = now_ms
        self.effects: list[object] = []
        self.computation: TargetComputation | None = None
        self.has_written = False
        self._told = 0
        self._more: Tell | None = None

    def reply(self, token: object, message: object) -> None:
        self.effects.append(Reply(token, message))

    def append(self, records: list[StoredRecord]) -> None:
        """Write the records as one batch. Every reply after it in the list waits until the batch is committed."""
        self.has_written = True
        self.effects.append(Append(self.log, records))

    def tell(self, event: str, /, **fields: object) -> None:
        """Tell people of a change, up to `TOLD_PER_STEP` times. Those above it are one `Tell` with their number."""
        self._told += 1
        if self._told <= TOLD_PER_STEP:
            self.effects.append(Tell(event, fields))
            return
        if self._more is None:
            self._more = Tell("more-changes", {})
            self.effects.append(self._more)
        self._more.fields["count"] = self._told - TOLD_PER_STEP

    def new_member_id(self, prefix: str) -> str:
        """A member id in Kafka's form: `prefix`, a dash and a random UUID (version 4)."""
        bits = self.random.getrandbits(128) & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        text = f"{bits:032x}"
        return f"{prefix}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    # Sessions. A heartbeat only moves the deadline of its member. One timer per group is set to the earliest deadline
    # and checks all members when it fires. So a stable group sets one timer per session timeout, not one per heartbeat.

    def expect_heartbeat(self, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
        """Set the member's deadline to `timeout_ms` from now, by default to its session timeout."""
        deadline = self.now + (member.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        member.session_deadline = deadline
        if deadline < group.session_timer_at:
            self.set_session_timer(group, deadline)

    def expect_join(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Keep a member id that was given to a client, which has `timeout_ms` to join with it."""
        deadline = self.now + timeout_ms / 1000
        group.pending_joins[member_id] = deadline
        if deadline < group.session_timer_at:
            self.set_session_timer(group, deadline)

    def set_session_timer(self, group: ClassicGroup, at: float) -> None:
        group.session_timer_at = at
        if at != NEVER:
            self.effects.append(SetTimer((TIMER_SESSION, group.group_id), at))

    # The two phases of a rebalance.

    def set_join_timer(self, group: ClassicGroup, delay_ms: int) -> None:
        group.join_deadline = self.now + delay_ms / 1000
        self.effects.append(SetTimer((TIMER_JOIN, group.group_id), group.join_deadline))

    def set_sync_timer(self, group: ClassicGroup, delay_ms: int) -> None:
        group.sync_deadline = self.now + delay_ms / 1000
        self.effects.append(SetTimer((TIMER_SYNC, group.group_id), group.sync_deadline))

    def cancel_join_timer(self, group: ClassicGroup) -> None:
        if group.join_deadline != NEVER:
            group.join_deadline = NEVER
            self.effects.append(CancelTimer((TIMER_JOIN, group.group_id)))

    def cancel_sync_timer(self, group: ClassicGroup) -> None:
        if group.sync_deadline != NEVER:
            group.sync_deadline = NEVER
            self.effects.append(CancelTimer((TIMER_SYNC, group.group_id)))

    def cancel_timers(self, group: ClassicGroup) -> None:
        """Cancel all timers of a group that is deleted."""
        self.cancel_join_timer(group)
        self.cancel_sync_timer(group)
        if group.session_timer_at != NEVER:
            group.session_timer_at = NEVER
            self.effects.append(CancelTimer((TIMER_SESSION, group.group_id)))
