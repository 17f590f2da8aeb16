"""`python -m compat_tests.suites`: run other clients' own suites and print the report card.

Exit code 1 if a test passes on Kafka and not on pykafkad without a known reason, or if a known reason is outdated.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from compat_tests.setup.kafka_jars import fetch_jars
from compat_tests.suites import card
from compat_tests.suites.catalogue import SUITES, suite_named
from compat_tests.suites.run import run_suite
from compat_tests.suites.suite import PASSED, Comparison, SuiteUnavailable

AGAINST = {"kafka": ("kafka",), "pykafkad": ("pykafkad",), "both": ("kafka", "pykafkad")}


def main() -> int:
    """Parse the options, run the suites, print the card."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.suites", description=__doc__)
    parser.add_argument("--suite", action="append", choices=[suite.name for suite in SUITES], help="only this one")
    parser.add_argument("--against", choices=sorted(AGAINST), default="both")
    parser.add_argument("--quick", action="store_true", help="only the part that `make test` runs")
    parser.add_argument("--document", type=Path, help="update the card in this file")
    arguments = parser.parse_args()
    if arguments.document and (arguments.against != "both" or arguments.quick):
        parser.error("the table in docs/suites.md is that of whole runs against both")
    fetch_jars()
    comparisons = []
    for suite in map(suite_named, arguments.suite or [suite.name for suite in SUITES]):
        try:
            runs = {against: run_suite(suite, against, arguments.quick) for against in AGAINST[arguments.against]}
        except SuiteUnavailable as error:
            print(f"{suite.name}: skipped: {error}")
            continue
        for against, run in runs.items():
            passed = list(run.outcomes.values()).count(PASSED)
            how_many = f"{passed} of {len(run.outcomes)} in {run.seconds:.0f} s"
            print(f"{suite.name} on {against}: {how_many}, output in {run.log}", flush=True)
        if arguments.against == "both":
            comparisons.append(Comparison(suite, runs["kafka"].outcomes, runs["pykafkad"].outcomes))
            print(*card.report(comparisons[-1]), sep="\n", flush=True)
    if comparisons:
        print("", *card.lines(comparisons), sep="\n")
    if arguments.document:
        card.into_document(arguments.document, comparisons)
    return 1 if any(each.unexplained() or each.outdated() for each in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main())
