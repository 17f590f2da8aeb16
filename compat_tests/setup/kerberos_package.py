"""The package gssapi, for the tests of logins by Kerberos: pip builds it from its source, for which the system's
headers are needed, so that it is not among the packages of the other locks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from compat_tests.setup import system_packages

LOCK = Path(__file__).parents[2] / "requirements" / "gssapi.txt"


def install() -> str | None:
    """Install it unless it is there; why it can't be, in a sentence. Without the system's headers nothing is tried."""
    if importlib.util.find_spec("gssapi") is not None:
        return None
    if not system_packages.is_present(system_packages.KERBEROS_HEADERS):
        return None
    print("set-up: installing the package gssapi, for the tests of logins by Kerberos", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    reason = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
    return f"the package gssapi is missing, needed for the tests of logins by Kerberos: {reason}"
