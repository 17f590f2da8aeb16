"""Members of groups that live by heartbeats (KIP-848, KIP-932, KIP-1071), as two brokers see them.

Each broker counts epochs of its own, and tells of an assignment at this heartbeat or at a later one. The epochs of
members are translated; assignments count as different when they have stayed so for a while, or when the member leaves.
Which partitions a member gets hangs on the ids of topics, which are random, where there are several topics, and in a
share group on which member came first: then the number of partitions is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

CONSUMER, SHARE, STREAMS = 68, 76, 88
HEARTBEATS = (CONSUMER, SHARE, STREAMS)
DESCRIPTIONS = (16, 69, 77, 89)
"""ListGroups, ConsumerGroupDescribe, ShareGroupDescribe, StreamsGroupDescribe: they show a group on its way, too."""
ATTEMPTS = 10
"""So often they are asked again while they differ."""
ASSIGNMENTS = ("assignment", "target_assignment")
EPOCHS = frozenset(("member_epoch", "group_epoch", "assignment_epoch", "endpoint_information_epoch"))
TOLD = frozenset(
    ("assignment", "active_tasks", "standby_tasks", "warmup_tasks", "partitions_by_user_endpoint", "status")
)
"""What an answer to a heartbeat says of the member's place in the group."""

PATIENT_BEATS = 4
PATIENT_SECONDS = 3.0
"""A member's assignments differ when they have for so many heartbeats, and so long."""
MOST_MEMBERS = 10_000

_OFFSET_COMMIT, _OFFSET_FETCH, _TXN_OFFSET_COMMIT = 8, 9, 28
_OWNED = {CONSUMER: ("topic_partitions",), SHARE: (), STREAMS: ("active_tasks", "standby_tasks", "warmup_tasks")}
_ASSIGNED = {CONSUMER: ("assignment",), SHARE: ("assignment",), STREAMS: _OWNED[STREAMS]}

Name = Callable[[bytes, bool], object]
"""One name for a topic's id of the first broker (True), and for its twin of the second one."""


class Apart(NamedTuple):
    """What two brokers have told a member that should be the same: the field, and what each has told."""

    field: str
    first: object
    second: object


class _Member:
    __slots__ = ("beats_apart", "epochs", "has_one_topic", "is_told", "owned", "since", "told")

    def __init__(self) -> None:
        self.has_one_topic = False
        self.epochs = (0, 0)
        self.owned: dict[str, Any] = {}
        self.told: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self.beats_apart = 0
        self.since = 0.0
        self.is_told = False


class GroupMembers:
    """Those of all groups."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` counts seconds."""
        self._now = now
        # By group and by the member's id at the first broker.
        self._members: dict[tuple[str, str], _Member] = {}

    # --- requests -----------------------------------------------------------------------------------------------------

    def translate(self, key: int, asked: Any) -> bool:
        """Change a request to the first broker to what the second one has to be asked: whether anything is changed."""
        if key in HEARTBEATS:
            return self._translate_heartbeat(key, asked)
        if key == _OFFSET_FETCH:
            return sum(self._epoch(row.group_id, row, row.member_id, "member_epoch") for row in asked.groups) > 0
        field = {_OFFSET_COMMIT: "generation_id_or_member_epoch", _TXN_OFFSET_COMMIT: "generation_id"}.get(key)
        return field is not None and self._epoch(asked.group_id, asked, asked.member_id, field)

    def _translate_heartbeat(self, key: int, asked: Any) -> bool:
        changed = self._epoch(asked.group_id, asked, asked.member_id, "member_epoch")
        member = self._members.get((asked.group_id, asked.member_id))
        if member is not None:
            for field in _OWNED[key]:
                owned = getattr(asked, field)
                if owned is not None:
                    member.owned[field] = owned
                elif member.beats_apart and field in member.owned:
                    # The first broker knows already, and is not told again; the second one may wait to hear it.
                    setattr(asked, field, member.owned[field])
                    changed = True
        return changed

    def _epoch(self, group: str, row: Any, member_id: str | None, field: str) -> bool:
        member = self._members.get((group, member_id or ""))
        if member is None or getattr(row, field) != member.epochs[0] or member.epochs[0] == member.epochs[1]:
            return False
        setattr(row, field, member.epochs[1])
        return True

    # --- answers ------------------------------------------------------------------------------------------------------

    def heard(self, key: int, asked: Any, first: Any, second: Any, name: Name) -> Iterator[Apart]:
        """Take in two answers to a heartbeat. What differs for good comes out, once."""
        if first.error_code or second.error_code or asked is None:
            return
        where = (asked.group_id, asked.member_id or first.member_id)
        if asked.member_epoch < 0:
            # -1 and -2 mean that it leaves.
            member = self._members.pop(where, None)
            if member is not None and member.beats_apart > 1 and not member.is_told:
                yield from _apart(key, member)
            return
        if len(self._members) >= MOST_MEMBERS and where not in self._members:
            self._members.pop(next(iter(self._members)))
        member = self._members.setdefault(where, _Member())
        member.epochs = (first.member_epoch, second.member_epoch)
        if getattr(asked, "subscribed_topic_names", None) is not None:
            member.has_one_topic = len(asked.subscribed_topic_names) == 1
        for told, answer, is_first in zip(member.told, (first, second), (True, False), strict=True):
            for field in _ASSIGNED[key]:
                value = getattr(answer, field)
                if value is not None:
                    told[field] = _readable(value, name, is_first)
        apart = list(_apart(key, member))
        if not apart:
            member.beats_apart, member.is_told = 0, False
            return
        if not member.beats_apart:
            member.since = self._now()
        member.beats_apart += 1
        is_long = member.beats_apart > PATIENT_BEATS and self._now() - member.since >= PATIENT_SECONDS
        if is_long and not member.is_told:
            member.is_told = True
            yield from apart


def _apart(key: int, member: _Member) -> Iterator[Apart]:
    is_exact = key == STREAMS or (key == CONSUMER and member.has_one_topic)
    for field in _ASSIGNED[key]:
        first, second = (told.get(field, {}) for told in member.told)
        if first != second if is_exact else _count(first) != _count(second):
            yield Apart(field, *(_shown(each) for each in (first, second)))


def _readable(value: Any, name: Name, is_first: bool) -> dict[str, list[int]]:
    """Partitions or tasks, by topic or subtopology."""
    found: dict[str, list[int]] = {}
    for row in value if isinstance(value, list) else value.topic_partitions:
        of = row.subtopology_id if hasattr(row, "subtopology_id") else name(bytes(row.topic_id), is_first)
        if row.partitions:
            found[str(of)] = sorted(row.partitions)
    return found


def _count(told: dict[str, list[int]]) -> int:
    return sum(map(len, told.values()))


def _shown(told: dict[str, list[int]]) -> list[str]:
    return [f"{of}: {', '.join(map(str, partitions))}" for of, partitions in sorted(told.items())]


def size(assignment: Any) -> int:
    """The number of partitions, or of tasks, in an assignment that describes a member."""
    if hasattr(assignment, "topic_partitions"):
        rows = assignment.topic_partitions
    else:
        rows = [*assignment.active_tasks, *assignment.standby_tasks, *assignment.warmup_tasks]
    return sum(len(row.partitions) for row in rows)
