"""Builds and runs the test binaries of a Rust crate."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from compat_tests.suites.counting import from_libtest
from compat_tests.suites.packages import call
from compat_tests.suites.program import run_logged
from compat_tests.suites.suite import Outcomes, Place, SuiteUnavailable

BINARIES = "test-binaries.json"
# Nobody debugs these binaries, and each runs for seconds: without what a debugger needs and without optimization, also
# of the C code in them, they are compiled in much less time.
NO_DEBUGGER = "-O0 -g0"
FAST_BUILD = {
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_INCREMENTAL": "0",
    "CFLAGS": NO_DEBUGGER,
    "CXXFLAGS": NO_DEBUGGER,
}


def build(source: Path, updates: Sequence[str] = (), unused: Sequence[str] = ()) -> None:
    """Compile the crate's integration tests with the versions that it locks, except `updates` ("crate@version").

    `unused` are dependencies of the crate's other tests, benches and examples, which would be compiled too.
    """
    manifest = source / "Cargo.toml"
    manifest.write_text(without(manifest.read_text(), unused))
    # The toolchain file asks for one version of the compiler, which rustup would download.
    (source / "rust-toolchain.toml").unlink(missing_ok=True)
    for update in updates:
        crate, version = update.split("@")
        call(["cargo", "update", "--package", crate, "--precise", version], source)
    # What is no longer needed leaves the lock; nothing else in it changes.
    call(["cargo", "update", "--workspace"], source)
    compile_tests = ["cargo", "test", "--no-run", "--locked", "--test", "*", "--message-format", "json"]
    printed = call(compile_tests, source, FAST_BUILD)
    messages = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    binaries = {each["target"]["name"]: each["executable"] for each in messages if each.get("executable")}
    (source / BINARIES).write_text(json.dumps(binaries))


def without(manifest: str, unused: Sequence[str]) -> str:
    """The text of a published crate's Cargo.toml without some of its dependencies for tests."""
    for name in unused:
        manifest, found = re.subn(
            rf"^\[dev-dependencies\.{name}\]\n(?:[^\[\n].*\n|\n)*", "", manifest, flags=re.MULTILINE
        )
        if not found:
            raise SuiteUnavailable(f"the crate does not depend on {name} any more")
    return manifest


def run(place: Place, environment: dict[str, str], skip: Sequence[str] = (), threads: int = 2) -> Outcomes:
    """Run every test binary in turn; tests whose names contain a part in `skip` are not run."""
    outcomes: Outcomes = {}
    for name, binary in sorted(json.loads((place.source / BINARIES).read_text()).items()):
        command = [binary, f"--test-threads={threads}"]
        for part in skip:
            command += ["--skip", part]
        printed = run_logged(command, place, place.source, environment, timeout_seconds=600)
        outcomes |= from_libtest(printed, f"{name}::")
    return outcomes
