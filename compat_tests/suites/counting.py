"""Outcomes of single tests, read from each test runner's output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from compat_tests.suites.suite import FAILED, PASSED, SKIPPED, Outcomes

GO_ACTIONS = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}
RUST_WORDS = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}
RUST_LINE = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)


def from_junit(path: Path) -> Outcomes:
    """Outcomes of a pytest run by its JUnit file; the id is `module::test[parameters]`."""
    outcomes: Outcomes = {}
    if not path.exists():
        return outcomes
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name')}"
        kinds = {child.tag for child in case}
        outcome = FAILED if kinds & {"failure", "error"} else SKIPPED if "skipped" in kinds else PASSED
        # An error in the teardown is a second row of the same test.
        outcomes[name] = FAILED if FAILED in (outcome, outcomes.get(name)) else outcome
    return outcomes


def from_test2json(lines: Iterable[str], prefix: str = "") -> Outcomes:
    """Outcomes of a Go test binary. Subtests count instead of their parent; an unfinished test has failed."""
    outcomes: Outcomes = {}
    for line in lines:
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if "Test" in event and (event["Action"] == "run" or event["Action"] in GO_ACTIONS):
            outcomes[event["Test"]] = GO_ACTIONS.get(event["Action"], FAILED)
    parents = {name.rsplit("/", depth)[0] for name in outcomes for depth in range(1, name.count("/") + 1)}
    # A parent that fails while every subtest passes is a failure of its own.
    alone = {
        parent
        for parent in parents
        if outcomes.get(parent) == FAILED
        and FAILED not in [each for name, each in outcomes.items() if name.startswith(parent + "/")]
    }
    return {prefix + name: each for name, each in outcomes.items() if name not in parents or name in alone}


def from_libtest(text: str, prefix: str = "") -> Outcomes:
    """Outcomes of a Rust test binary, read from its output."""
    return {prefix + name: RUST_WORDS[word] for name, word in RUST_LINE.findall(text)}
