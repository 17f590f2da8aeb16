"""The attacks that docs/security.md lists, and the tests that it names for them."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.architecture.source import PROJECT
from tests.rows import in_turn

PAGE = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("\n## Attacks")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and "| attack |" not in line
]


@cache
def _tests(file: str) -> frozenset[str]:
    """The names of a file's tests, also of those in classes."""
    tree = ast.parse((PROJECT / file).read_text(encoding="utf-8"))
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))


@in_turn("number, attack, outcome, tests", ROWS, name_of=lambda row: row[1])
def test_each_attack_has_tests_that_are_there(number: str, attack: str, outcome: str, tests: str) -> None:
    """By file and name."""
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", tests)
    assert attack and outcome and named and len(named) == tests.count("`") // 2
    for file, name in named:
        assert name in _tests(file), f"{file} has no {name}"


def test_no_attack_of_the_list_is_missing() -> None:
    """The numbers are those of the list of attacks on authentication and authorization."""
    assert [row[0] for row in ROWS if row[0]] == [f"S{number}" for number in range(1, 24)]
    assert len(ROWS) > 30
