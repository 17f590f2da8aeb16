"""`python -m tests.log.crashes --seeds 20000`: the crash machine over many seeds, with a report."""

from __future__ import annotations

import argparse
import secrets
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable

from tests.log.crash_machine import CrashMachine


class Report:
    """The number of seeds and of each operation, and the failures, each with the command that repeats it."""

    def __init__(self) -> None:
        self.seeds = 0
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def lines(self) -> list[str]:
        """The report as lines of text."""
        counted = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return [*self.failures, f"{self.seeds} seeds, {len(self.failures)} failures; {counted}"]


def run(
    seeds: Iterable[int], most_failures: int = 5, progress: Callable[[Report], None] = lambda report: None
) -> Report:
    """Run one machine per seed; stop after `most_failures`."""
    report = Report()
    for seed in seeds:
        machine = None
        try:
            machine = CrashMachine(seed)
            machine.run()
        except Exception as error:  # Any exception that the log does not handle is a failure.
            last = traceback.extract_tb(error.__traceback__)[-1]
            report.failures.append(
                f"{type(error).__name__}: {error} ({last.name}); repeat with: python -m tests.log.crashes --seed {seed}"
            )
        report.seeds += 1
        for row in machine.trace if machine else ():
            report.counts[row.partition(" ")[0]] += 1
            report.counts["failed"] += " failed" in row
        if len(report.failures) >= most_failures:
            break
        progress(report)
    return report


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.log.crashes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many (default 500)")
    parser.add_argument("--first", type=int, help="the first of them (default: anywhere)")
    parser.add_argument("--seed", type=int, help="one seed, with all that it does")
    options = parser.parse_args()
    if options.seed is not None:
        machine = CrashMachine(options.seed)
        try:
            machine.run()
        finally:
            print("\n".join(machine.trace))
        return 0
    first = secrets.randbelow(1 << 40) if options.first is None else options.first
    print(f"seeds {first} to {first + options.seeds - 1}", flush=True)

    def progress(report: Report) -> None:
        if report.seeds % 5000 == 0:
            print(f"{report.seeds} seeds, {len(report.failures)} failures", flush=True)

    report = run(range(first, first + options.seeds), progress=progress)
    print("\n".join(report.lines()))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
