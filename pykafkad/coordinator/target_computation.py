"""Targets that take long to compute: the work is done in steps, and the group goes on with the target that it has.

The heartbeat that finds that a large group needs a new target starts the computation. Its own answer waits for the
outcome. Everybody else is answered meanwhile with what holds until then, as within the assignment interval. The targets
of small groups are computed within the heartbeat, as Kafka 4.3.1 computes all of them.

The outcome is the target of the epoch for which the work began. It is written even if the group has begun a later epoch
meanwhile: members that are gone are left out, those that came have no target yet, and a later heartbeat starts the next
computation. (If only the target of the latest epoch were written, a group in which members come and go all the time
would never get one.) A static member that has come back under another id gets what its former id was given. The outcome
is dropped if the group is gone, or if another record has set a target meanwhile: the two might give a partition to two
members.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import group_types, record_codec
from pykafkad.coordinator.events import TargetComputed, TargetRefused, TargetWritten
from pykafkad.effects import Compute, EncodedRecord, Later
from pykafkad.errors import KafkaError

LARGE_WORK = 2_000
"""Work beyond this is done in steps. A unit takes a few microseconds."""
MEMBER_WORK = 10
"""The work for a member. A partition is one unit."""
TASK_WORK = 10
"""The work for a task of a streams group, or a partition of a share group."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.coordinator.events import MemberHeartbeat
    from pykafkad.coordinator.group_types import Group
    from pykafkad.coordinator.in_steps import Steps
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord

    Outcome = tuple[dict[str, Any], dict[str, StoredRecord]]
    """The targets of all members, and the records of those that have changed, by member id."""


class TargetComputation:
    """A computation under way. It is soft state of a shard.

    `epoch` is the epoch of the group for which it began, `before` are the targets of that time.
    `epoch_record(group_id, epoch, timestamp_ms)` makes the record of the target's epoch. `waiting` is the heartbeat
    whose answer waits, with the answer that holds until then; None if nobody waits. `is_dropped`: nobody wants it any
    more. `instances` are the ids of the static members by instance id, and `record(group_id, member_id, target)` makes
    the record of the target of one that has come back."""

    __slots__ = (
        "before",
        "epoch",
        "epoch_record",
        "group",
        "instances",
        "is_dropped",
        "record",
        "steps",
        "waiting",
    )

    def __init__(
        self,
        group: Any,
        epoch: int,
        before: Mapping[str, Any],
        steps: Steps[Outcome],
        epoch_record: Callable[[str, int, int], StoredRecord],
        instances: Mapping[str, str] | None = None,
        record: Callable[[str, str, Any], StoredRecord] | None = None,
    ) -> None:
        self.group = group
        self.epoch = epoch
        self.before = before
        self.steps = steps
        self.epoch_record = epoch_record
        self.instances = instances
        self.record = record
        self.waiting: tuple[MemberHeartbeat, Any] | None = None
        self.is_dropped = False

    def concerns(self, shard: GroupShard) -> bool:
        """Whether the shard still has the group, and not another one of its name."""
        return shard.groups.get(self.group.group_id) is self.group

    def run(self) -> Steps[Outcome | None]:
        """The work, as long as somebody wants it."""
        while not self.is_dropped:
            try:
                next(self.steps)
            except StopIteration as stop:
                outcome: Outcome = stop.value
                return outcome
            yield
        return None

    def computed(self, outcome: object) -> TargetComputed:
        """The event of the outcome."""
        return TargetComputed(self, outcome)


def outcome(
    assigned: Steps[dict[str, Any]],
    group_id: str,
    known: Mapping[str, Any],
    record: Callable[[str, str, Any], StoredRecord],
) -> Steps[Outcome]:
    """The targets that an assignor computes, with `record(group_id, member_id, target)` of each that is not `known`.
    The records are encoded here, so that little is left to do when they are written."""
    targets = yield from assigned
    records: dict[str, StoredRecord] = {}
    for member_id, target in targets.items():
        if target != known.get(member_id):
            changed = record(group_id, member_id, target)
            records[member_id] = EncodedRecord(changed, record_codec.encode(changed))
            yield
    return targets, records


def is_under_way(shard: GroupShard, group: Group) -> bool:
    """Whether a target of the group is being computed."""
    known = shard.computations.get(group.group_id)
    return known is not None and known.group is group


# Starting. A heartbeat that is refused after it has asked for a computation starts none.


def start(shard: GroupShard, step: Step) -> None:
    """Start the computation that the step asks for, if it does. Its records stand before this."""
    computation = step.computation
    if computation is None:
        return
    group_id = computation.group.group_id
    older = shard.computations.get(group_id)
    if older is not None:
        _drop(step, older)
    shard.computations[group_id] = computation
    step.effects.append(Compute(computation.run(), computation.computed, TargetRefused(computation)))


def reply(shard: GroupShard, step: Step, event: MemberHeartbeat, response: Any) -> None:
    """Answer a heartbeat, or, if it has asked for a computation, start that and keep the answer until it has ended."""
    if step.computation is None:
        step.reply(event.token, response)
    else:
        step.computation.waiting = event, response
        start(shard, step)


def _drop(step: Step, computation: TargetComputation) -> None:
    """Nobody wants the outcome any more: whoever waits for it gets the answer that held until then."""
    computation.is_dropped = True
    if computation.waiting is not None:
        event, response = computation.waiting
        step.reply(event.token, response)


# Ending.


def finish(shard: GroupShard, step: Step, event: TargetComputed) -> None:
    """Write the targets. Who waits is answered in a turn of its own. A computation that has failed has no outcome."""
    computation: TargetComputation = event.computation
    if computation.is_dropped:
        return
    group = computation.group
    group_id = group.group_id
    moved = _moved(computation, group) if event.outcome is not None and computation.concerns(shard) else None
    if moved is not None:
        targets, changed = event.outcome
        records = [record for member_id, record in changed.items() if member_id in group.members]
        for member_id, former_id in moved.items():
            assert computation.record is not None
            records.append(computation.record(group_id, member_id, targets[former_id]))
        records.append(computation.epoch_record(group_id, computation.epoch, step.now_ms))
        step.append(records)
    if computation.waiting is None:
        del shard.computations[group_id]
    else:
        step.effects.append(Later(TargetWritten(computation), TargetRefused(computation)))


def _moved(computation: TargetComputation, group: Any) -> dict[str, str] | None:
    """The static members that have come back under another id since the computation began, with their former ids. None
    if the group has no members any more, or other targets than those with which the computation began."""
    before, instances = computation.before, computation.instances
    moved: dict[str, str] = {}
    for member_id, target in group.targets.items():
        if before.get(member_id) != target:
            member = group.members.get(member_id) if instances else None
            former_id = None if member is None or instances is None else instances.get(member.instance_id)
            if former_id is None or former_id in group.members or before.get(former_id, {}) != target:
                return None
            moved[member_id] = former_id
    return moved if group.members else None


def answer(shard: GroupShard, step: Step, written: TargetWritten) -> None:
    """The targets are written: answer the heartbeat that has waited for that."""
    computation = written.computation
    if computation.is_dropped or computation.waiting is None:
        return
    del shard.computations[computation.group.group_id]
    event, response = computation.waiting
    if computation.concerns(shard):
        try:
            response = group_types.rules(computation.group.type).answer_again(shard, step, event, response)
        except KafkaError:
            # The member is gone, or another request of it was faster. It learns that with its next heartbeat.
            step.computation = None
        # The group may need the next target already. Nobody waits for that one.
        start(shard, step)
    step.reply(event.token, response)


def refused(shard: GroupShard, step: Step, event: TargetRefused) -> None:
    """The group stays as it was before the records that were refused, and so does its target. Who waits is told what
    Kafka tells in place of a target that can't be written. A computation that a step with a bug has started goes too,
    as it may never begin: a later heartbeat starts the next one."""
    computation = event.computation
    if computation.is_dropped:
        return
    started = shard.computations.pop(computation.group.group_id, computation)
    for each in (computation,) if started is computation else (computation, started):
        each.is_dropped = True
        if each.waiting is not None:
            heartbeat, response = each.waiting
            step.reply(heartbeat.token, type(response)(error_code=errors.UNKNOWN_SERVER_ERROR))


def resigned(shard: GroupShard, step: Step) -> None:
    """The shard ends: nobody wants the outcomes any more, and who waits looks for the next coordinator."""
    for computation in shard.computations.values():
        computation.is_dropped = True
        if computation.waiting is not None:
            event, response = computation.waiting
            step.reply(event.token, type(response)(error_code=errors.NOT_COORDINATOR))
    shard.computations.clear()
