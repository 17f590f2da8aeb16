"""`make test` and `make quick` run every part, whatever became of the parts before, and fail if one of them did."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import PROJECT

PARTS = {
    "quick": ["unit", "lint"],
    "test": ["lint", "unit", "set-up", "portable", "clients", "compat", "spark"],
    "test-long": [
        "lint",
        "set-up",
        "unit",
        "crashes",
        "damage",
        "quorum",
        "replicas",
        "large",
        "fuzz",
        "logins",
        "atheris",
        "planted",
        "seeds",
        "rounds",
        "cuts",
        "compat",
        "spark",
    ],
}
# What stands in for Python, ruff and mypy writes down how it was called; a call with one of FAILING's words in it
# fails.
STAND_IN = """#!/bin/sh
echo "${0##*/} $*" >> "$CALLS"
case "$*" in *$FAILING*) echo "1 failed in 0.1s"; exit 1;; *) echo "2 passed in 0.1s";; esac
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None or shutil.which("bash") is None, reason="needs make, bash")


def run_make(target: str, folder: Path, failing: str) -> tuple[int, str, str]:
    """Exit code, output and calls of `make target` where nothing but the Makefile's own commands run."""
    binaries = folder / "venv" / "bin"
    binaries.mkdir(parents=True)
    for name in ("python", "ruff", "mypy"):
        (binaries / name).write_text(STAND_IN)
        (binaries / name).chmod(0o755)
    for lock in ("base", "test", "spark"):
        (folder / "venv" / f".installed-{lock}").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment |= {"CALLS": str(folder / "calls"), "FAILING": failing}
    ran = subprocess.run(
        ["make", "-C", str(PROJECT), target, f"VENV={folder / 'venv'}"], env=environment, capture_output=True, text=True
    )
    return ran.returncode, ran.stdout + ran.stderr, (folder / "calls").read_text()


def results(output: str) -> dict[str, str]:
    """The parts that the end of the output names, with how each ended."""
    _, found, end = output.partition("== result\n")
    assert found, output
    rows = [line.split() for line in end.splitlines() if line.endswith(" s)")]
    return {row[0]: row[1] for row in rows}


@pytest.mark.parametrize("target", PARTS)
def test_all_parts_pass(target: str, tmp_path: Path) -> None:
    """The result names every part, in order."""
    code, output, _ = run_make(target, tmp_path, "no such word")
    assert list(results(output).items()) == [(part, "passed") for part in PARTS[target]]
    assert code == 0


@pytest.mark.parametrize(
    ("failing", "part"),
    [
        ("pytest tests", "unit"),
        ("compat_tests.setup", "set-up"),
        ("pytest --quick tests", "portable"),
        ("pytest --against", "clients"),
        ("pytest compat_tests", "compat"),
        ("pytest spark_it", "spark"),
        ("format --check", "lint"),
    ],
)
def test_a_part_that_fails_hides_none(failing: str, part: str, tmp_path: Path) -> None:
    """Every part is called all the same; the result says which failed, and `make` fails."""
    code, output, calls = run_make("test", tmp_path, failing)
    assert results(output) == {each: "FAILED" if each == part else "passed" for each in PARTS["test"]}
    assert code != 0 and "1 failed in 0.1s" in output
    for call in ("ruff format", "ruff check", "mypy", "pytest tests", "compat_tests.setup", "pytest compat_tests"):
        assert call in calls, call
    assert "pytest spark_it" in calls


@pytest.mark.parametrize(
    ("failing", "part"), [("pytest tests", "unit"), ("format --check", "lint"), ("check .", "lint")]
)
def test_lint_beside_the_tests_is_not_lost(failing: str, part: str, tmp_path: Path) -> None:
    """Its output comes after that of the tests, with its result."""
    code, output, calls = run_make("quick", tmp_path, failing)
    assert results(output) == {each: "FAILED" if each == part else "passed" for each in PARTS["quick"]}
    _, _, said = output.partition("== lint\n")
    assert code != 0 and ("1 failed in 0.1s" in said) == (part == "lint")
    assert "mypy" in calls
