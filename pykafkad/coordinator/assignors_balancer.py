"""The `uniform` assignor for members that subscribe to different topics.

First the members keep what they have of their topics. Then each partition without an owner goes to the subscriber of
its topic that has the fewest. At last, topic by topic, partitions move from the subscribers with most to those with
fewest, until no move makes the group more even.
"""

from __future__ import annotations

from pykafkad.coordinator.assignors import GroupSpec, member_order
from pykafkad.coordinator.in_steps import ITEMS_PER_STEP

MAX_ROUNDS = 16
"""How often all topics are looked at. Each round makes the assignment more even, but rarely needs more than two."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.assignors import Assignment
    from pykafkad.coordinator.in_steps import Steps


def assign_heterogeneous(group: GroupSpec) -> Steps[dict[str, Assignment]]:
    """The targets of the members, or nothing when no member subscribes to a topic that exists."""
    members = yield from member_order(group)
    balancing = _Balancing(group, members)
    yield from balancing.begin()
    if not balancing.subscribers:
        return {}
    yield from balancing.assign_rest()
    yield from balancing.balance()
    return (yield from balancing.targets())


class _Balancing:
    """An assignment under way. Members are numbers: their places in `members`."""

    __slots__ = ("group", "members", "owners", "sizes", "subscribers")

    def __init__(self, group: GroupSpec, members: list[str]) -> None:
        self.group = group
        self.members = members
        self.sizes = [0] * len(members)
        self.subscribers: dict[bytes, list[int]] = {}
        # Topic id to the owner of each partition, -1 for none.
        self.owners: dict[bytes, list[int]] = {}

    def begin(self) -> Steps[None]:
        """Note who subscribes to what, and let the members keep what they have of that."""
        for index, member_id in enumerate(self.members):
            for topic_id in sorted(self.group.members[member_id].topic_ids):
                self.subscribers.setdefault(topic_id, []).append(index)
            yield
        self.owners = {topic_id: [-1] * self.group.partition_counts[topic_id] for topic_id in self.subscribers}
        for index, member_id in enumerate(self.members):
            member = self.group.members[member_id]
            for topic_id, partitions in member.target.items():
                if topic_id in member.topic_ids:
                    for partition in partitions:
                        self.owners[topic_id][partition] = index
                    self.sizes[index] += len(partitions)
            yield

    def targets(self) -> Steps[dict[str, Assignment]]:
        """The result. A target that has not changed is the object that it was."""
        found: list[dict[bytes, set[int]]] = [{} for _ in self.members]
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                if owner >= 0:
                    found[owner].setdefault(topic_id, set()).add(partition)
            yield
        targets: dict[str, Assignment] = {}
        for index, member_id in enumerate(self.members):
            targets[member_id] = {topic_id: frozenset(partitions) for topic_id, partitions in found[index].items()}
            yield
        return targets

    def sorted_topics(self, topic_ids: list[bytes]) -> list[bytes]:
        """Topics with many partitions for each subscriber first: they are the hardest to spread."""
        counts = self.group.partition_counts

        def key(topic_id: bytes) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self.subscribers[topic_id])
            signed = tuple(int.from_bytes(half, "big", signed=True) for half in (topic_id[:8], topic_id[8:]))
            return -counts[topic_id] / subscribers, subscribers, (signed[0], signed[1])

        return sorted(topic_ids, key=key)

    def move(self, topic_id: bytes, partition: int, owner: int) -> None:
        before = self.owners[topic_id][partition]
        if before >= 0:
            self.sizes[before] -= 1
        self.owners[topic_id][partition] = owner
        self.sizes[owner] += 1

    def assign_rest(self) -> Steps[None]:
        """Give every partition without an owner to the subscriber with the fewest partitions."""
        for topic_id in self.sorted_topics([each for each, owners in self.owners.items() if -1 in owners]):
            load = _Load(self.sizes, self.subscribers[topic_id])
            for partition, owner in enumerate(self.owners[topic_id]):
                if owner < 0:
                    self.move(topic_id, partition, load.least())
                if partition % ITEMS_PER_STEP == 0:
                    yield

    def balance(self) -> Steps[None]:
        """Move partitions until a whole round has moved none."""
        topics = self.sorted_topics([each for each, members in self.subscribers.items() if len(members) > 1])
        last_moved = -1
        for _ in range(MAX_ROUNDS):
            for index, topic_id in enumerate(topics):
                if index == last_moved:
                    return
                moved = yield from self.balance_topic(topic_id)
                if moved or last_moved == -1:
                    last_moved = index

    def balance_topic(self, topic_id: bytes) -> Steps[int]:
        """Move partitions of one topic from its subscribers with most to those with fewest. Returns how many moved."""
        yield
        load = _Load(self.sizes, self.subscribers[topic_id])
        if load.imbalance <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            owned.setdefault(owner, []).append(partition)
        moved = 0
        while not load.is_balanced():
            giver = load.most()
            while giver is not None and not owned.get(giver):
                load.exclude_most()
                giver = load.most()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = load.least()
            if load.is_balanced():
                break
            self.move(topic_id, partition, taker)
            moved += 1
            if moved % ITEMS_PER_STEP == 0:
                yield
        return moved


class _Load:
    """The subscribers of a topic in the order of their numbers of partitions.

    Two ranges of members grow towards each other: those with fewest from the left, those with most from the right. All
    members of a range have the same number of partitions, once each of them has taken or given one."""

    __slots__ = (
        "imbalance",
        "least_end",
        "least_level",
        "members",
        "most_end",
        "most_level",
        "most_start",
        "next_least",
        "next_most",
        "sizes",
    )

    def __init__(self, sizes: list[int], members: list[int]) -> None:
        self.sizes = sizes
        self.members = sorted(members, key=lambda member: (sizes[member], member))
        fewest, most = sizes[self.members[0]], sizes[self.members[-1]]
        self.imbalance = most - fewest
        self.least_end = self.next_least = 0
        self.least_level = fewest - 1
        self.most_start = self.most_end = len(self.members)
        self.most_level = most + 1
        self.next_most = len(self.members) - 1

    def least(self) -> int:
        """The next member to take a partition."""
        if self.next_least >= self.least_end:
            self.least_level += 1
            while self.least_end < len(self.members) and self._size(self.least_end) == self.least_level:
                self.least_end += 1
            self.next_least = 0
        self.next_least += 1
        return self.members[self.next_least - 1]

    def most(self) -> int | None:
        """The next member to give a partition, or None when none is left."""
        if self.next_most < self.most_start:
            if self.most_end <= self.most_start and self.most_start > 0:
                # All members of the range were excluded: go on with the next one, however few partitions it has.
                self.most_level = self._size(self.most_start - 1)
            else:
                self.most_level -= 1
            while self.most_start > 0 and self._size(self.most_start - 1) == self.most_level:
                self.most_start -= 1
            self.next_most = self.most_end - 1
        if self.next_most < 0:
            return None
        self.next_most -= 1
        return self.members[self.next_most + 1]

    def exclude_most(self) -> None:
        """Take the member that `most` has returned out of its range: it has no partition of the topic to give."""
        place, last = self.next_most + 1, self.most_end - 1
        self.members[place], self.members[last] = self.members[last], self.members[place]
        self.most_end -= 1

    def is_balanced(self) -> bool:
        """Whether a further move would make nothing more even."""
        return self.most_level - self.least_level <= 1

    def _size(self, place: int) -> int:
        return self.sizes[self.members[place]]
