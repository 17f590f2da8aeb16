"""The simple assignor of share groups (KIP-932): every partition has as many members as are needed so that all members
have about the same number of partitions. Assignments stay where they can. The targets of a large group are computed in
steps."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.coordinator.in_steps import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pykafkad.coordinator.in_steps import Steps

    Assignment = dict[bytes, frozenset[int]]
    """Topic id to partitions."""
    Place = tuple[bytes, int]

Subscriber = namedtuple("Subscriber", ("topic_ids", "assignment"))
Subscriber.__doc__ = """A member: the ids of the topics that it subscribes to, and its last target assignment."""


def assign(members: Mapping[str, Subscriber], partitions: Mapping[bytes, Sequence[int]]) -> dict[str, Assignment]:
    """The targets of all members. `partitions` are those of each topic that can be assigned."""
    return at_once(assign_in_steps(members, partitions))


def assign_in_steps(
    members: Mapping[str, Subscriber], partitions: Mapping[bytes, Sequence[int]]
) -> Steps[dict[str, Assignment]]:
    """The same in steps. Neither may change meanwhile."""
    chosen: dict[str, set[Place]] = {member_id: set() for member_id in members}
    if len({member.topic_ids for member in members.values()}) < 2:
        topic_ids = next(iter(members.values())).topic_ids if members else frozenset()
        places = [(each, index) for each in sorted(topic_ids) for index in partitions.get(each, ())]
        yield from _share(members, places, chosen)
    else:
        subscribers: dict[bytes, dict[str, Subscriber]] = {}
        for member_id, member in members.items():
            for topic_id in member.topic_ids:
                subscribers.setdefault(topic_id, {})[member_id] = member
            yield
        for topic_id in sorted(subscribers):
            places = [(topic_id, index) for index in partitions.get(topic_id, ())]
            yield from _share(subscribers[topic_id], places, chosen)
    targets = {}
    for member_id, having in chosen.items():
        targets[member_id] = _by_topic(having)
        yield
    return targets


def _by_topic(places: set[Place]) -> Assignment:
    topics: dict[bytes, set[int]] = {}
    for topic_id, index in sorted(places):
        topics.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in topics.items()}


def _share(members: Mapping[str, Subscriber], places: list[Place], chosen: dict[str, set[Place]]) -> Steps[None]:
    """Share some partitions among members, all of whom can have each of them."""
    if not places or not members:
        return
    count = len(members)
    sharing = -(-count // len(places))
    total = sharing * len(places)
    # The members' numbers of partitions differ by one at most, and add up to the total.
    wanted = {
        member_id: -(-total * (position + 1) // count) - -(-total * position // count)
        for position, member_id in enumerate(members)
    }
    owners: dict[Place, dict[str, None]] = {place: {} for place in places}
    topic_ids = dict.fromkeys(topic_id for topic_id, _ in places)
    yield
    for member_id, member in members.items():
        # What it has already, in the order of the places.
        for topic_id in topic_ids:
            for index in sorted(member.assignment.get(topic_id, ())):
                having = owners.get((topic_id, index))
                if having is not None and wanted[member_id] and len(having) < sharing:
                    having[member_id] = None
                    wanted[member_id] -= 1
        yield
    unfilled = [member_id for member_id in members if wanted[member_id]]
    at = 0
    for having in owners.values():
        tried = 0
        while len(having) < sharing and tried < len(unfilled):
            at %= len(unfilled)
            member_id = unfilled[at]
            if member_id in having:
                at += 1
                tried += 1
                continue
            tried = 0
            having[member_id] = None
            wanted[member_id] -= 1
            if wanted[member_id]:
                at += 1
            else:
                del unfilled[at]
        yield
    for place, having in owners.items():
        for member_id in having:
            chosen[member_id].add(place)
        yield
