"""Which replicas move so that every broker has as many as the others, and leads as many. A pure function of what the
cluster looks like."""

from __future__ import annotations

from pykafkad.cli.cluster_state import ACTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pykafkad.cli.cluster_state import Broker, Move, Partition, Place


def plan(
    brokers: Mapping[int, Broker],
    partitions: Iterable[Partition],
    moves: Mapping[Place, Move],
    cordoned: Collection[int] = (),
) -> dict[Place, list[int]]:
    """Topic and partition to the replicas that it shall have, for those that change.

    It takes the fewest moves of replicas that it can find: one at a time, from a broker with more to one with less. No
    partition gets into fewer racks than now. Partitions that move already stay as they are, and so does what is on
    brokers that are not there; `cordoned` brokers take nothing."""
    made = _Balanced(brokers, cordoned)
    for each in partitions:
        if (each.topic, each.index) not in moves:
            made.add(each)
    made.spread()
    made.alternate()
    return made.changed()


class _Balanced:
    """Replicas of partitions, and how many each broker has of them."""

    def __init__(self, brokers: Mapping[int, Broker], cordoned: Collection[int]) -> None:
        self._brokers = brokers
        self._there = [each.id for each in brokers.values() if each.state == ACTIVE]
        self._takers = [each for each in self._there if each not in cordoned]
        self._before: dict[Place, list[int]] = {}
        self._replicas: dict[Place, list[int]] = {}
        self._places: dict[int, set[Place]] = {each: set() for each in brokers}

    def add(self, partition: Partition) -> None:
        place = partition.topic, partition.index
        self._before[place], self._replicas[place] = partition.replicas, list(partition.replicas)
        for each in partition.replicas:
            self._places[each].add(place)

    def changed(self) -> dict[Place, list[int]]:
        return {place: replicas for place, replicas in self._replicas.items() if replicas != self._before[place]}

    def spread(self) -> None:
        """Move replicas while that brings two brokers nearer to each other. Each move makes the sum of the squares of
        the counts smaller, so it comes to an end."""
        while self._move_one():
            pass

    def _move_one(self) -> bool:
        by_count = sorted(self._takers, key=lambda each: (len(self._places[each]), each))
        for giver in sorted(self._there, key=lambda each: (-len(self._places[each]), each)):
            for taker in by_count:
                if len(self._places[giver]) - len(self._places[taker]) < 2:
                    break
                for place in sorted(self._places[giver] - self._places[taker]):
                    if self._keeps_racks(place, giver, taker):
                        self._replicas[place] = [taker if each == giver else each for each in self._replicas[place]]
                        self._places[giver].remove(place)
                        self._places[taker].add(place)
                        return True
        return False

    def _keeps_racks(self, place: Place, giver: int, taker: int) -> bool:
        now = self._replicas[place]
        then = [taker if each == giver else each for each in now]
        return len({self._brokers[each].rack for each in then}) >= len({self._brokers[each].rack for each in now})

    def alternate(self) -> None:
        """Let another replica be the preferred leader while that brings two brokers nearer to each other."""
        first: dict[int, set[Place]] = {each: set() for each in self._brokers}
        for place, replicas in self._replicas.items():
            first[replicas[0]].add(place)
        while self._alternate_one(first):
            pass

    def _alternate_one(self, first: dict[int, set[Place]]) -> bool:
        for leader in sorted(self._there, key=lambda each: (-len(first[each]), each)):
            for place in sorted(first[leader]):
                others = [each for each in self._replicas[place][1:] if each in self._takers]
                if not others:
                    continue
                other = min(others, key=lambda each: (len(first[each]), each))
                if len(first[leader]) - len(first[other]) >= 2:
                    self._replicas[place] = [other, *(each for each in self._replicas[place] if each != other)]
                    first[leader].remove(place)
                    first[other].add(place)
                    return True
        return False
