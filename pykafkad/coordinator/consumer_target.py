"""The target assignment of a consumer group (KIP-848): the group as an assignor sees it, and the outcome.

The work may be done in steps. So it begins with copies of what changes between them."""

from __future__ import annotations

from pykafkad.coordinator import assignors, consumer_records, target_computation
from pykafkad.coordinator.consumer_group import preferred
from pykafkad.coordinator.target_computation import MEMBER_WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.coordinator.assignors import Assignment
    from pykafkad.coordinator.consumer_change import Change
    from pykafkad.coordinator.consumer_member import ConsumerMember
    from pykafkad.coordinator.in_steps import Steps
    from pykafkad.coordinator.target_computation import Outcome


class TargetWork:
    """What the target of a group follows from, when `member` has become `updated`.

    `members` are all members, `known` their present targets. `before` are the targets from which the assignor begins: a
    static member that comes back under another id begins with its own. `topics` has id and number of partitions of
    those that exist. `size` is how much work there is."""

    __slots__ = (
        "_assignor",
        "_group_id",
        "_is_homogeneous",
        "_newest",
        "_owners",
        "_patterns",
        "_topics",
        "before",
        "known",
        "members",
        "size",
    )

    def __init__(self, change: Change, member: ConsumerMember, updated: ConsumerMember) -> None:
        group, topics = change.group, change.metadata.topics
        self._group_id = group.group_id
        self.members = dict(group.members)
        self.known = dict(group.targets)
        self.before = dict(group.targets)
        static = group.static_member(updated.instance_id)
        if static is not None and static.member_id != updated.member_id:
            self.before[updated.member_id] = self.before.get(static.member_id, {})
            self.members.pop(static.member_id, None)
        self.members[updated.member_id] = updated
        self._newest = updated.member_id if updated.member_id not in group.members else None
        self._assignor = _assignor(change, member, updated)
        counts, regexes = change.counts(member, updated), change.regexes(member, updated)
        if regexes:
            self._is_homogeneous = not counts and list(regexes.values()) == [len(self.members)]
        else:
            self._is_homogeneous = all(count == len(self.members) for count in counts.values())
        self._patterns = {regex: pattern.topics for regex, pattern in group.patterns.items()}
        names = counts.keys() | frozenset().union(*self._patterns.values())
        self._topics = {name: (topics[name].id, len(topics[name].partitions)) for name in names if name in topics}
        self._owners: Mapping[bytes, Mapping[int, str]] = group.target_owners
        self.size = MEMBER_WORK * len(self.members) + sum(count for _, count in self._topics.values())

    def keep(self) -> None:
        """The group may change before the work has ended."""
        self._owners = {topic_id: dict(owners) for topic_id, owners in self._owners.items()}

    def steps(self) -> Steps[Outcome]:
        """The work."""
        return target_computation.outcome(self._assigned(), self._group_id, self.known, consumer_records.target)

    def _assigned(self) -> Steps[dict[str, Assignment]]:
        """The targets of all members."""
        ids: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}
        partition_counts: dict[bytes, int] = {}
        subscribers: dict[str, assignors.Subscriber] = {}
        for member_id, member in self.members.items():
            key = member.topic_names, member.topic_regex
            topic_ids = ids.get(key)
            if topic_ids is None:
                names = member.topic_names | self._patterns.get(member.topic_regex or "", frozenset())
                found = [self._topics[name] for name in names if name in self._topics]
                partition_counts.update(found)
                topic_ids = ids[key] = frozenset(topic_id for topic_id, _ in found)
            subscribers[member_id] = assignors.Subscriber(member.instance_id, topic_ids, self.before.get(member_id, {}))
            yield
        spec = assignors.GroupSpec(subscribers, partition_counts, self._owners, self._is_homogeneous, self._newest)
        targets = yield from assignors.assign_in_steps(self._assignor, spec)
        return {member_id: targets.get(member_id, {}) for member_id in self.members}


def _assignor(change: Change, member: ConsumerMember, updated: ConsumerMember) -> str:
    """The assignor that most members ask for, or the broker's default."""
    counts = dict(change.group.assignors)
    for each, number in ((member, -1), (updated, 1)):
        if each.assignor is not None:
            counts[each.assignor] = counts.get(each.assignor, 0) + number
    name = preferred({each: count for each, count in counts.items() if count > 0})
    return name or change.shard.settings.group_consumer_assignors[0]
