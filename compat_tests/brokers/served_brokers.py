"""Three brokers as a user starts them: `pykafkad serve --brokers 3`, in one process or in many."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from compat_tests.brokers.pykafkad_process import REPOSITORY

STOP_SECONDS = 90.0


class ServedBrokers:
    """`options` are more arguments; `topic` is one that is created, as NAME:PARTITIONS; `settings` are NAME=VALUE. The
    data is under `directory`, and `bootstrap` has the addresses when `start` returns."""

    def __init__(self, directory: Path, *options: str, topic: str, settings: Sequence[str]) -> None:
        self.data = directory / "data"
        self._log = directory / "log"
        self._arguments = [*options, "--listen", "localhost:0", "--data", str(self.data), "--topic", topic]
        for each in settings:
            self._arguments += ["--set", each]
        self.bootstrap = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """With the data of before."""
        words = [sys.executable, "-m", "pykafkad", "serve", "--brokers", "3", *self._arguments]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with self._log.open("w") as errors:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("pykafkad ready on "), self.log()
        self.bootstrap = line.split()[-1]

    def log(self) -> str:
        """What all of them wrote to standard error."""
        return self._log.read_text()

    def stop(self) -> int:
        """A clean stop; the exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(STOP_SECONDS)

    def close(self) -> None:
        """End what is left of them; nothing that they logged may be a bug."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()
        assert "unexpected-error" not in self.log()
