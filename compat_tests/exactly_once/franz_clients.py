"""The clients of the checker that use franz-go: `franz/main.go`, compiled once with the client's own source."""

from __future__ import annotations

from pathlib import Path

from compat_tests.setup.cache import exclusively
from compat_tests.suites import franz_go
from compat_tests.suites.packages import call

SOURCE = Path(__file__).with_name("franz") / "main.go"
KINDS = ("franz", "franzreader")


def program() -> Path:
    """The compiled program. SuiteUnavailable without Go, or without the client's source."""
    source = franz_go.SUITE.prepare()
    folder = source / "checker_client"
    copied, made = folder / "main.go", folder / "client"
    with exclusively("franz-clients"):
        if not made.exists() or copied.read_bytes() != SOURCE.read_bytes():
            folder.mkdir(exist_ok=True)
            copied.write_bytes(SOURCE.read_bytes())
            call(["go", "build", "-o", str(made), "./checker_client"], source)
    return made
