"""One member of a consumer group (KIP-848), as its records describe it. A member is a value: a change makes a copy."""

from __future__ import annotations

STABLE = 0
UNREVOKED_PARTITIONS = 1
UNRELEASED_PARTITIONS = 2
UNKNOWN_STATE = 127
STATES = (STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS)
"""The states of a member. STABLE: it has what it shall have in its epoch. UNREVOKED_PARTITIONS: it stays in its epoch
until it has given up partitions. UNRELEASED_PARTITIONS: it waits for partitions that other members have not given up
yet. Records of a later version may have others, which are read as UNKNOWN_STATE."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Partitions = dict[bytes, dict[int, int]]
    """Topic id to partition to the member epoch in which the partition was assigned (KIP-1251)."""

    ClassicMetadata = tuple[int, tuple[tuple[str, bytes], ...]]
    """What is kept of a member that speaks the classic protocol: its session timeout in ms, and its protocols."""


class ConsumerMember:
    """`assigned` are the partitions that the member may use, `revoking` those that it was told to give up.
    `rebalance_timeout_ms` is how long it may take for that. `classic` is None unless the member speaks the classic
    protocol. `topic_regex` and `assignor` may be empty or None."""

    __slots__ = (
        "assigned",
        "assignor",
        "classic",
        "client_host",
        "client_id",
        "epoch",
        "instance_id",
        "member_id",
        "previous_epoch",
        "rack_id",
        "rebalance_timeout_ms",
        "revoking",
        "state",
        "topic_names",
        "topic_regex",
    )

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.previous_epoch = -1
        self.state = STABLE
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.rebalance_timeout_ms = -1
        self.client_id = ""
        self.client_host = ""
        self.topic_names: frozenset[str] = frozenset()
        self.topic_regex: str | None = ""
        self.assignor: str | None = None
        self.assigned: Partitions = {}
        self.revoking: Partitions = {}
        self.classic: ClassicMetadata | None = None

    def copy(self, **changes: Any) -> ConsumerMember:
        """The member with other values of some attributes."""
        twin = ConsumerMember.__new__(ConsumerMember)
        for name in ConsumerMember.__slots__:
            setattr(twin, name, changes[name] if name in changes else getattr(self, name))
        return twin

    def moved_to(self, epoch: int, state: int, assigned: Partitions, revoking: Partitions) -> ConsumerMember:
        """The member after a step of its reconciliation."""
        return self.copy(epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    def __eq__(self, other: object) -> bool:
        return type(other) is ConsumerMember and all(
            getattr(self, name) == getattr(other, name) for name in ConsumerMember.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ConsumerMember({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether nothing is left to do for the member in this epoch of the target assignment."""
        return self.state == STABLE and self.epoch == assignment_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which the partition was assigned to the member, or None when it does not have it."""
        for partitions in (self.assigned.get(topic_id), self.revoking.get(topic_id)):
            if partitions is not None and partition in partitions:
                return partitions[partition]
        return None
