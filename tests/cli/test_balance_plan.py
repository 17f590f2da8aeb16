"""Replicas move so that all brokers have as many."""

from __future__ import annotations

import random

import pytest

from pykafkad.cli.balance_plan import plan
from pykafkad.cli.cluster_state import ACTIVE, FENCED, Broker, Move, Partition

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def brokers(*ids: int, fenced: tuple[int, ...] = (), racks: dict[int, str] | None = None) -> dict[int, Broker]:
    return {
        each: Broker(each, f"h:{each}", None if racks is None else racks[each], FENCED if each in fenced else ACTIVE)
        for each in ids
    }


def partitions(*replicas: list[int]) -> list[Partition]:
    return [Partition("t", index, each[0], each, each) for index, each in enumerate(replicas)]


def counts(replicas: list[list[int]], ids: dict[int, Broker]) -> list[int]:
    return [sum(number in each for each in replicas) for number in ids]


def test_a_broker_that_has_nothing_gets_its_share() -> None:
    """Two of six replicas; and one of the three partitions prefers it."""
    made = plan(brokers(1, 2, 3), partitions([1, 2], [2, 1], [1, 2]), {})
    assert made == {("t", 0): [3, 2], ("t", 1): [3, 1]} or len(made) == 2
    after = [made.get(("t", index), each) for index, each in enumerate([[1, 2], [2, 1], [1, 2]])]
    assert counts(after, brokers(1, 2, 3)) == [2, 2, 2]
    assert sorted(each[0] for each in after) == [1, 2, 3]


def test_what_is_balanced_stays() -> None:
    """A difference of one is none."""
    assert plan(brokers(1, 2, 3), partitions([1, 2], [2, 3], [3, 1], [1, 3]), {}) == {}


def test_leaders_alternate_without_a_move() -> None:
    """Only the order of the replicas changes."""
    made = plan(brokers(1, 2), partitions([1, 2], [1, 2], [1, 2], [1, 2]), {})
    assert list(made.values()) == [[2, 1], [2, 1]]


def test_a_rack_is_not_given_up() -> None:
    """Broker 4 is in the rack of broker 1: it takes from that alone."""
    made = plan(brokers(1, 2, 3, 4, racks=RACKS), partitions(*[[1, 2, 3]] * 4), {})
    assert len(made) >= 2
    for replicas in made.values():
        assert {RACKS[each] for each in replicas} == {"a", "b", "c"}
    assert sum(4 in each for each in made.values()) == 2


def test_who_takes_nothing() -> None:
    """Cordoned brokers, fenced ones, and whoever has the partition; what moves stays as it is."""
    held = partitions([1], [1], [1], [1])
    assert plan(brokers(1, 2, 3), held, {}, cordoned=[2, 3]) == {}
    assert plan(brokers(1, 2, fenced=(2,)), held, {}) == {}
    moves = {("t", index): Move([1, 2], [2], [1]) for index in range(3)}
    assert plan(brokers(1, 2), held, moves) == {}
    assert sorted(plan(brokers(1, 2), held, {}).values()) == [[2], [2]]


def test_replicas_of_a_broker_that_is_away_stay() -> None:
    """They could not be copied from there; `drain` is for that."""
    made = plan(brokers(1, 2, 3, fenced=(1,)), partitions([1, 2], [1, 2], [1, 2], [1, 2]), {})
    assert all(1 in each for each in made.values()) and sum(3 in each for each in made.values()) == 2


@pytest.mark.parametrize("seed", range(20))
def test_any_plan_keeps_what_it_must(seed: int) -> None:
    """The factor and the racks; and no two brokers are farther apart than before. Without racks all are even."""
    chance = random.Random(seed)
    with_racks = seed % 2 == 0
    known = brokers(*RACKS, racks=RACKS if with_racks else None)
    favourites = [1, 1, 1, 2, 2, 3, 4, 5, 6]
    held = []
    for index in range(40):
        replicas = list(dict.fromkeys(chance.choice(favourites) for _ in range(chance.randint(1, 5))))
        held.append(Partition("t", index, replicas[0], replicas, replicas))
    made = plan(known, held, {})
    before = [each.replicas for each in held]
    after = [made.get(("t", each.index), each.replicas) for each in held]
    for old, new in zip(before, after, strict=True):
        assert len(set(new)) == len(old)
        assert not with_racks or len({RACKS[each] for each in new}) >= len({RACKS[each] for each in old})
    ends = counts(after, known)
    if with_racks:
        assert max(ends) - min(ends) <= max(counts(before, known)) - min(counts(before, known))
    else:
        assert max(ends) - min(ends) <= 1
    assert plan(known, [Partition("t", index, each[0], each, each) for index, each in enumerate(after)], {}) == {}
