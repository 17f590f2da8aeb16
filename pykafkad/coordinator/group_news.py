"""What people are told of groups whose members and epochs are records: consumer groups (KIP-848), share groups
(KIP-932) and streams groups (KIP-1071).

`tell` reads the records of a step before they are applied, and compares them with the group. A rebalance begins with a
new epoch of the group, and ends when each member has reached the target of that epoch. Classic groups have no records
of this kind; their machine tells of itself (`Step.tell`)."""

from __future__ import annotations

from pykafkad.coordinator.group_types import CLASSIC
from pykafkad.effects import Append, TimerFired

MEMBER = "member"
EPOCH = "epoch"
TARGET = "target"
CURRENT = "current"
CLASSIC_GENERATION = "classic generation"

AWAY_EPOCH = -2
"""The epoch of a static member that has left and will come back."""

STABLE_STATES = {"consumer": 0, "share": None, "streams": 1}
"""The state of a member that has nothing left to do, as its record has it. A share group's member is always stable."""

_NOUNS = {
    f"{kind}Group{record}Key": (kind.lower(), noun)
    for kind in ("Consumer", "Share", "Streams")
    for record, noun in (
        ("MemberMetadata", MEMBER),
        ("Metadata", EPOCH),
        ("TargetAssignmentMetadata", TARGET),
        ("CurrentMemberAssignment", CURRENT),
    )
}
_NOUNS["GroupMetadataKey"] = (CLASSIC, CLASSIC_GENERATION)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step


class Rebalance:
    """A rebalance under way, since the second `began`. `waiting` are members of which at least the last one has not
    reached its target yet; None: it must be looked up again. So an end is found without a look at all members."""

    __slots__ = ("began", "waiting")

    def __init__(self, began: float) -> None:
        self.began = began
        self.waiting: list[str] | None = None


class _Changes:
    """What the records of one step change in one group. A value None is a tombstone."""

    __slots__ = ("current", "epoch", "group_type", "is_gone", "members", "metadata_hash", "target_epoch")

    def __init__(self, group_type: str) -> None:
        self.group_type = group_type
        self.members: dict[str, Any] = {}
        self.current: dict[str, Any] = {}
        self.epoch: int | None = None
        self.metadata_hash = 0
        self.target_epoch: int | None = None
        self.is_gone = False

    def add(self, noun: str, key: Any, value: Any) -> None:
        """One record."""
        if noun is MEMBER:
            self.members[key.member_id] = value
        elif noun is CURRENT:
            self.current[key.member_id] = value
        elif noun is EPOCH:
            self.is_gone = value is None
            if value is not None:
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
        elif noun is TARGET and value is not None:
            self.target_epoch = value.assignment_epoch


def tell(shard: GroupShard, step: Step, event: object) -> None:
    """Add to the effects of a step what people are told of the records that it writes. Comes after the `Append`, so
    that nobody is told of what could not be written."""
    found: dict[str, _Changes] = {}
    for effect in step.effects:
        if type(effect) is Append:
            for record in effect.records:
                group_type, noun = _NOUNS.get(type(record.key).__name__, ("", ""))
                if group_type and noun is not CLASSIC_GENERATION:
                    key: Any = record.key
                    changes = found.get(key.group_id)
                    if changes is None:
                        changes = found[key.group_id] = _Changes(group_type)
                    changes.add(noun, key, record.value)
    for group_id, changes in found.items():
        _tell_group(shard, step, group_id, changes, type(event) is TimerFired)


def _tell_group(shard: GroupShard, step: Step, group_id: str, changes: _Changes, is_late: bool) -> None:
    group: Any = shard.groups.get(group_id)
    # A consumer group that becomes a classic one writes tombstones of members that stay.
    has_become_classic = group is not None and group.type == CLASSIC
    before = {} if group is None else group.members
    joined = {each for each, value in changes.members.items() if value is not None and each not in before}
    gone = [each for each, value in changes.members.items() if value is None]
    if has_become_classic:
        gone = [each for each in gone if each not in before]
    for member_id, value in changes.members.items():
        if member_id in joined:
            step.tell(
                "member-joined",
                group=group_id,
                member=member_id,
                instance=getattr(value, "instance_id", None),
                client=value.client_id,
                host=value.client_host,
            )
    for member_id in gone:
        step.tell("member-expired" if is_late else "member-left", group=group_id, member=member_id)
    for member_id, value in changes.current.items():
        if value is not None and value.member_epoch == AWAY_EPOCH:
            step.tell("member-left", group=group_id, member=member_id, comes_back=True)
    if changes.is_gone or has_become_classic:
        shard.rebalances.pop(group_id, None)
    elif changes.epoch is not None and len(before) + len(joined) <= len(gone):
        shard.rebalances.pop(group_id, None)
        step.tell("group-empty", group=group_id, epoch=changes.epoch)
    else:
        if changes.epoch is not None:
            _tell_epoch(shard, step, group_id, changes, _reason(group, changes, bool(joined), bool(gone), is_late))
        _tell_end(shard, step, group_id, changes)


def _reason(group: Any, changes: _Changes, has_joined: bool, has_lost: bool, is_late: bool) -> str:
    if has_joined:
        return "a member has joined"
    if has_lost:
        return "a member's session has expired" if is_late else "a member has left"
    if changes.members or group is None or group.metadata_hash == changes.metadata_hash:
        return "a subscription has changed"
    return "topics have changed"


def _tell_epoch(shard: GroupShard, step: Step, group_id: str, changes: _Changes, reason: str) -> None:
    """The group has a new epoch. One that comes while a rebalance is under way is a part of it."""
    rebalance = shard.rebalances.get(group_id)
    if rebalance is None:
        rebalance = shard.rebalances[group_id] = Rebalance(step.now)
        step.tell("rebalance-began", group=group_id, type=changes.group_type, epoch=changes.epoch, reason=reason)
    rebalance.waiting = None


def _tell_end(shard: GroupShard, step: Step, group_id: str, changes: _Changes) -> None:
    rebalance = shard.rebalances.get(group_id)
    group: Any = shard.groups.get(group_id)
    if rebalance is None:
        return
    members = {} if group is None else group.members
    epoch = changes.epoch if changes.epoch is not None or group is None else group.epoch
    target = changes.target_epoch if changes.target_epoch is not None or group is None else group.target_epoch
    if epoch is None or target != epoch:
        return
    waiting = rebalance.waiting
    if waiting is None:
        waiting = rebalance.waiting = list({**members, **changes.members})
    while waiting and _has_arrived(waiting[-1], members, changes, epoch):
        waiting.pop()
    if not waiting:
        del shard.rebalances[group_id]
        count = sum(value is not None for value in changes.members.values())
        count += sum(each not in changes.members for each in members)
        took_ms = round((step.now - rebalance.began) * 1000)
        step.tell(
            "rebalance-ended", group=group_id, type=changes.group_type, epoch=epoch, members=count, took_ms=took_ms
        )


def _has_arrived(member_id: str, members: dict[str, Any], changes: _Changes, epoch: int) -> bool:
    """Whether a member has what the target of this epoch gives to it, or is gone."""
    if member_id in changes.members and changes.members[member_id] is None:
        return True
    value = changes.current.get(member_id)
    if value is not None:
        stable = STABLE_STATES[changes.group_type]
        return value.member_epoch == epoch and (stable is None or value.state == stable)
    member = members.get(member_id)
    if member is None:
        # One that has just joined, and got nothing yet, has a record of that soon.
        return member_id not in changes.members
    return bool(member.is_reconciled_to(epoch))
