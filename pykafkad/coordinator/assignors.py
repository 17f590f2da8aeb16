"""The assignors of consumer groups (KIP-848): `uniform`, the default, and `range`.

Both are pure functions from the members with their subscriptions and present targets to new targets. They decide as
Kafka's do. Where Kafka goes through members, topics or partitions in the order of a Java hash map, that order is
computed, so that the same group gets the same assignment on both brokers.

`uniform` gives every member as many partitions as the others, and leaves as many where they are as it can. `range`
gives every member a range of each topic, and the members of the same position the same numbers. Neither looks at racks,
as in Kafka 4.3. A large group's targets are computed in steps.
"""

from __future__ import annotations

from functools import lru_cache

from pykafkad.coordinator.in_steps import ITEMS_PER_STEP, at_once
from pykafkad.coordinator.partitioning import java_hash

UNIFORM = "uniform"
RANGE = "range"
NAMES = (UNIFORM, RANGE)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafkad.coordinator.in_steps import Steps

    Assignment = dict[bytes, frozenset[int]]
    """Topic id to partitions."""


class Subscriber:
    """A member as an assignor sees it: the ids of existing topics that it subscribes to, and its present target."""

    __slots__ = ("instance_id", "target", "topic_ids")

    def __init__(self, instance_id: str | None, topic_ids: frozenset[bytes], target: Assignment) -> None:
        self.instance_id = instance_id
        self.topic_ids = topic_ids
        self.target = target


class GroupSpec:
    """A group as an assignor sees it.

    `members` are in the order in which they joined, `newest` is one that joins now. `partition_counts` has every topic
    that a member subscribes to. `owners` says who has which partition as a target, also of members that have just gone.
    `is_homogeneous`: all members subscribe to the same topics."""

    __slots__ = ("is_homogeneous", "members", "newest", "owners", "partition_counts")

    def __init__(
        self,
        members: dict[str, Subscriber],
        partition_counts: Mapping[bytes, int],
        owners: Mapping[bytes, Mapping[int, str]],
        is_homogeneous: bool,
        newest: str | None = None,
    ) -> None:
        self.newest = newest
        self.members = members
        self.partition_counts = partition_counts
        self.owners = owners
        self.is_homogeneous = is_homogeneous


def assign(name: str, group: GroupSpec) -> dict[str, Assignment]:
    """The targets of the members. A member that is missing in the answer has none."""
    return at_once(assign_in_steps(name, group))


def assign_in_steps(name: str, group: GroupSpec) -> Steps[dict[str, Assignment]]:
    """The same in steps. The group must not change meanwhile."""
    if not group.members:
        return {}
    if name == RANGE:
        return (yield from _range(group))
    if group.is_homogeneous:
        return (yield from _uniform(group))
    from pykafkad.coordinator.assignors_balancer import assign_heterogeneous

    return (yield from assign_heterogeneous(group))


# Java's hash maps.

_member_hash = lru_cache(maxsize=10_000)(java_hash)

_FIBONACCI = -7046029254386353131
"""With this factor Kafka's tables of a group's members spread their keys."""
DEFAULT_CAPACITY = 16
_CAPACITY_OF_TREES = 64
_KEYS_OF_TREES = 8
"""A bucket with more keys becomes a tree, if the map has as many buckets. A smaller map grows instead."""


def _spread(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value ^ value >> 16


def copied_capacity(size: int) -> int:
    """The number of buckets of a Java hash set that was made from a collection of `size` items."""
    wanted = max(int(size / 0.75) + 1, 16)
    return 1 << (wanted - 1).bit_length()


def member_order(group: GroupSpec) -> Steps[list[str]]:
    """The group's member ids in the order of Kafka's hash map of them."""
    return table_order(group.members, group.newest)


def table_order(member_ids: Iterable[str], newest: str | None) -> Steps[list[str]]:
    """Member ids, in the order in which they joined, in the order of Kafka's hash map of them. Keys that share a bucket
    are in the order in which they were put: first those of the group in the order of its own table, then a new one."""
    hashes = {}
    for count, member_id in enumerate(member_ids):
        hashes[member_id] = _member_hash(member_id)
        if count % ITEMS_PER_STEP == 0:
            yield
    known = [member_id for member_id in reversed(hashes) if member_id != newest]
    slots = 2
    while len(known) * 0.75 > slots:
        slots *= 2
    shift = 65 - slots.bit_length()
    known.sort(key=lambda member_id: (hashes[member_id] * _FIBONACCI & 0xFFFF_FFFF_FFFF_FFFF) >> shift)
    if newest is not None:
        known.append(newest)
    yield
    return _map_order(known, {member_id: _spread(hashes[member_id]) for member_id in known}, DEFAULT_CAPACITY)


def text_order(texts: Iterable[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """Texts in the order of a Java hash map into which they were put one by one. It began with `capacity` buckets."""
    hashes = {text: _spread(java_hash(text)) for text in texts}
    return _map_order(list(hashes), hashes, capacity)


def _map_order(keys: list[str], hashes: Mapping[str, int], capacity: int) -> list[str]:
    """Keys in the order of a Java hash map into which they were put one by one, by their hashes.

    The map has twice as many buckets whenever it is three quarters full, and, as long as it has few, when nine keys
    share a bucket."""
    if len(keys) <= _CAPACITY_OF_TREES * 3 // 4:
        counts: dict[int, int] = {}
        for put, key in enumerate(keys):
            bucket = hashes[key] & capacity - 1
            counts[bucket] = counts.get(bucket, 0) + 1
            crowded = counts[bucket] > _KEYS_OF_TREES and capacity < _CAPACITY_OF_TREES
            for grows in (crowded, put + 1 > (capacity * 2 if crowded else capacity) * 3 // 4):
                if grows:
                    capacity *= 2
                    counts = {}
                    for each in keys[: put + 1]:
                        bucket = hashes[each] & capacity - 1
                        counts[bucket] = counts.get(bucket, 0) + 1
    while len(keys) > capacity * 3 // 4:
        capacity *= 2
    return sorted(keys, key=lambda key: hashes[key] & capacity - 1)


def topic_order(topic_ids: Iterable[bytes]) -> list[bytes]:
    """Topic ids in the order of a Java hash set with these items."""
    topics = list(topic_ids)
    mask = copied_capacity(len(topics)) - 1

    def bucket(topic_id: bytes) -> int:
        folded = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
        return _spread(folded >> 32 ^ folded) & mask

    return sorted(topics, key=bucket)


def partition_order(partitions: Iterable[int]) -> list[int]:
    """Partitions in the order of a Java hash set with these items."""
    ascending = sorted(partitions)
    mask = copied_capacity(len(ascending)) - 1
    if not ascending or ascending[-1] <= mask:
        return ascending
    return sorted(ascending, key=lambda partition: _spread(partition) & mask)


# Uniform, when all members subscribe to the same topics.


def _uniform(group: GroupSpec) -> Steps[dict[str, Assignment]]:
    members = yield from member_order(group)
    topics = topic_order(group.members[members[0]].topic_ids)
    if not topics:
        return {}
    counts = group.partition_counts
    unassigned: list[tuple[bytes, int]] = []
    for topic_id in topics:
        owners = group.owners.get(topic_id, ())
        for start in range(0, counts[topic_id], 5 * ITEMS_PER_STEP):
            some = range(start, min(start + 5 * ITEMS_PER_STEP, counts[topic_id]))
            unassigned += [(topic_id, partition) for partition in some if partition not in owners]
            yield
    quota, extra_count = divmod(sum(counts[topic_id] for topic_id in topics), len(members))
    targets: dict[str, Assignment] = {}
    unfilled: list[tuple[str, int]] = []
    subscribed = frozenset(topics)
    for index, member_id in enumerate(members):
        has_extra = extra_count > 0
        target, left, given_up = _kept(group.members[member_id].target, subscribed, quota + has_extra)
        unassigned += given_up
        if left and has_extra and len(members) - index > extra_count:
            # Another member may keep the extra partition that this one has no use for yet.
            left -= 1
            has_extra = False
        if left:
            unfilled.append((member_id, left))
        extra_count -= has_extra
        targets[member_id] = target
        yield
    position = 0
    for member_id, left in unfilled:
        added = unassigned[position : position + left]
        position += len(added)
        if added:
            targets[member_id] = with_partitions(targets[member_id], added)
        yield
    return targets


def _kept(
    target: Assignment, subscribed: frozenset[bytes], quota: int
) -> tuple[Assignment, int, list[tuple[bytes, int]]]:
    """What a member keeps of its target, how many partitions it may still get, and what it gives up."""
    kept = target
    given_up: list[tuple[bytes, int]] = []
    for topic_id in list(target):
        partitions = target[topic_id]
        if topic_id not in subscribed:
            kept = {each: kept[each] for each in kept if each != topic_id}
        elif len(partitions) <= quota:
            quota -= len(partitions)
        else:
            ordered = partition_order(partitions)
            given_up += [(topic_id, partition) for partition in ordered[quota:]]
            kept = dict(kept)
            kept[topic_id] = frozenset(ordered[:quota])
            if not quota:
                del kept[topic_id]
            quota = 0
    return kept, quota, given_up


def with_partitions(target: Assignment, added: Iterable[tuple[bytes, int]]) -> Assignment:
    """A target with more partitions."""
    by_topic: dict[bytes, set[int]] = {}
    for topic_id, partition in added:
        by_topic.setdefault(topic_id, set()).add(partition)
    grown = dict(target)
    for topic_id, partitions in by_topic.items():
        grown[topic_id] = grown.get(topic_id, frozenset()) | partitions
    return grown


# Range.


def _range(group: GroupSpec) -> Steps[dict[str, Assignment]]:
    """Every topic is cut into as many ranges as it has subscribers. The members take theirs in the order of their
    instance ids, then of the member ids of those without one."""
    members = sorted(
        group.members,
        key=lambda member_id: _position(group.members[member_id].instance_id, member_id),
    )
    subscribers: dict[bytes, int] = {}
    for member_id in members:
        for topic_id in group.members[member_id].topic_ids:
            subscribers[topic_id] = subscribers.get(topic_id, 0) + 1
        yield
    following: dict[bytes, tuple[int, int]] = {}
    targets: dict[str, Assignment] = {}
    for member_id in members:
        target: Assignment = {}
        for topic_id in sorted(group.members[member_id].topic_ids):
            count = group.partition_counts[topic_id]
            quota, extra_count = divmod(count, subscribers[topic_id])
            start, taken = following.get(topic_id, (0, 0))
            end = start + quota + (taken < extra_count)
            following[topic_id] = end, taken + 1
            if start < end:
                target[topic_id] = frozenset(range(start, end))
        targets[member_id] = target
        yield
    return targets


def _position(instance_id: str | None, member_id: str) -> tuple[bool, bytes]:
    """The place of a member among the others: Java compares texts by their UTF-16 units."""
    return instance_id is None, (instance_id or member_id).encode("utf-16-be", "surrogatepass")
