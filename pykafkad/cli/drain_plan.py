"""Which brokers take over the replicas of one that goes. A pure function of what the cluster looks like."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.cli.cluster_state import ACTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pykafkad.cli.cluster_state import Broker, Move, Partition, Place

Plan = namedtuple("Plan", ("replicas", "leaving", "obstacles", "remarks"))
Plan.__doc__ = """`replicas`: topic and partition to the replicas that it shall have, the preferred leader first.
`leaving`: the places that the broker leaves by a reassignment that is under way. `obstacles`: sentences on what makes
the plan impossible. `remarks`: sentences on what gets worse by it."""

_NAMED = 5
"""Partitions in a sentence."""


def plan(
    broker_id: int,
    brokers: Mapping[int, Broker],
    partitions: Iterable[Partition],
    moves: Mapping[Place, Move],
    cordoned: Collection[int] = (),
) -> Plan:
    """The replicas of each partition of a broker without it. `cordoned` brokers take nothing.

    A replica goes to a rack that has none of the partition where there is one, and there to the broker with the fewest
    replicas. The new preferred leader is a replica that is there already, on the broker that is that of the fewest
    partitions."""
    made = _Planned(broker_id, brokers, cordoned)
    everything = list(partitions)
    targets = {(each.topic, each.index): _target(each, moves) for each in everything}
    for replicas in targets.values():
        made.count(replicas)
    for each in everything:
        place = each.topic, each.index
        if broker_id in targets[place]:
            made.replace(place, each, targets[place])
        elif broker_id in each.replicas:
            made.leaving.append(place)
    return Plan(made.replicas, made.leaving, made.obstacles(), made.remarks())


def applied(
    partitions: Iterable[Partition], moves: Mapping[Place, Move], planned: Mapping[Place, list[int]]
) -> tuple[list[Partition], dict[Place, Move]]:
    """The partitions, and the moves that are still under way, when what is planned is done: its replicas are in
    sync."""
    after = []
    for each in partitions:
        replicas = planned.get((each.topic, each.index))
        after.append(each if replicas is None else each._replace(replicas=replicas, in_sync=replicas))
    return after, {place: move for place, move in moves.items() if place not in planned}


def _target(partition: Partition, moves: Mapping[Place, Move]) -> list[int]:
    """The replicas that a partition has when what is under way is done."""
    move = moves.get((partition.topic, partition.index))
    return [each for each in partition.replicas if move is None or each not in move.removing]


class _Planned:
    """A plan that grows by one partition after the other, with what each broker has by it."""

    def __init__(self, broker_id: int, brokers: Mapping[int, Broker], cordoned: Collection[int]) -> None:
        self._broker_id = broker_id
        self._brokers = brokers
        self._takers = [
            each.id for each in brokers.values() if each.state == ACTIVE and each.id not in {broker_id, *cordoned}
        ]
        self._cordoned = sorted({each for each in cordoned if each != broker_id})
        self._held = dict.fromkeys(brokers, 0)
        self._preferred = dict.fromkeys(brokers, 0)
        self.replicas: dict[Place, list[int]] = {}
        self.leaving: list[Place] = []
        self._too_few: dict[int, list[Place]] = {}
        self._without_source: list[Place] = []
        self._crowded: list[Place] = []

    def count(self, replicas: list[int]) -> None:
        """These are the replicas of a partition now."""
        for each in replicas:
            self._held[each] += 1
        self._preferred[replicas[0]] += 1

    def replace(self, place: Place, partition: Partition, target: list[int]) -> None:
        """The broker leaves this partition."""
        rest = [each for each in target if each != self._broker_id]
        if not any(self._brokers[each].state == ACTIVE for each in partition.in_sync):
            self._without_source.append(place)
            return
        racks = {self._brokers[each].rack for each in rest} - {None}
        takers = [each for each in self._takers if each not in rest]
        if not takers:
            self._too_few.setdefault(len(target), []).append(place)
            return
        taker = min(takers, key=lambda each: (self._brokers[each].rack in racks, self._held[each], each))
        self._held[taker] += 1
        self._held[self._broker_id] -= 1
        if len(self._racks([*rest, taker])) < len(self._racks(target)):
            self._crowded.append(place)
        if target[0] == self._broker_id and rest:
            first = min(rest, key=lambda each: (self._preferred[each], each))
            rest = [first, *(each for each in rest if each != first)]
        self.replicas[place] = [*rest, taker]
        if target[0] == self._broker_id:
            self._preferred[self._broker_id] -= 1
            self._preferred[self.replicas[place][0]] += 1

    def _racks(self, replicas: list[int]) -> set[str | None]:
        return {self._brokers[each].rack for each in replicas}

    def obstacles(self) -> list[str]:
        """Sentences; none when the plan is complete."""
        takers = f"{len(self._takers)} can take them ({', '.join(map(str, self._takers)) or 'none'})"
        if self._cordoned:
            takers += f", since {', '.join(map(str, self._cordoned))} take no new replicas (cordoned.log.dirs)"
        found = [
            f"{count} replicas of {_named(places)} need {count} brokers, and {takers}"
            for count, places in sorted(self._too_few.items())
        ]
        if self._without_source:
            found.append(f"no broker that is there has all records of {_named(self._without_source)}")
        return found

    def remarks(self) -> list[str]:
        """Sentences on partitions that are spread over fewer racks than before."""
        if not self._crowded:
            return []
        return [f"{_named(self._crowded)} will be in fewer racks than now: no other broker of the rack takes replicas"]


def _named(places: list[Place]) -> str:
    text = ", ".join(f"{topic}-{index}" for topic, index in places[:_NAMED])
    return text if len(places) <= _NAMED else f"{text} and {len(places) - _NAMED} more"
