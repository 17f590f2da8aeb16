"""`python -m tests.simulation.planted_seeds` proves the tester: it plants each bug of the quorum and of replication,
runs seeds until one of them fails, and prints how many that took, with the median.

Each bug is planted in a process of its own. All are to be found within 2 000 seeds."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

QUORUM, REPLICATION = "tests.simulation.raft_seeds", "tests.simulation.replication_seeds"
SEEDS = 2000


def try_all(module, plants, limit):
    """The number of seeds that each bug took which was found, from seed 0 on; a line for each bug."""
    found = []
    for plant in plants:
        command = [sys.executable, "-m", module, "--plant", plant.name, "--first", "0", "--seeds", str(limit)]
        done = subprocess.run(command, capture_output=True, text=True)
        line = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-300:]
        is_found = done.returncode == 1 and line.startswith("seed ")
        if is_found:
            found.append(int(line.split()[1].rstrip(":")) + 1)
        print(f"{found[-1] if is_found else '-':>6}  {plant.name}: {line[:160]}", flush=True)
    return found


def summary(found, count):
    """One line about the bugs that were found, of `count` planted ones."""
    median, most = statistics.median(found or [0]), max(found or [0])
    return f"{len(found)} of {count} planted bugs found, median {median:g} seeds, most {most}"


def main():
    """Ends with 1 when a bug is not found."""
    from tests.planted import raft_plants
    from tests.simulation import replication_seeds

    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted_seeds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="at most so many for each bug")
    parser.add_argument("--only", default="", metavar="TEXT", help="the bugs with this text in their name")
    options = parser.parse_args()
    found, count = [], 0
    for module, plants in ((QUORUM, raft_plants.FOUND_BY_SEEDS), (REPLICATION, replication_seeds.planted())):
        chosen = [each for each in plants if options.only in each.name]
        count += len(chosen)
        found += try_all(module, chosen, options.seeds)
    print(summary(found, count))
    return int(len(found) < count)


if __name__ == "__main__":
    sys.exit(main())
