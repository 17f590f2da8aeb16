"""Processes of transactional clients, and what may happen to them: kills, pauses, cut connections, and rivals."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from compat_tests.exactly_once import franz_clients
from compat_tests.exactly_once.proxy import WAYS, Proxy

REPOSITORY = Path(__file__).parents[2]
CLIENTS = "compat_tests.exactly_once.clients"
WRITERS, COPIERS = ("writer-1", "writer-2", "python-1", "franz-1"), ("copier-1", "copier-2")
READERS = ("reader-1", "reader-2", "franzreader-1")
NAMES = (*WRITERS, *COPIERS, *READERS)
# Who else may write under a writer's transactional id.
RIVALS = {"writer-1": "writer-9"}
# A copier that is away for longer than its session time-out loses its partitions.
LONGEST_MOMENTS = 10


class Clients:
    """The processes of all clients; who ended, or was killed, is started again."""

    def __init__(self, bootstrap: str, directory: Path, prefix: str = "", franz: Path | None = None) -> None:
        self.franz = franz
        """The program of the clients with franz-go; without it they are not there."""
        self.bootstrap, self.directory, self.prefix = bootstrap, directory, prefix
        self.environment = {**os.environ, "CLIENTS_PREFIX": prefix}
        self.processes: dict[str, subprocess.Popen] = {}
        self.ends = 0

    def there(self, names: Sequence[str] = NAMES) -> list[str]:
        """Those of the names whose program is there."""
        return [name for name in names if self.franz is not None or name.partition("-")[0] not in franz_clients.KINDS]

    def start(self, name: str, transactional_id: str | None = None, module: str = CLIENTS) -> None:
        """Start a client of a module, with the transactional id of its own or of another client's name."""
        kind, transactional_id = name.partition("-")[0], f"{self.prefix}{transactional_id or name}"
        program = [str(self.franz)] if kind in franz_clients.KINDS else [sys.executable, "-m", module]
        command = [*program, kind, name, transactional_id]
        with open(self.directory / f"{name}.errors", "ab") as errors:
            self.processes[name] = subprocess.Popen(
                [*command, self.bootstrap, str(self.directory)], stderr=errors, cwd=REPOSITORY, env=self.environment
            )

    def start_again(self) -> None:
        """Start every client that has ended, but no rival: it would fence, and be fenced, for ever."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self.ends += process.returncode > 0
                if name in RIVALS.values():
                    del self.processes[name]
                else:
                    self.start(name)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal, if the process has not ended."""
        self.processes[name].send_signal(number)

    def stop(self, *names: str) -> None:
        """Let the clients end what they are doing; they are not started again."""
        running = [name for name in names if name in self.processes]
        for name in running:
            self.signal(name, signal.SIGTERM)
        for name in running:
            process = self.processes.pop(name)
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                # It writes where it hangs.
                process.send_signal(signal.SIGABRT)
                process.wait()
                raise

    def close(self) -> None:
        for name in self.processes:
            self.kill(name)


class Troubles:
    """Begins one trouble at each moment, for a client that has none, and ends each after some moments."""

    def __init__(self, clients: Clients, proxy: Proxy, chance: random.Random) -> None:
        self.clients, self.proxy, self.chance = clients, proxy, chance
        self.counts: Counter[str] = Counter()
        # By client: how many moments are left, and what ends the trouble.
        self._pending: dict[str, tuple[int, Callable[[], None]]] = {}

    def moment(self) -> None:
        """One moment: end what is over, start again who has ended, and begin something new."""
        for name, (left, end) in list(self._pending.items()):
            if left > 1:
                self._pending[name] = (left - 1, end)
            else:
                del self._pending[name]
                end()
        self.clients.start_again()
        kind = self.chance.choice((self._kill, self._pause, self._cut, self._rival))
        free = [name for name in (RIVALS if kind == self._rival else self.clients.there()) if name not in self._pending]
        if free:
            self.counts[kind.__name__.strip("_")] += 1
            kind(self.chance.choice(free))

    def end(self) -> None:
        """End everything that is under way."""
        for _, end in self._pending.values():
            end()
        self._pending.clear()
        self.clients.start_again()

    def _lasts(self, name: str, end: Callable[[], None]) -> None:
        self._pending[name] = (self.chance.randint(1, LONGEST_MOMENTS), end)

    def _kill(self, name: str) -> None:
        self.clients.kill(name)
        self.clients.start_again()

    def _pause(self, name: str) -> None:
        self.clients.signal(name, signal.SIGSTOP)
        self._lasts(name, lambda: self.clients.signal(name, signal.SIGCONT))

    def _cut(self, name: str) -> None:
        self.proxy.cut(name, self.chance.choice(WAYS))
        is_reset = self.chance.random() < 0.5
        self._lasts(name, lambda: self.proxy.heal(name, is_reset))

    def _rival(self, name: str) -> None:
        """A second process takes the transactional id; the first is paused meanwhile, or knows nothing of it."""
        rival = RIVALS[name]
        if rival not in self.clients.processes:
            self.clients.start(rival, name)
        if self.chance.random() < 0.5:
            self._pause(name)
