"""Connections beyond a limit: who waits, and who makes room for the listener between brokers, as in a real Kafka.

Both brokers have two listeners: PLAINTEXT, which is the one between brokers, and CLIENTS, which takes two connections.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged

PATIENCE_SECONDS = 60.0
# ApiVersions 0, whose answer begins with its size and the correlation id.
VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)


class Client:
    """A connection that asks for versions."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("localhost", port), PATIENCE_SECONDS)
        self.socket.sendall(VERSIONS)

    def answer(self) -> bool:
        """Wait for the answer to what was asked; False if the broker ends the connection instead."""
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            try:
                more = self.socket.recv(65536)
            except ConnectionError:
                return False
            if not more:
                return False
            data += more
        return True

    def has_answer(self) -> bool:
        """Whether bytes are there now."""
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(PATIENCE_SECONDS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the test once for each broker, the real Kafka first."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", AGAINST[metafunc.config.getoption("--against")])


@pytest.fixture
def ports(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Of PLAINTEXT and of CLIENTS, at a broker with limits."""
    port, of_clients, controller_port = free_port(), free_port(), free_port()
    listeners = f"PLAINTEXT://localhost:{port},CLIENTS://localhost:{of_clients}"
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "max.connections": "3",
        "listener.name.clients.max.connections": "2",
        # Kafka looks for the one that was idle for longest among those of a thread.
        "num.network.threads": "1",
    }
    broker: ProcessBroker
    if name == "kafka":
        settings["listeners"] += f",CONTROLLER://localhost:{controller_port}"
        settings["controller.quorum.bootstrap.servers"] = f"localhost:{controller_port}"
        broker = KafkaProcess(request.getfixturevalue("kafka_jars"), tmp_path, settings, port)
    else:
        broker = PykafkadProcess(tmp_path, settings, port=port)
    try:
        broker.start()
        yield port, of_clients
    finally:
        broker.close()
    if isinstance(broker, PykafkadProcess):
        assert_no_bug_logged(broker)


def test_a_listener_that_is_full_lets_others_wait(ports: tuple[int, int]) -> None:
    """Until one ends. Beyond the limit in all, who comes between brokers ends the client that was idle for longest."""
    port, of_clients = ports
    first = Client(of_clients)
    assert first.answer()
    second = Client(of_clients)
    assert second.answer()
    third = Client(of_clients)
    for _ in range(50):
        first.socket.sendall(VERSIONS)
        assert first.answer()
    assert not third.has_answer()
    second.socket.sendall(VERSIONS)
    assert second.answer()
    first.socket.close()
    assert third.answer()
    brokers = [Client(port) for _ in range(2)]
    assert all(each.answer() for each in brokers)
    assert not second.answer(), "it is ended"
    for each in (second, third, *brokers):
        each.socket.close()
