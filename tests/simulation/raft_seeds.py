"""`python -m tests.simulation.raft_seeds` runs a quorum under faults, from many seeds, and says which do not hold.

`--planted` plants bugs in the code, each in a process of its own, and prints the number of seeds that find it."""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import random
import sys
import time
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pykafkad"
# Each planted bug is found within this many seeds, which are those of the test.
SEEDS = 500


def run(seeds, without=()):
    """Run these seeds: how many, how many steps, and the first that fails as (seed, error), or None."""
    from tests.simulation.raft_world import RaftWorld

    count = steps = 0
    for seed in seeds:
        world = RaftWorld(seed, without)
        count += 1
        try:
            world.run()
        except Exception as error:
            less = f" --without {','.join(without)}" if without else ""
            error.add_note(f"Repeat it: python -m tests.simulation.raft_seeds --first {seed} --seeds 1{less}")
            return count, steps + world.steps, (seed, error)
        steps += world.steps
    return count, steps, None


def shrink(seed, without=()):
    """All that can be left out of a seed that fails, one after the other, and it still fails."""
    from tests.simulation.raft_world import CONDITIONS, FAULTS

    for name in ("drift", *CONDITIONS, *FAULTS):
        if name not in without and run([seed], [*without, name])[2] is not None:
            without = [*without, name]
    return without


class Planted(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module from a source with a bug."""

    def __init__(self, plant):
        self.name = "pykafkad." + plant.file.removesuffix(".py").replace("/", ".")
        self.source = plant.planted_in((PACKAGE / plant.file).read_text(encoding="utf-8"))

    def find_spec(self, fullname, path, target=None):
        return importlib.machinery.ModuleSpec(fullname, self) if fullname == self.name else None

    def get_source(self, fullname):
        return self.source


def _plant(name):
    from tests.planted.raft_plants import FOUND_BY_SEEDS

    (plant,) = (each for each in FOUND_BY_SEEDS if each.name == name)
    sys.meta_path.insert(0, Planted(plant))


def _try_all(only, limit):
    """Plant each bug; ends with 1 when one is not found."""
    from tests.planted.raft_plants import FOUND_BY_SEEDS
    from tests.simulation.planted_seeds import summary, try_all

    plants = [each for each in FOUND_BY_SEEDS if only in each.name]
    found = try_all(__spec__.name, plants, limit)
    print(summary(found, len(plants)))
    return int(len(found) < len(plants))


def main():
    """Ends with 1 when a seed fails, or a planted bug does not make one fail."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.raft_seeds", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, help="how many seeds: 10 000, or for each planted bug as many as the test runs"
    )
    parser.add_argument("--first", type=int, help="the first of them; otherwise a random one")
    parser.add_argument(
        "--planted", nargs="?", const="", metavar="TEXT", help="plant the bugs with this text in their name"
    )
    parser.add_argument(
        "--without", default="", metavar="NAMES", help="faults and conditions to leave out, with commas"
    )
    parser.add_argument("--plant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.planted is not None:
        return _try_all(options.planted, SEEDS if options.seeds is None else options.seeds)
    if options.plant:
        _plant(options.plant)
    first = random.SystemRandom().randrange(1 << 40) if options.first is None else options.first
    began = time.process_time()
    without = options.without.split(",") if options.without else []
    count, steps, failed = run(range(first, first + (options.seeds or 10_000)), without)
    seconds = time.process_time() - began
    if failed is None:
        print(f"{count} seeds from {first} hold: {steps} steps, {seconds / count * 1000:.1f} ms each")
        return 0
    seed, error = failed
    print(f"seed {seed} fails: {type(error).__name__}: {error} ({'; '.join(error.__notes__)})")
    smaller = without if options.plant else shrink(seed, without)
    if len(smaller) > len(without):
        _, _, (_, error) = run([seed], smaller)
        print(f"with less it fails, too: {type(error).__name__}: {error} ({'; '.join(error.__notes__)})")
    return 1


if __name__ == "__main__":
    sys.exit(main())
