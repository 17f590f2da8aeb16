"""The interface of a broker under test, and the parts that all kinds share."""

from __future__ import annotations

import abc
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

# Many times longer than each step takes, because the machine may be busy.
READY_SECONDS = 180.0
STOP_SECONDS = 90.0
ANSWER_SECONDS = 30.0
PORTS = range(20_000, 32_000)
# Processes that test side by side have ports of their own: one might be given to both before either has bound it.
PROCESSES = 10
# Ports already given out: their receiver may not have bound them yet, or may be restarting.
given_ports: set[int] = set()
# ApiVersions v0, correlation id 7, no client id: every broker answers this before anything else.
API_VERSIONS_FRAME = struct.pack(">ihhih", 10, 18, 0, 7, -1)


class BrokerFailed(Exception):
    """The broker did not start or did not stop; the message carries the end of its log."""


class Broker(abc.ABC):
    """One running broker: `bootstrap` is its `host:port`; `stop`, `kill` and `start` keep its data."""

    name: str
    how: str
    bootstrap: str

    @abc.abstractmethod
    def start(self) -> None:
        """Start it and return when it answers; the address is the same at every start."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop it cleanly (SIGTERM) and return when it has gone; nothing happens if it is not running."""

    @abc.abstractmethod
    def kill(self) -> None:
        """SIGKILL it and return when it has gone."""

    @abc.abstractmethod
    def log_text(self) -> str:
        """Everything it printed so far."""

    def restart(self) -> None:
        """Stop it cleanly and start it on the same data and address."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it and drop its data."""
        self.stop()

    def renew(self) -> None:
        """Start it anew, without data, on the same address."""
        self.close()
        self.start()


class ProcessBroker(Broker):
    """A broker that is a child process, stopped by its own pid."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log_path = directory / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None

    def _spawn(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={**os.environ, **(environment or {})},
                # A Ctrl-C at the tests' terminal must not reach the broker before the tests stop it.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        if self.process is None:
            raise BrokerFailed(f"{self.name} is not running")
        return self.process.pid

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"{self.name} did not stop in {STOP_SECONDS} s\n{self.log_tail()}") from None
        self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self) -> str:
        """The last lines that it printed, for error messages."""
        return self.log_text()[-4000:]

    def is_alive(self) -> bool:
        """Whether the process is still there."""
        return self.process is not None and self.process.poll() is None


def ports_of(worker: str) -> range:
    """The ports that a process of pytest-xdist (`gw0`, `gw1`, …) gives out."""
    return PORTS[int(worker.removeprefix("gw")) % PROCESSES :: PROCESSES]


def free_port() -> int:
    """A port that nothing listens on now; each call gives another one.

    It is below the range of ephemeral ports: a stopped broker must find its port free again, and a client that retries
    a closed port must not connect to itself. It is never a round number, because a round number may also be a setting's
    value.
    """
    chance = random.Random()
    own = ports_of(os.environ.get("PYTEST_XDIST_WORKER", "gw0"))
    while True:
        port = chance.choice(own)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("localhost", port))
            if port not in given_ports and port % 100:
                given_ports.add(port)
                return port


def wait_until_ready(broker: Broker, is_alive: object = None, timeout_seconds: float = READY_SECONDS) -> None:
    """Return when `broker` answers an ApiVersions request; BrokerFailed when it dies or takes too long."""
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if answers(broker.bootstrap):
            return
        if callable(is_alive) and not is_alive():
            break
        time.sleep(0.05)
    raise BrokerFailed(
        f"{broker.name} ({broker.how}) does not answer on {broker.bootstrap}\n{broker.log_text()[-4000:]}"
    )


def answers(bootstrap: str) -> bool:
    """Whether the broker at `bootstrap` answers ApiVersions."""
    host, port = bootstrap.rsplit(":", 1)
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS) as connection,
    ):
        connection.sendall(API_VERSIONS_FRAME)
        with connection.makefile("rb") as answer:
            return answer.read(8)[4:] == b"\0\0\0\7"
    return False


def answers_at_once(broker: str) -> bool:
    """Whether the broker at that `host:port` answers a new client within a second."""
    begun = time.monotonic()
    return answers(broker) and time.monotonic() - begun < 1
