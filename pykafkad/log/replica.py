"""This broker's replica of one partition: its role, who is in sync with it, and what is committed.

Pure. The replica is told of appends, fetches of followers, syncs, changes of the metadata and time, and returns
effects: `Committed` and `ProposeIsr`. The rules are Kafka's (`Partition.scala`, `Replica.java` of 4.3):

* Records are committed when the leader and every member of the *maximal* ISR have them. The maximal ISR is the ISR of
  the metadata together with the followers that the leader has proposed to add. A follower that is about to join holds
  the high watermark back, too.
* Nothing is committed while the ISR is smaller than `min.insync.replicas`, or than the number of replicas if that is
  less.
* A follower joins the ISR when it has everything up to the high watermark and up to the start of the leader's epoch. It
  leaves when it has not been at the leader's end for `replica.lag.time.max.ms`.
* One proposal is under way at a time; it ends with a change of the metadata, or with a refusal.

A leader without followers that count needs none of this: `commits_alone` says that what it has written is committed, so
that the shell need not ask."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class State(Protocol):
        """What the metadata says of a partition."""

        leader: int
        leader_epoch: int
        partition_epoch: int
        replicas: tuple[int, ...]
        isr: tuple[int, ...]

        @property
        def lost(self) -> tuple[int, ...]:
            """The replicas whose log is out of service."""

    Effects = tuple[object, ...]

NONE = "none"
LEADER = "leader"
FOLLOWER = "follower"

UNKNOWN = -1
_NEVER = float("-inf")

Committed = namedtuple("Committed", ("end_offset",))
Committed.__doc__ = "The high watermark rose to `end_offset`."
ProposeIsr = namedtuple("ProposeIsr", ("isr", "leader_epoch", "partition_epoch"))
ProposeIsr.__doc__ = "Ask the controller for another ISR (AlterPartition); it compares both epochs."
NOTHING: Effects = ()


class _Follower:
    """What the leader knows of another replica. Times are monotonic seconds."""

    __slots__ = ("broker_epoch", "caught_up_at", "end_offset", "fetched_at", "leader_end_offset", "log_start_offset")

    def __init__(self, caught_up_at: float) -> None:
        self.end_offset = self.log_start_offset = UNKNOWN
        self.broker_epoch: int | None = None
        self.caught_up_at = caught_up_at
        self.fetched_at = _NEVER
        self.leader_end_offset = UNKNOWN

    def fetched(self, offset: int, leader_end_offset: int, broker_epoch: int, now: float) -> None:
        """A fetch at the leader's end says that the follower is caught up. A fetch at the end that the leader had at
        the last fetch says that it was then."""
        if offset >= leader_end_offset:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end_offset:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end_offset = offset
        self.leader_end_offset = max(self.leader_end_offset, leader_end_offset)
        self.fetched_at = now
        self.broker_epoch = broker_epoch

    def is_still_caught_up(self, now: float) -> None:
        """It fetches at the leader's end, as it did before."""
        self.caught_up_at = self.fetched_at = now

    def is_caught_up(self, leader_end_offset: int, now: float, lag_seconds: float) -> bool:
        return self.end_offset == leader_end_offset or now - self.caught_up_at <= lag_seconds


class Replica:
    """`alive_epoch(broker)` is the epoch of a broker that is neither fenced nor about to stop, else None.

    `high_watermark` falls by `truncated` alone. `has_min_isr` says that the ISR is large enough for acks=all. While
    `commits_alone`, the shell need not tell of appends; before it does again it calls `opened`."""

    __slots__ = (
        "_alive_epoch",
        "_broker_id",
        "_followers",
        "_lag_seconds",
        "_lost",
        "_min_insync_replicas",
        "_own_end_offset",
        "_proposed",
        "_replica_count",
        "commits_alone",
        "end_offset",
        "epoch_start_offset",
        "has_min_isr",
        "high_watermark",
        "isr",
        "leader_epoch",
        "partition_epoch",
        "role",
    )

    def __init__(
        self,
        broker_id: int,
        alive_epoch: Callable[[int], int | None],
        *,
        lag_seconds: float = 30.0,
        min_insync_replicas: int = 1,
    ) -> None:
        self._broker_id = broker_id
        self._alive_epoch = alive_epoch
        self._lag_seconds = lag_seconds
        self._min_insync_replicas = min_insync_replicas
        self._followers: dict[int, _Follower] = {}
        self._proposed: tuple[int, ...] | None = None
        self._lost: tuple[int, ...] = ()
        self._replica_count = 1
        self.role = NONE
        self.leader_epoch = self.partition_epoch = UNKNOWN
        self.isr: tuple[int, ...] = ()
        self.end_offset = self._own_end_offset = self.epoch_start_offset = UNKNOWN
        self.high_watermark = 0
        self.has_min_isr = self.commits_alone = False

    # -- what the replica is told --------------------------------------------------------------------------------------

    def opened(self, end_offset: int, high_watermark: int) -> None:
        """The log is open: where it ends, and what is known to be committed."""
        if self.end_offset == UNKNOWN:
            self.epoch_start_offset = end_offset
        self.end_offset = self._own_end_offset = end_offset
        self.high_watermark = min(high_watermark, end_offset)

    def settings_changed(self, *, min_insync_replicas: int) -> None:
        """The topic's `min.insync.replicas` may have changed."""
        self._min_insync_replicas = min_insync_replicas
        self._look_at_isr()

    def image_changed(self, state: State, now: float) -> Effects:
        """The metadata says something new of the partition. A state older than the known one changes nothing."""
        if (state.leader_epoch, state.partition_epoch) < (self.leader_epoch, self.partition_epoch):
            return NOTHING
        is_new_epoch = state.leader_epoch != self.leader_epoch
        self.leader_epoch, self.partition_epoch = state.leader_epoch, state.partition_epoch
        self._replica_count, self._lost = len(state.replicas), state.lost
        self._proposed = None
        self.isr = tuple(state.isr)
        if state.leader != self._broker_id:
            self.role = FOLLOWER if state.leader >= 0 and self._broker_id in state.replicas else NONE
            self._followers.clear()
            self.has_min_isr = self.commits_alone = False
            return NOTHING
        if is_new_epoch or self.role != LEADER:
            self._followers.clear()
            self.epoch_start_offset = self.end_offset
        self.role = LEADER
        for broker in list(self._followers):
            if broker not in state.replicas:
                del self._followers[broker]
        for broker in state.replicas:
            if broker != self._broker_id and broker not in self._followers:
                # A member of the ISR has its time to fetch; another one holds nothing back until it does.
                self._followers[broker] = _Follower(now if broker in self.isr else _NEVER)
        self._look_at_isr()
        return self._commit(now)

    def appended(self, end_offset: int, now: float, *, is_durable: bool = True) -> Effects:
        """The own log is written up to `end_offset`. If it must be synced before it counts, it is not durable yet."""
        self.end_offset = end_offset
        if is_durable:
            self._own_end_offset = end_offset
        return self._commit(now)

    def synced(self, end_offset: int, now: float) -> Effects:
        """The own log is on the device up to `end_offset`."""
        self._own_end_offset = max(self._own_end_offset, end_offset)
        return self._commit(now)

    def fetched(
        self,
        broker: int,
        offset: int,
        leader_epoch: int,
        now: float,
        broker_epoch: int = UNKNOWN,
        log_start_offset: int = UNKNOWN,
    ) -> Effects:
        """A follower fetches from `offset`: it has everything below, from `log_start_offset` on. A fetch says nothing
        if it speaks of another epoch of the leader, or comes from an earlier life of the broker."""
        follower = self._followers.get(broker)
        if (
            follower is None
            or self.role != LEADER
            or leader_epoch != self.leader_epoch
            or offset > self.end_offset
            or self.is_of_earlier_life(broker, broker_epoch)
        ):
            return NOTHING
        is_first = follower.end_offset == UNKNOWN
        follower.fetched(offset, self.end_offset, broker_epoch, now)
        follower.log_start_offset = log_start_offset
        if is_first:
            self._look_at_isr()
        proposal: Effects = NOTHING
        if (
            broker not in self.isr
            and self._proposed is None
            and offset >= self.high_watermark
            and offset >= self.epoch_start_offset
            and self._is_eligible(broker, follower)
        ):
            proposal = self._propose((*self.isr, broker))
        return (*proposal, *self._commit(now))

    def tick(self, now: float) -> Effects:
        """Time has passed: followers that lag leave the ISR, and a follower that lags outside of it no longer holds the
        high watermark back."""
        if self.role != LEADER or not self._followers:
            return NOTHING
        proposal: Effects = NOTHING
        if self._proposed is None:
            lagging = [broker for broker, follower in self._followers.items() if broker in self.isr
                       and not follower.is_caught_up(self.end_offset, now, self._lag_seconds)]  # fmt: skip
            if lagging:
                proposal = self._propose(tuple(broker for broker in self.isr if broker not in lagging))
        return (*proposal, *self._commit(now))

    def readable_from(self, offset: int, now: float) -> list[tuple[int, int, int]]:
        """The followers in sync from which a consumer may read on at `offset` (KIP-392): each one's end offset, minus
        the milliseconds since it was caught up, and its id. The largest is the most caught up. Others may lag behind,
        so that a consumer would fall behind with them."""
        return [
            (each.end_offset, -int((now - each.caught_up_at) * 1000), broker)
            for broker, each in self._followers.items()
            if broker in self.isr and each.log_start_offset <= offset <= each.end_offset
        ]

    def follower(self, broker: int) -> _Follower | None:
        """What the leader knows of another replica; another object when the metadata has changed."""
        return self._followers.get(broker)

    def start_of(self, broker: int) -> int:
        """Where a follower's log starts; -1 while it has not fetched."""
        follower = self._followers.get(broker)
        return UNKNOWN if follower is None else follower.log_start_offset

    def low_watermark(self, start_offset: int, is_alive: Callable[[int], bool]) -> int:
        """The lowest offset at which the log of a replica starts: the leader's at `start_offset`, and those of the
        followers that are alive. -1 while one of them has not fetched."""
        starts = (each.log_start_offset for broker, each in self._followers.items() if is_alive(broker))
        return min((start_offset, *starts)) if self._followers else start_offset

    def knows(self, broker: int) -> bool:
        """Whether the broker has another replica of the partition that this one leads."""
        return broker in self._followers

    def is_of_earlier_life(self, broker: int, broker_epoch: int) -> bool:
        """Whether a broker has registered again since it had that epoch; -1 asks for no check (KIP-903)."""
        alive_epoch = self._alive_epoch(broker)
        return broker_epoch != UNKNOWN and alive_epoch is not None and broker_epoch < alive_epoch

    def isr_refused(self, proposal: ProposeIsr) -> None:
        """The controller refused the proposal: what the metadata says goes on to hold. A late refusal changes
        nothing."""
        if self._proposed == proposal.isr and self.partition_epoch == proposal.partition_epoch:
            self._proposed = None
            self._look_at_isr()

    def broker_epoch_of(self, broker: int) -> int:
        """The epoch that a follower had at its last fetch; -1 without one."""
        follower = self._followers.get(broker)
        return UNKNOWN if follower is None or follower.broker_epoch is None else follower.broker_epoch

    def leader_committed(self, high_watermark: int) -> Effects:
        """A follower learns how far its leader has committed."""
        return self._rise(min(high_watermark, self.end_offset)) if self.role == FOLLOWER else NOTHING

    def truncated(self, end_offset: int) -> None:
        """The own log ends at `end_offset` now."""
        self.end_offset = end_offset
        self._own_end_offset = min(self._own_end_offset, end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)

    # -- the rules -----------------------------------------------------------------------------------------------------

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The ISR, and the followers that are proposed to join."""
        return self.isr if self._proposed is None else tuple(dict.fromkeys((*self.isr, *self._proposed)))

    def _look_at_isr(self) -> None:
        self.has_min_isr = self.role == LEADER and len(self.isr) >= min(self._min_insync_replicas, self._replica_count)
        self.commits_alone = (
            self.has_min_isr
            and self.maximal_isr == (self._broker_id,)
            # One that may join soon is asked for.
            and not any(follower.end_offset != UNKNOWN for follower in self._followers.values())
        )

    def _propose(self, isr: tuple[int, ...]) -> Effects:
        self._proposed = isr
        self._look_at_isr()
        return (ProposeIsr(isr, self.leader_epoch, self.partition_epoch),)

    def _is_eligible(self, broker: int, follower: _Follower) -> bool:
        """Whether a follower may join the ISR: its log is in service, it is alive, and its fetch comes from its present
        life (KIP-903)."""
        if broker in self._lost:
            return False
        alive_epoch = self._alive_epoch(broker)
        return alive_epoch is not None and follower.broker_epoch in (UNKNOWN, alive_epoch)

    def _commit(self, now: float) -> Effects:
        """Raise the high watermark to what everybody has who counts."""
        if not self.has_min_isr:
            return NOTHING
        end_offset = self._own_end_offset
        if self._followers:
            maximal_isr = self.maximal_isr
            for broker, follower in self._followers.items():
                if follower.end_offset < end_offset and (
                    broker in maximal_isr
                    or (
                        follower.is_caught_up(self.end_offset, now, self._lag_seconds)
                        and self._is_eligible(broker, follower)
                    )
                ):
                    end_offset = follower.end_offset
        return self._rise(end_offset)

    def _rise(self, end_offset: int) -> Effects:
        if end_offset <= self.high_watermark:
            return NOTHING
        self.high_watermark = end_offset
        return (Committed(end_offset),)
