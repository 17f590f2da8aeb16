"""The package gssapi, for the tests of logins by Kerberos: pip builds it from its source, for which the system's
headers are needed, so that it is not among the packages of the other locks. What builds it is locked too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from compat_tests.setup import system_packages

LOCKS = Path(__file__).parents[2] / "requirements"
LOCK, BUILD_LOCK = LOCKS / "gssapi.txt", LOCKS / "gssapi_build.txt"


def install() -> str | None:
    """Install it unless it is there; why it can't be, in a sentence. Without the system's headers nothing is tried."""
    if importlib.util.find_spec("gssapi") is not None:
        return None
    if not system_packages.is_present(system_packages.KERBEROS_HEADERS):
        return None
    print("set-up: installing the package gssapi, for the tests of logins by Kerberos", flush=True)
    with tempfile.TemporaryDirectory() as tools:
        # Without the isolation pip would get whatever is newest to build with, and check no hash of it.
        done = _install(["--only-binary=:all:", "--target", tools, "-r", str(BUILD_LOCK)], "")
        if done.returncode == 0:
            done = _install(["--no-build-isolation", "-r", str(LOCK)], tools)
    if done.returncode == 0:
        return None
    reason = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
    return f"the package gssapi is missing, needed for the tests of logins by Kerberos: {reason}"


def _install(words: list[str], path: str) -> subprocess.CompletedProcess[str]:
    """Have pip install what a lock names, with the packages in a folder to build with."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
