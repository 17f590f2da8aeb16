"""The way of one member of a streams group from its present tasks to its target (KIP-1071).

A member first gives up what it shall no longer have, and stays in its epoch until a heartbeat shows that it did. Then
it moves to the epoch of the target and gets the tasks that are free. An active task is free when no process has it as
an active task, and the member's own process has it in no other form. A standby task is free when the member's own
process does not have the task at all.
"""

from __future__ import annotations

from pykafkad.coordinator.streams_member import (
    STABLE,
    UNRELEASED_TASKS,
    UNREVOKED_TASKS,
    StreamsMember,
    Target,
    Tasks,
)
from pykafkad.errors import FENCED_MEMBER_EPOCH, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pykafkad.coordinator.streams_member import Partitions

    Free = Callable[[str, frozenset[int]], frozenset[int]]
    """Takes a subtopology id and partitions, and gives those that are free."""

    EpochsByTask = dict[str, dict[int, int]]
    """Subtopology id to partition to the epoch in which the task was assigned."""

NO_EPOCH = 0
KINDS = ("active", "standby", "warmup")


class Reconciliation:
    """One step of one member.

    Of active tasks, or of standby or warm-up tasks, that the member does not have yet, `free_active` and `free_copies`
    choose those that it may have. `owned` is None when the heartbeat did not say what the member has."""

    __slots__ = ("free_active", "free_copies", "member", "owned", "target", "target_epoch")

    def __init__(
        self,
        member: StreamsMember,
        target_epoch: int,
        target: Target,
        free_active: Free,
        free_copies: Free,
        owned: Target | None,
    ) -> None:
        self.member = member
        self.target_epoch = target_epoch
        self.target = target
        self.free_active = free_active
        self.free_copies = free_copies
        self.owned = owned

    def next(self) -> StreamsMember:
        """The member after the step; the same object when nothing can be done. Raises `KafkaError`
        (FENCED_MEMBER_EPOCH) for a member in a state of a later version, unless it owns nothing."""
        member = self.member
        if member.state == STABLE:
            return member if member.epoch == self.target_epoch else self._towards_target(member.epoch)
        if member.state == UNREVOKED_TASKS:
            return member if self._has_any(member.revoking) else self._towards_target(member.epoch + 1)
        if member.state == UNRELEASED_TASKS:
            return self._towards_target(member.epoch)
        if self.owned is None or self.owned != Target():
            raise KafkaError(
                FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
            )
        return self._towards_target(self.target_epoch)

    def _has_any(self, tasks: Tasks) -> bool:
        """Whether the member still has one of the tasks, as far as the heartbeat tells."""
        if self.owned is None:
            return True
        return any(
            partition in getattr(tasks, kind).get(subtopology_id, ())
            for kind in KINDS
            for subtopology_id, partitions in getattr(self.owned, kind).items()
            for partition in partitions
        )

    def _towards_target(self, epoch: int) -> StreamsMember:
        """The member one step nearer to its target: it gives tasks up, gets free ones, or waits for others. `epoch` is
        the one in which it stays while it has to give tasks up."""
        member = self.member
        kept: dict[str, EpochsByTask] = {}
        lost: dict[str, EpochsByTask] = {}
        free: list[tuple[str, str, frozenset[int]]] = []
        waits = False
        for kind in KINDS:
            choose = self.free_active if kind == "active" else self.free_copies
            present = getattr(member.assigned, kind)
            wanted: Partitions = getattr(self.target, kind)
            kept[kind], lost[kind] = _split(present, wanted)
            for subtopology_id, partitions in wanted.items():
                missing = partitions.difference(present.get(subtopology_id, ()))
                found = choose(subtopology_id, missing)
                waits |= len(found) < len(missing)
                if found:
                    free.append((kind, subtopology_id, found))
        revoking = _tasks(lost)
        if not revoking.is_empty and self._has_any(revoking):
            return member.moved_to(epoch, UNREVOKED_TASKS, _tasks(kept), revoking)
        for kind, subtopology_id, found in free:
            kept[kind].setdefault(subtopology_id, {}).update(dict.fromkeys(sorted(found), self.target_epoch))
        return member.moved_to(self.target_epoch, UNRELEASED_TASKS if waits else STABLE, _tasks(kept), Tasks())


def _split(present: Mapping[str, Iterable[int]], wanted: Partitions) -> tuple[EpochsByTask, EpochsByTask]:
    """The tasks that are wanted and those that are not, with their epochs. Copies of tasks have none."""
    kept: EpochsByTask = {}
    lost: EpochsByTask = {}
    for subtopology_id, tasks in present.items():
        still = wanted.get(subtopology_id, frozenset())
        epochs = tasks if isinstance(tasks, dict) else dict.fromkeys(tasks, NO_EPOCH)
        staying = {partition: epoch for partition, epoch in epochs.items() if partition in still}
        if staying:
            kept[subtopology_id] = staying
        if len(staying) < len(epochs):
            lost[subtopology_id] = {partition: epoch for partition, epoch in epochs.items() if partition not in still}
    return kept, lost


def _tasks(kinds: dict[str, EpochsByTask]) -> Tasks:
    active, standby, warmup = (kinds[kind] for kind in KINDS)
    return Tasks(
        active,
        {subtopology_id: frozenset(tasks) for subtopology_id, tasks in standby.items()},
        {subtopology_id: frozenset(tasks) for subtopology_id, tasks in warmup.items()},
    )
