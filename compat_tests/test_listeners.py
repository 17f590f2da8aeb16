"""pykafkad's listeners and advertised addresses. Only pykafkad, as each case needs its own broker."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import unavailable
from compat_tests.scenarios.exchange import Connection, request

Serve = Callable[..., PykafkadProcess]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a broker with the test's settings; it is stopped at the end."""
    started: list[PykafkadProcess] = []

    def start(overrides: dict[str, str] | None = None, *options: str) -> PykafkadProcess:
        broker = PykafkadProcess(tmp_path, overrides, options)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.close()


def advertised_brokers(address: str) -> list[tuple[str, int]]:
    """The broker addresses that Metadata returns to a client which connected to `address`."""
    connection = Connection(address)
    connection.send("Metadata", 9, request("Metadata", 9, topics=[]))
    answer: Any = connection.receive()
    connection.close()
    return [(broker.host, broker.port) for broker in answer.brokers]


def test_the_address_that_the_caller_used(serve: Serve) -> None:
    """Without an advertised listener an answer has the host that the client used."""
    broker = serve()
    port = int(broker.bootstrap.rsplit(":", 1)[1])
    assert advertised_brokers(f"localhost:{port}")[0][1] == port
    (told,) = advertised_brokers(f"127.0.0.1:{port}")
    assert told[1] == port
    assert socket.gethostbyname(told[0]) == "127.0.0.1"


def test_advertised_listeners(serve: Serve) -> None:
    """Every client gets `advertised.listeners`, whatever address it used."""
    broker = serve({"advertised.listeners": "PLAINTEXT://kafka.example.com:19092"})
    port = broker.bootstrap.rsplit(":", 1)[1]
    for host in ("localhost", "127.0.0.1"):
        assert advertised_brokers(f"{host}:{port}") == [("kafka.example.com", 19092)]


def test_several_listeners(serve: Serve) -> None:
    """Each listener returns its own address, and all serve the same topics."""
    other = free_port()
    broker = serve(None, "--listen", f"127.0.0.1:{other}")
    first = int(broker.bootstrap.rsplit(":", 1)[1])
    assert [port for _, port in advertised_brokers(f"localhost:{first}")] == [first]
    assert [port for _, port in advertised_brokers(f"127.0.0.1:{other}")] == [other]
    producer = KafkaProducer(bootstrap_servers=f"localhost:{first}")
    producer.send("shared", b"value").get(100)
    producer.close()
    reading = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 100_000}
    consumer = KafkaConsumer("shared", bootstrap_servers=f"127.0.0.1:{other}", **reading)
    assert next(consumer).value == b"value"
    consumer.close()


def test_ipv6(serve: Serve) -> None:
    """A listener on an IPv6 address serves clients."""
    if not has_ipv6():
        unavailable("this machine has no IPv6 loopback address")
    port = free_port()
    serve(None, "--listen", f"[::1]:{port}")
    with socket.create_connection(("::1", port), timeout=30) as connection:
        connection.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\7\xff\xff")
        assert connection.recv(8)[4:] == b"\0\0\0\7"


def has_ipv6() -> bool:
    """Whether the IPv6 loopback address can be bound."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
