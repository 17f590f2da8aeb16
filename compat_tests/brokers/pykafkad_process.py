"""pykafkad as its own process, started as a user starts it: by its command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from compat_tests.brokers.broker import BrokerFailed, ProcessBroker, free_port, wait_until_ready
from compat_tests.brokers.settings import NODE_ID, SHARED_SETTINGS, as_properties

# A start takes about 50 ms; a recovery on a busy machine may take many seconds.
START_SECONDS = 60.0
REPOSITORY = Path(__file__).resolve().parents[2]


class PykafkadProcess(ProcessBroker):
    """pykafkad with its data under `directory`; `overrides` are settings beyond the shared ones, `options` more
    arguments. If `listeners` are among them, the plain one must be at `port`.
    """

    name = "pykafkad"
    how = "pykafkad as a process"
    answers_strangers = True
    """Whether who does not log in gets an answer where the process is reached."""

    def __init__(
        self,
        directory: Path,
        overrides: dict[str, str] | None = None,
        options: Sequence[str] = (),
        port: int | None = None,
    ) -> None:
        super().__init__(directory)
        self.options = options
        self.data_directory = directory / "data"
        self.properties_path = directory / "server.properties"
        settings = {"node.id": str(NODE_ID), **SHARED_SETTINGS, **(overrides or {})}
        self._names_directories = "log.dirs" in settings or "--memory" in options
        self._names_listeners = "listeners" in settings
        # --listen leaves out those of the file, which belong to the file's listeners.
        self._advertised = None if self._names_listeners else settings.pop("advertised.listeners", None)
        self.properties_path.write_text(as_properties(settings, str(self.data_directory)))
        self.ready_path = directory / "ready"
        self.bootstrap = f"localhost:{port or free_port()}"

    def start(self) -> None:
        self.ready_path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pykafkad", "serve", str(self.properties_path)]
        command += ["--ready-file", str(self.ready_path)]
        if not self._names_listeners:
            command += ["--listen", self.bootstrap]
        if self._advertised is not None:
            command += ["--set", f"advertised.listeners={self._advertised}"]
        if not self._names_directories:
            command += ["--data", str(self.data_directory)]
        command += self.options
        self._spawn(command, {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"})
        deadline = time.monotonic() + START_SECONDS
        while not self.ready_path.exists() or not self.ready_path.read_text().strip():
            if not self.is_alive() or time.monotonic() > deadline:
                raise BrokerFailed(f"pykafkad wrote no readiness line:\n{self.log_tail()}")
            time.sleep(0.01)
        if self.bootstrap not in self.ready_path.read_text():
            raise BrokerFailed(f"the readiness line does not name {self.bootstrap}: {self.ready_path.read_text()!r}")
        if self.answers_strangers:
            wait_until_ready(self, self.is_alive, START_SECONDS)
