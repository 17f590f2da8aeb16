"""`python -m tests.simulation.replication_seeds` runs brokers under faults, from many seeds: which do not hold?

`--planted` plants bugs in the code, each in a process of its own, and prints the number of seeds that find it."""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time

from tests.simulation.raft_seeds import Planted

# Each planted bug is found within this many seeds.
SEEDS = 200


def run(seeds, without=()):
    """Run these seeds: how many, and the first that fails as (seed, error), or None."""
    from tests.simulation.replication_faults import FaultyWorld

    count = 0
    for seed in seeds:
        count += 1
        try:
            FaultyWorld(seed, without).run_all()
        except Exception as error:
            less = f" --without {','.join(without)}" if without else ""
            error.add_note(f"Repeat it: python -m tests.simulation.replication_seeds --first {seed} --seeds 1{less}")
            return count, (seed, error)
    return count, None


def shrink(seed, without=()):
    """All faults that can be left out of a seed that fails, one after the other, and it still fails."""
    from tests.simulation.replication_faults import FAULTS, TRANSACTIONS

    for name in (TRANSACTIONS, *FAULTS):
        if name not in without and run([seed], [*without, name])[1] is not None:
            without = [*without, name]
    return without


def planted():
    """The bugs that these seeds are to find."""
    from tests.planted import replication_plants, transaction_seed_plants

    return [*replication_plants.FOUND_BY_SEEDS, *transaction_seed_plants.FOUND_BY_SEEDS]


def _try_all(only, limit):
    """Plant each bug; ends with 1 when one is not found."""
    from tests.simulation.planted_seeds import summary, try_all

    plants = [each for each in planted() if only in each.name]
    found = try_all(__spec__.name, plants, limit)
    print(summary(found, len(plants)))
    return int(len(found) < len(plants))


def _run_all(first, count, without):
    """Run every seed; a line for each that fails."""
    failures = 0
    began = time.monotonic()
    for seed in range(first, first + count):
        _, failed = run([seed], without)
        if failed is not None:
            failures += 1
            print(f"seed {seed}: {type(failed[1]).__name__}: {str(failed[1])[:300]}", flush=True)
    print(f"{count - failures} of {count} seeds from {first} hold, {(time.monotonic() - began) / count:.2f} s each")
    return int(failures > 0)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replication_seeds")
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--without", default="", help="faults to leave out, and `transactions`, with commas between")
    parser.add_argument("--shrink", action="store_true", help="leave out what the failing seed does not need")
    parser.add_argument("--all", action="store_true", help="go on after a seed that fails")
    parser.add_argument("--planted", nargs="?", const="", default=None, metavar="PART OF A NAME")
    parser.add_argument("--plant", help="run the seeds with this bug planted")
    options = parser.parse_args()
    if options.planted is not None:
        return _try_all(options.planted, options.seeds)
    if options.plant:
        (plant,) = (each for each in planted() if each.name == options.plant)
        sys.meta_path.insert(0, Planted(plant))
    without = [each for each in options.without.split(",") if each]
    first = random.randrange(1 << 32) if options.first is None else options.first
    # A world makes many objects and few cycles.
    gc.freeze()
    gc.set_threshold(50_000)
    if options.all:
        return _run_all(first, options.seeds, without)
    began = time.monotonic()
    count, failed = run(range(first, first + options.seeds), without)
    seconds = time.monotonic() - began
    if failed is None:
        print(f"{count} seeds from {first} hold, {seconds / count:.2f} s each")
        return 0
    seed, error = failed
    if options.shrink:
        print(f"without {','.join(shrink(seed, without))} it fails still")
    if not options.plant:
        import traceback

        traceback.print_exception(error)
    print(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
