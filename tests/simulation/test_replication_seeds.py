"""Brokers under faults, from seeds. `python -m tests.simulation.replication_seeds` runs more of them."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pykafkad.handlers import fetch_follower
from pykafkad.server import pending_partitions
from tests.seeds import examples, sampled, seed_of_the_code
from tests.simulation import replication_faults
from tests.simulation.replication_faults import FAULTS, FaultyWorld
from tests.simulation.replication_seeds import run, shrink
from tests.simulation.transaction_history import ABORTED, COMMITTED, UNKNOWN

PARTS = 50
SEEDS = 500
FIRST_OF_LITTLE = 1000
WITH_NEWER_FAULTS = (17, 18, 22)
"""These draw the last of the rare faults."""


@pytest.mark.parametrize("part", sampled(range(PARTS), PARTS))
def test_seeds(part):
    """One leader in an epoch, nothing acknowledged is lost, equal logs, and after healing everybody is in sync."""
    first = seed_of_the_code() % (1 << 32)
    _, failed = run(range(first + part, first + examples(SEEDS), PARTS))
    if failed is not None:
        raise failed[1]


@pytest.mark.long
def test_seeds_with_little_in_each_turn(monkeypatch):
    """The same where one partition adopts its new state in a turn, and a follower's Fetch looks at one: as with
    thousands of partitions, for which there is no time here."""
    monkeypatch.setattr(fetch_follower, "AT_ONCE", 1)
    monkeypatch.setattr(pending_partitions, "ROLES_AT_ONCE", 0)
    monkeypatch.setattr(pending_partitions, "ROLES_PER_TURN", 1)
    _, failed = run(range(FIRST_OF_LITTLE, FIRST_OF_LITTLE + examples(10)))
    if failed is not None:
        raise failed[1]


@pytest.mark.long
def test_the_faults_happen():
    """The seeds try what they are there for: leaders that follow each other, logs that are cut, answers that fail,
    brokers that come back into the ISR, also after an unclean stop."""
    counts, happened = Counter(), Counter(dict.fromkeys(FAULTS, 0))
    for seed in (*range(12), *WITH_NEWER_FAULTS):
        world = FaultyWorld(seed)
        world.run_all()
        counts["elections"] += world.checkers.elections
        counts["acknowledged"] += sum(len(each.acknowledged) for each in world.producers)
        counts["failures"] += sum(each.failures for each in world.producers)
        for name in ("cuts", "joins", "rejoins", "images"):
            counts[name] += getattr(world.metadata, name)
        happened.update(world.happened)
    assert counts["elections"] > 100 and counts["acknowledged"] > 3000 and counts["failures"] > 300, counts
    assert counts["cuts"] > 5 and counts["joins"] > 100 and counts["rejoins"] > 10 and counts["images"] > 50, counts
    assert all(happened.values()), happened


@pytest.mark.long
def test_the_transactions_happen():
    """The seeds with transactions have such that are committed, aborted and of unknown end, clients that take each
    other's place, requests that are sent again, and offsets of groups."""
    transactions, lives, repeated, polls = [], 0, 0, 0
    for seed in range(24):
        world = FaultyWorld(seed)
        if world.transactions is not None:
            world.run_all()
            part = world.transactions
            transactions += part.history.transactions
            lives += sum(each.lives for each in part.writers)
            repeated += sum(each.repeated for each in (part.idempotent, *part.writers))
            polls += sum(len(each.polls) for each in part.readers)
    outcomes = Counter(each.outcome for each in transactions)
    assert outcomes[COMMITTED] > 100 and outcomes[ABORTED] > 50 and outcomes[UNKNOWN] > 3, outcomes
    assert sum(each.offset is not None for each in transactions) > 50
    assert lives > 40 and repeated > 20 and polls > 500


def outcome(seed):
    """What tells one run from another."""
    world = FaultyWorld(seed)
    world.run_all()
    return world.cluster.digest, world.now, [sorted(each.acknowledged.items())[-1] for each in world.producers]


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 6])
def test_a_seed_is_a_run(seed):
    """The same seed is the same run, also in another process, whose sets have another order."""
    first = outcome(seed)
    assert outcome(seed) == first
    code = f"from tests.simulation.test_replication_seeds import outcome; print(outcome({seed}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(first)


@pytest.mark.long
def test_a_failure_is_shrunk(monkeypatch):
    """The faults that a seed does not need are left out, and what repeats it says so."""

    def run_all(world):
        if "kill" in world.faults:
            raise AssertionError("killed")

    monkeypatch.setattr(FaultyWorld, "run_all", run_all)
    seed = next(seed for seed in range(100) if {"kill", "pause"} <= set(FaultyWorld(seed).faults))
    without = shrink(seed)
    assert set(FAULTS) - set(without) == {"kill"}
    _, (_, error) = run([seed], without)
    repeating = f"--first {seed} --seeds 1 --without {','.join(without)}"
    assert error.__notes__ == [f"Repeat it: python -m tests.simulation.replication_seeds {repeating}"]


@pytest.mark.long
def test_an_answer_that_a_client_does_not_understand_fails_the_run(monkeypatch):
    """Otherwise its reader would be silent from then on, and find nothing."""

    def not_understood(data, offset=0):
        raise ValueError("this is no batch")

    monkeypatch.setattr(replication_faults, "records_of", not_understood)
    _, (_, error) = run([3], FAULTS)
    assert "this is no batch" in str(error)
