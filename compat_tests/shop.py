"""A broker with TLS, a user and an issuer of tokens, and what `pykafkad client-config` prints for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LIMIT_SECONDS = 120
PASSWORD = 'secret "\\'
TOKENS = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", TOKENS)
PROJECT = Path(__file__).parents[1]


class Shop:
    """A broker with TLS and a user."""

    def __init__(self, directory: Path, ready_line: str) -> None:
        self.directory = directory
        words = ready_line.split()
        self.address = words[-1]
        name = "sasl.oauthbearer.token.endpoint.url="
        (self.token_url,) = (word.removeprefix(name) for word in words if word.startswith(name))

    def lines(self, client: str, mechanism: str) -> str:
        """What is printed for a client."""
        words = ["-b", self.address, "--tls", str(self.directory / "shop/tls-ca.pem"), "--mechanism", mechanism]
        if mechanism == TOKENS:
            words += ["--token-url", self.token_url]
        return subprocess.run(
            [sys.executable, "-m", "pykafkad", "client-config", "--for", client, *words,
             "--user", "alice", "--password", PASSWORD],
            capture_output=True, text=True, check=True, env=_environment(), timeout=LIMIT_SECONDS,
        ).stdout  # fmt: skip

    def file(self, client: str, mechanism: str) -> Path:
        """The lines in a file."""
        path = self.directory / f"{client}-{mechanism}"
        path.write_text(self.lines(client, mechanism))
        return path


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


@contextlib.contextmanager
def open_shop(directory: Path) -> Iterator[Shop]:
    """The broker, with its data in a folder."""
    words = ["--data", str(directory / "shop"), "--listen", "localhost:0", "--tls", "--topic", "orders"]
    broker = subprocess.Popen(
        [sys.executable, "-m", "pykafkad", "serve", *words, "--user", f"alice:{PASSWORD}",
         "--oauth", f"alice:{PASSWORD}"],
        env=_environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert broker.stdout is not None
        yield Shop(directory, broker.stdout.readline())
    finally:
        broker.terminate()
        broker.communicate(timeout=LIMIT_SECONDS)
