"""One member of a streams group (KIP-1071), as its records describe it. Members and tasks are values: a change makes a
copy.

A task is a partition of a subtopology. The active task processes records, a standby task keeps a copy of its state, and
a warm-up task prepares to become active. This release assigns no warm-up tasks, as Kafka 4.3 does not.
"""

from __future__ import annotations

STABLE = 1
UNREVOKED_TASKS = 2
UNRELEASED_TASKS = 3
UNKNOWN_STATE = 127
STATES = (STABLE, UNREVOKED_TASKS, UNRELEASED_TASKS)
"""The states of a member. STABLE: it has what it shall have in its epoch. UNREVOKED_TASKS: it stays in its epoch until
it has given up tasks. UNRELEASED_TASKS: it waits for tasks that others have not given up yet. Records of a later
version may have others, which are read as UNKNOWN_STATE."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Partitions = Mapping[str, frozenset[int]]
    """Subtopology id to the partitions of its tasks."""

    Epochs = Mapping[str, Mapping[int, int]]
    """Subtopology id to partition to the group epoch in which the task was assigned."""


class Target:
    """The tasks that a member shall have."""

    __slots__ = ("active", "standby", "warmup")

    def __init__(
        self, active: Partitions | None = None, standby: Partitions | None = None, warmup: Partitions | None = None
    ) -> None:
        self.active = active or {}
        self.standby = standby or {}
        self.warmup = warmup or {}

    def __eq__(self, other: object) -> bool:
        return type(other) is Target and (self.active, self.standby, self.warmup) == (
            other.active,
            other.standby,
            other.warmup,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Target({self.active!r}, {self.standby!r}, {self.warmup!r})"


class Tasks:
    """Tasks that a member has, or is giving up. Active tasks have the epoch in which they were assigned."""

    __slots__ = ("active", "standby", "warmup")

    def __init__(
        self, active: Epochs | None = None, standby: Partitions | None = None, warmup: Partitions | None = None
    ) -> None:
        self.active = active or {}
        self.standby = standby or {}
        self.warmup = warmup or {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no task."""
        return not (self.active or self.standby or self.warmup)

    def __eq__(self, other: object) -> bool:
        return type(other) is Tasks and (self.active, self.standby, self.warmup) == (
            other.active,
            other.standby,
            other.warmup,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Tasks({self.active!r}, {self.standby!r}, {self.warmup!r})"


class StreamsMember:
    """`assigned` are the tasks that the member may run, `revoking` those that it was told to give up.
    `rebalance_timeout_ms` is how long it may take for that. Members with the same `process_id` share a process, in
    which a task runs at most once. `endpoint` is the host and port at which the application answers queries."""

    __slots__ = (
        "assigned",
        "client_host",
        "client_id",
        "client_tags",
        "endpoint",
        "epoch",
        "instance_id",
        "member_id",
        "previous_epoch",
        "process_id",
        "rack_id",
        "rebalance_timeout_ms",
        "revoking",
        "state",
        "topology_epoch",
    )

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.previous_epoch = 0
        self.state = STABLE
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = -1
        self.topology_epoch = -1
        self.process_id = ""
        self.endpoint: tuple[str, int] | None = None
        self.client_tags: dict[str, str] = {}
        self.assigned = Tasks()
        self.revoking = Tasks()

    def copy(self, **changes: Any) -> StreamsMember:
        """The member with other values of some attributes."""
        twin = StreamsMember.__new__(StreamsMember)
        for name in StreamsMember.__slots__:
            setattr(twin, name, changes[name] if name in changes else getattr(self, name))
        return twin

    def moved_to(self, epoch: int, state: int, assigned: Tasks, revoking: Tasks) -> StreamsMember:
        """The member after a step of its reconciliation."""
        return self.copy(epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    def __eq__(self, other: object) -> bool:
        return type(other) is StreamsMember and all(
            getattr(self, name) == getattr(other, name) for name in StreamsMember.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StreamsMember({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether nothing is left to do for the member in this epoch of the target assignment."""
        return self.state == STABLE and self.epoch == assignment_epoch

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """The epoch in which the active task was assigned to the member, or None when it does not have it."""
        for tasks in (self.assigned, self.revoking):
            epochs = tasks.active.get(subtopology_id)
            if epochs is not None and partition in epochs:
                return epochs[partition]
        return None
