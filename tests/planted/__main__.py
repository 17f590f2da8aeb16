"""`python -m tests.planted` plants each bug in a copy of the sources, runs its tests there, and says which noticed."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.planted.plant import Plant
from tests.planted.plants import PLANTS

PROJECT = Path(__file__).parents[2]
COPIED = ("pykafkad", "tests")
LIMIT_SECONDS = 300


def noticed_by(copy: Path, tests: Iterable[str]) -> str | None:
    """The first test that fails in the copy; None when none does."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return "a run without end"
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else None if done.returncode == 0 else "the end of the run"


def plant(copy: Path, bug: Plant) -> str | None:
    """Plant one bug, run its tests, take it out again. Returns what noticed, None when nothing did."""
    path = copy / "pykafkad" / bug.file
    source = path.read_text(encoding="utf-8")
    path.write_text(bug.planted_in(source), encoding="utf-8")
    try:
        return noticed_by(copy, bug.tests)
    finally:
        path.write_text(source, encoding="utf-8")


def main() -> int:
    """Ends with 1 when a bug stayed unnoticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", default="", help="only bugs with this text in their name or file")
    options = parser.parse_args()
    chosen = [bug for bug in PLANTS if options.only in bug.name or options.only in bug.file]
    if not chosen:
        parser.error(f"no bug has {options.only!r} in its name or file")
    missed = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        for name in COPIED:
            shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "conftest.py"):
            shutil.copy(PROJECT / name, copy)
        failing = noticed_by(copy, sorted({path for bug in chosen for path in bug.tests}))
        if failing:
            print(f"{failing} fails without a planted bug")
            return 1
        for bug in chosen:
            found = plant(copy, bug)
            print(f"{bug.file}: {bug.name}: {'MISSED' if found is None else f'noticed by {found}'}", flush=True)
            if found is None:
                missed.append(bug.name)
    print(f"{len(chosen)} bugs planted, {len(chosen) - len(missed)} noticed, {len(missed)} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
