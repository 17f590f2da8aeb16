"""The five minutes of docs/security.md: their broker, with what the administrator does, and their blocks."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from compat_tests.brokers.broker import free_port

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
LIMIT_SECONDS = 120


def blocks(language: str) -> list[str]:
    """Those of the section of the five minutes alone: the others show parts."""
    section = PAGE.read_text().split("\n## ")[1]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def block(language: str, word: str) -> str:
    """The only one with a word in it."""
    (found,) = [each for each in blocks(language) if word in each]
    return found


class PageBroker:
    """The broker of the page, at another port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        """Where its commands are run."""
        self.address = f"localhost:{free_port()}"

    def placed(self, text: str) -> str:
        """A block with the address of this broker in place of the page's; nothing else changes."""
        return text.replace("localhost:9092", self.address)


@contextlib.contextmanager
def page_broker(directory: Path) -> Iterator[PageBroker]:
    """It serves when the page's commands have been run."""
    made = PageBroker(directory)
    program = directory / "pykafkad"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pykafkad "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{directory}:{os.environ['PATH']}",
        "PYTHONPATH": str(PAGE.parents[1]),
        "PYKAFKAD_BOOTSTRAP": made.address,
    }
    serve, commands = blocks("sh")
    serve = serve[serve.index("pykafkad serve") :].rstrip()
    serve = serve.replace("pykafkad serve", f"exec pykafkad serve --listen {made.address}")
    broker = subprocess.Popen(["sh", "-c", serve], cwd=directory, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert broker.stdout is not None and "shop/tls-ca.pem" in broker.stdout.readline()
        done = subprocess.run(["sh", "-e", "-c", commands], cwd=directory, env=environment, timeout=LIMIT_SECONDS,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        broker.send_signal(signal.SIGTERM)
        broker.communicate(timeout=LIMIT_SECONDS)
