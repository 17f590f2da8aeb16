"""What one `GroupShard.step` has at hand: the time, the settings, chance, and the list of effects it fills."""

from __future__ import annotations

from pykafkad.coordinator.member import NEVER, Member
from pykafkad.effects import Append, CancelTimer, Reply, SetTimer, StoredRecord

TIMER_SESSION = "session"
TIMER_JOIN = "join"
TIMER_SYNC = "sync"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.coordinator.classic_group import ClassicGroup


class Step:
    """One step under way. Times are `now` in monotonic seconds and `now_ms` as records are stamped."""

    __slots__ = ("effects", "log", "now", "now_ms", "random", "settings")

    def __init__(self, log: tuple[str, int], settings: object, random: Random, now: float, now_ms: int) -> None:
        self.log = log
        self.settings = settings
        self.random = random
        self.now = now
        self.now_ms = now_ms
        self.effects: list[object] = []

    def reply(self, token: object, message: object) -> None:
        self.effects.append(Reply(token, message))

    def append(self, records: list[StoredRecord]) -> None:
        """Write the records as one batch; every reply that follows waits for it."""
        self.effects.append(Append(self.log, records))

    def new_member_id(self, prefix: str) -> str:
        """`prefix` and a random UUID (version 4), as Kafka names members."""
        bits = self.random.getrandbits(128) & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        text = f"{bits:032x}"
        return f"{prefix}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    # Sessions. A heartbeat only moves its member's deadline; one timer per group looks at them when the earliest that
    # it knew of has come. So a stable group costs one timer per session timeout, not one per heartbeat.

    def expect_heartbeat(self, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
        """Give the member `timeout_ms` (its session timeout) from now."""
        deadline = self.now + (member.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        member.session_deadline = deadline
        if deadline < group.session_timer_at:
            self.set_session_timer(group, deadline)

    def expect_join(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Remember an id that was given out, for as long."""
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
        """Forget everything that was to happen to a group that is deleted."""
        self.cancel_join_timer(group)
        self.cancel_sync_timer(group)
        if group.session_timer_at != NEVER:
            group.session_timer_at = NEVER
            self.effects.append(CancelTimer((TIMER_SESSION, group.group_id)))
