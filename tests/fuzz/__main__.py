"""`python -m tests.fuzz --inputs 10000000` sends mutated inputs, or those of atheris, to every decoder and reports."""

from __future__ import annotations

import argparse
import secrets
import sys

from tests.fuzz import mutation


def main() -> int:
    """Runs and reports; the exit code is 1 when there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many inputs (default 100000)")
    parser.add_argument("--seed", default=None, help="repeats a run of the mutation engine")
    parser.add_argument(
        "--targets",
        default="",
        help=f"names with commas: {', '.join((*(target.name for target in mutation.TARGETS), *mutation.GROUPS))}",
    )
    parser.add_argument(
        "--engine", choices=("mutation", "atheris"), default="mutation", help="where the inputs come from"
    )
    parser.add_argument("--input", help="one input of a finding, TARGET:HEX")
    options = parser.parse_args()
    asked = [name for name in options.targets.split(",") if name]
    names = [name for each in asked for name in sorted(mutation.GROUPS.get(each, {each}))]
    if options.input:
        name, _, data = options.input.partition(":")
        target = next(target for target in mutation.TARGETS if target.name == name)
        print("value" if target.check(bytes.fromhex(data.strip())) else "refused")
        return 0
    targets = [target for target in mutation.TARGETS if not names or target.name in names]
    if options.engine == "atheris":
        from tests.fuzz import coverage

        return coverage.run(options.inputs, names)
    seed = options.seed or secrets.token_hex(4)
    print(f"seed {seed}", flush=True)

    def progress(report: mutation.Report) -> None:
        if report.total % 500_000 == 0:
            print(
                f"{report.total} inputs, {len(report.findings)} findings, {report.growth_mb:.0f} MB growth", flush=True
            )

    report = mutation.run(options.inputs, seed, targets, progress)
    print("\n".join(report.lines()))
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
