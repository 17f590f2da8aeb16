"""A quorum under faults, from fixed seeds. `python -m tests.simulation.raft_seeds` runs more of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.seeds import examples
from tests.simulation.raft_node import RaftNode
from tests.simulation.raft_seeds import SEEDS, run, shrink
from tests.simulation.raft_world import FAULTS, RaftWorld

PARTS = 8
# The faults after which a node starts again.
STARTING = {"kill", "power", "blackout", "depose", "wipe"}


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part):
    """One leader in an epoch, nothing committed is lost or changed, and after healing the quorum goes on."""
    _, _, failed = run(range(part, examples(SEEDS), PARTS))
    if failed is not None:
        raise failed[1]


@pytest.mark.long
def test_the_faults_happen():
    """The seeds try what they are there for: leaders that follow each other, logs that are cut, snapshots that are
    fetched, machines that start again, voters that come, go and lose their disks."""
    epochs = starts = cut = loaded = steps = changes = wiped = 0
    for seed in range(30):
        world = RaftWorld(seed)
        world.run()
        steps += world.steps
        epochs += len(world.checkers.leaders)
        starts += sum(node.starts for node in world.nodes)
        cut += sum(node.cuts for node in world.nodes)
        loaded += sum(node.loads for node in world.nodes)
        changes += world.checkers.changes
        wiped += world.wiped_voters
    assert epochs > 60 and starts > 150 and cut > 5 and loaded > 3 and steps > 10_000
    assert changes > 20 and wiped > 2
    assert set(FAULTS) == {fault for seed in range(30) for fault in RaftWorld(seed).faults}


def outcome(seed):
    """What tells one run from another."""
    world = RaftWorld(seed)
    world.run()
    return world.steps, world.time, sorted(world.checkers.committed.items())[-1], sorted(world.checkers.leaders.items())


@pytest.mark.long
def test_a_seed_is_a_run():
    """The same seed is the same run, also in another process, whose sets have another order."""
    assert outcome(5) == outcome(5)
    done = subprocess.run(
        [sys.executable, "-c", "from tests.simulation.test_raft_seeds import outcome; print(outcome(5))"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == repr(outcome(5))


def test_a_failure_says_how_to_repeat_it(monkeypatch):
    monkeypatch.setattr("tests.simulation.raft_world.MAX_STEPS", 10)
    _, _, (seed, error) = run([3])
    assert seed == 3
    assert error.__notes__ == ["Repeat it: python -m tests.simulation.raft_seeds --first 3 --seeds 1"]


def test_a_failure_is_shrunk(monkeypatch):
    """What it does not need is left out, one thing after the other."""

    def step(node, event):
        if node.starts > 1:
            raise AssertionError("started twice")
        return original(node, event)

    original = RaftNode.step
    monkeypatch.setattr(RaftNode, "step", step)
    seed = next(seed for seed in range(100) if {"kill", "pause"} <= set(RaftWorld(seed).faults))
    assert run([seed])[2] is not None
    without = shrink(seed)
    assert len(STARTING - set(without)) == 1 and set(FAULTS) - set(without) <= STARTING
    _, _, (_, error) = run([seed], without)
    assert error.__notes__[0].endswith(f"--without {','.join(without)}")
