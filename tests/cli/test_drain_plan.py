"""Who takes over the replicas of a broker that goes."""

from __future__ import annotations

import random

import pytest

from pykafkad.cli.cluster_state import ACTIVE, FENCED, Broker, Move, Partition
from pykafkad.cli.drain_plan import plan

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def brokers(*ids: int, fenced: tuple[int, ...] = (), racks: dict[int, str] | None = None) -> dict[int, Broker]:
    return {
        each: Broker(each, f"h:{each}", None if racks is None else racks[each], FENCED if each in fenced else ACTIVE)
        for each in ids
    }


def partition(index: int, *replicas: int, in_sync: tuple[int, ...] | None = None) -> Partition:
    return Partition("t", index, replicas[0], list(replicas), list(replicas if in_sync is None else in_sync))


def test_the_broker_with_the_fewest_replicas_takes_over() -> None:
    """What others get by the same plan counts."""
    made = plan(
        1, brokers(1, 2, 3, 4), [partition(0, 2, 3), partition(1, 2, 1), partition(2, 1, 3), partition(3, 2, 4)], {}
    )
    assert made.replicas == {("t", 1): [2, 4], ("t", 2): [3, 4]}
    assert (made.leaving, made.obstacles, made.remarks) == ([], [], [])


def test_the_new_preferred_leader_has_the_records() -> None:
    """It is the one that is the preferred leader of the fewest, and never the one that comes."""
    held = [partition(0, 1, 2, 3), partition(1, 2, 3, 4), partition(2, 1, 2, 3), partition(3, 1, 3, 2)]
    made = plan(1, brokers(1, 2, 3, 4), held, {})
    assert made.replicas == {("t", 0): [3, 2, 4], ("t", 2): [2, 3, 4], ("t", 3): [3, 2, 4]}


def test_a_single_replica_moves() -> None:
    """Then the one that comes leads."""
    assert plan(1, brokers(1, 2), [partition(0, 1)], {}).replicas == {("t", 0): [2]}


def test_a_rack_that_has_none_comes_before_a_broker_with_less() -> None:
    """Where there is no such rack, another broker takes it, and that is told."""
    held = [partition(0, 1, 2, 3), partition(1, 4, 2), partition(2, 4, 2), partition(3, 4, 3)]
    known = brokers(1, 2, 3, 4, 5, racks=RACKS)
    made = plan(1, known, held, {})
    assert made.replicas == {("t", 0): [2, 3, 4]} and made.remarks == []
    made = plan(3, known, held, {})
    assert made.replicas[("t", 0)] == [1, 2, 5]
    assert made.remarks == ["t-0 will be in fewer racks than now: no other broker of the rack takes replicas"]


@pytest.mark.parametrize("fenced", [(), (3,)])
def test_a_factor_that_cannot_be_kept_is_an_obstacle(fenced: tuple[int, ...]) -> None:
    """The sentence names the partitions, and who is there."""
    held = [partition(index, 1, 2, 3) for index in range(7)] + [partition(7, 1, 2)]
    made = plan(1, brokers(1, 2, 3, fenced=fenced), held, {})
    takers = "1 can take them (2)" if fenced else "2 can take them (2, 3)"
    sentence = f"3 replicas of t-0, t-1, t-2, t-3, t-4 and 2 more need 3 brokers, and {takers}"
    assert made.obstacles[-1] == sentence
    assert made.obstacles[:-1] == ([f"2 replicas of t-7 need 2 brokers, and {takers}"] if fenced else [])


def test_a_cordoned_broker_takes_nothing() -> None:
    """And is named where it is lacking."""
    held = [partition(0, 1, 2)]
    assert plan(1, brokers(1, 2, 3, 4), held, {}, cordoned=[3]).replicas == {("t", 0): [2, 4]}
    made = plan(1, brokers(1, 2, 3), held, {}, cordoned=[3, 1])
    assert made.obstacles == [
        "2 replicas of t-0 need 2 brokers, and 1 can take them (2), since 3 take no new replicas (cordoned.log.dirs)"
    ]


def test_records_that_only_a_broker_has_that_is_away_are_an_obstacle() -> None:
    """Nobody could copy them."""
    held = [partition(0, 1, 2, in_sync=(1,)), partition(1, 1, 2)]
    made = plan(1, brokers(1, 2, 3, fenced=(1,)), held, {})
    assert made.obstacles == ["no broker that is there has all records of t-0"]
    assert made.replicas == {("t", 1): [2, 3]}


def test_what_moves_already_counts_as_moved() -> None:
    """Partitions that leave are waited for; those that come to the broker go elsewhere."""
    held = [partition(0, 3, 2, 1), partition(1, 2, 3, 1), partition(2, 2, 3)]
    moves = {("t", 0): Move([3, 2, 1], [3], [1]), ("t", 1): Move([2, 3, 1], [1], [3])}
    made = plan(1, brokers(1, 2, 3, 4), held, moves)
    assert made.leaving == [("t", 0)]
    assert made.replicas == {("t", 1): [2, 4]}


@pytest.mark.parametrize("seed", range(20))
def test_any_plan_keeps_what_it_must(seed: int) -> None:
    """The factor, the other replicas, no replica twice, and no more racks lost than have to be."""
    chance = random.Random(seed)
    known = brokers(*RACKS, racks=RACKS)
    held = [partition(index, *chance.sample(list(RACKS), chance.randint(1, 5))) for index in range(30)]
    gone = chance.choice(list(RACKS))
    made = plan(gone, known, held, {})
    assert not made.obstacles
    for each in held:
        new = made.replicas.get((each.topic, each.index))
        assert (new is None) is (gone not in each.replicas)
        if new is not None:
            rest = [replica for replica in each.replicas if replica != gone]
            assert len(set(new)) == len(each.replicas) and gone not in new and set(rest) < set(new)
            best = max(
                len({RACKS[replica] for replica in [*rest, taker]}) for taker in RACKS if taker not in {gone, *rest}
            )
            assert len({RACKS[replica] for replica in new}) == best
            if each.replicas[0] != gone:
                assert new[0] == each.replicas[0]
