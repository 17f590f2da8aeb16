"""The report card: one row for each suite with the results of both brokers, and every difference with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from compat_tests.setup.kafka_jars import KAFKA_VERSION
from compat_tests.suites.catalogue import LEFT_OUT
from compat_tests.suites.suite import FAILED, Comparison

BEGIN, END = "<!-- suites: begin -->", "<!-- suites: end -->"
UNKNOWN = "not explained: a bug"


def lines(comparisons: Iterable[Comparison]) -> list[str]:
    """The card as lines of Markdown."""
    card = [
        f"| suite | version, from | passed on Kafka {KAFKA_VERSION} | passed here | passes there and not here, "
        "because |",
        "|---|---|---:|---:|---|",
    ]
    card += [_row(comparison) for comparison in comparisons]
    return [*card, "", *left_out_lines()]


def left_out_lines() -> list[str]:
    """The table of suites that no registry carries."""
    table = ["| not run | why | what stands in for it |", "|---|---|---|"]
    return table + [f"| {each.name} | {each.why} | {each.instead} |" for each in LEFT_OUT]


def _row(comparison: Comparison) -> str:
    suite = comparison.suite
    reasons: dict[str, int] = {}
    for reason in comparison.only_on_kafka().values():
        reasons[reason or UNKNOWN] = reasons.get(reason or UNKNOWN, 0) + 1
    said = [f"{count}: {reason}" for reason, count in reasons.items()]
    if comparison.only_here():
        said.append(f"{len(comparison.only_here())} the other way round")
    on_both = [
        test for test, each in comparison.on_kafka.items() if each == FAILED and comparison.here.get(test) == FAILED
    ]
    if on_both:
        said.append(f"{len(on_both)} on neither")
    if suite.not_run:
        said.append(f"not run: {suite.not_run}")
    name = f"{suite.name} ({suite.client})"
    source = f"{suite.version.lstrip('v')}, {suite.registry}"
    return f"| {name} | {source} | {comparison.passed_on_kafka()} | {comparison.passed_here()} | {'; '.join(said)} |"


def report(comparison: Comparison) -> list[str]:
    """Every test that differs, one line each, for a closer look."""
    found = [f"{test}: {reason or UNKNOWN}" for test, reason in comparison.only_on_kafka().items()]
    found += [f"{test}: passes here and not on Kafka" for test in comparison.only_here()]
    return found + [f"{pattern}: named as a difference and is none any more" for pattern in comparison.outdated()]


def into_document(path: Path, comparisons: list[Comparison]) -> None:
    """Update the card between its markers in a document; rows of suites that were not run stay as they are."""
    text = path.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    fresh = lines(comparisons)
    ran = {re.escape(comparison.suite.name) for comparison in comparisons}
    before = [line for line in text[begin:end].splitlines() if line.startswith("| ")]
    rows = {line.split(" (")[0]: line for line in before if re.match(r"^\| \S+ \(", line)}
    rows |= {line.split(" (")[0]: line for line in fresh if re.match(rf"^\| ({'|'.join(ran)}) \(", line)}
    card = [*fresh[:2], *rows.values(), "", *left_out_lines()]
    path.write_text(text[:begin] + "\n" + "\n".join(card) + "\n" + text[end:])
