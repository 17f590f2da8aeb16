"""Peers that try to take pykafkad's memory or time.

Only pykafkad: a real Kafka reserves the memory that a frame announces, so a few such peers end a small one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.brokers.broker import ANSWER_SECONDS, API_VERSIONS_FRAME, ProcessBroker, answers_at_once, free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.samples import wait_until
from compat_tests.scenarios.exchange import Exchange, part, request
from compat_tests.scenarios.produce import batch
from pykafkad.cli import certificates


@pytest.fixture
def peer(pykafkad: PykafkadProcess) -> Iterator[Callable[[], socket.socket]]:
    """Opens raw connections that are closed at the end of the test."""
    opened: list[socket.socket] = []

    def connect() -> socket.socket:
        host, port = pykafkad.bootstrap.rsplit(":", 1)
        opened.append(socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture(autouse=True)
def others_are_served(pykafkad: PykafkadProcess) -> Iterator[None]:
    """During and after the test another client must be served at once."""
    yield
    assert_prompt(pykafkad)


def assert_prompt(broker: PykafkadProcess) -> None:
    """A new client is answered within a second. If the whole machine stalls, one of the next clients must be."""
    wait_until(lambda: answers_at_once(broker.bootstrap), "a new client is answered within a second", ANSWER_SECONDS)


def resident_megabytes(broker: ProcessBroker) -> float:
    """Resident memory of a broker."""
    with open(f"/proc/{broker.pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_announced_frames_take_no_memory(peer: Callable[[], socket.socket], pykafkad: PykafkadProcess) -> None:
    """Fifty peers that each announce 100 MB and send little of it do not take 5 GB."""
    before = resident_megabytes(pykafkad)
    for _ in range(50):
        peer().sendall(struct.pack(">i", 100_000_000) + b"x" * 1000)
    time.sleep(0.3)
    assert_prompt(pykafkad)
    assert resident_megabytes(pykafkad) - before < 100


def test_peers_that_never_read(pykafkad: PykafkadProcess) -> None:
    """Peers that send requests and never read are stopped by their own full sockets; memory stays bounded."""
    exchange = Exchange(pykafkad.bootstrap, "never-reads")
    topic = exchange.topic(retention_ms="-1")
    for _ in range(10):
        exchange.produce(topic, 0, batch([(None, os.urandom(900_000))]))
    before = resident_megabytes(pykafkad)
    rows = [part("Fetch", "FetchPartition", partition=0, fetch_offset=0, partition_max_bytes=10_000_000)]
    topics = [part("Fetch", "FetchTopic", topic=topic, partitions=rows)]
    fields = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 10_000_000, "topics": topics}
    for connection in [exchange.connect() for _ in range(5)]:
        for _ in range(100):
            connection.send("Fetch", 11, request("Fetch", 11, **fields))
    time.sleep(0.5)
    assert_prompt(pykafkad)
    assert resident_megabytes(pykafkad) - before < 60
    exchange.close()


def test_many_connections(peer: Callable[[], socket.socket], pykafkad: PykafkadProcess) -> None:
    """Hundreds of idle connections, and as many with half a header, delay no other client."""
    for number in range(400):
        connection = peer()
        if number % 2:
            connection.sendall(API_VERSIONS_FRAME[:7])
    assert_prompt(pykafkad)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (struct.pack(">i", -1), "size"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00" + b"x" * 20, "TLS"),
        (struct.pack(">ihhih", 10, 99, 0, 1, -1), "99"),
        (struct.pack(">ihhih", 10, 3, 99, 1, -1), "99"),
        (struct.pack(">ihhihi", 14, 3, 1, 1, -1, 1000), "topics"),
    ],
    ids=["negative size", "HTTP", "TLS", "unknown API", "unknown version", "lying count"],
)
def test_the_log_names_peer_and_reason(
    peer: Callable[[], socket.socket], pykafkad: PykafkadProcess, sent: bytes, said: str
) -> None:
    """The log names every disconnected peer by its address, with the reason, in one line."""
    # A peer of an earlier test may have had the same port.
    earlier = len(pykafkad.log_text())
    connection = peer()
    host, port = connection.getsockname()[:2]
    connection.sendall(sent)
    assert connection.recv(1) == b""
    named = lambda: [line for line in pykafkad.log_text()[earlier:].splitlines() if f"{host}:{port}" in line]  # noqa: E731
    wait_until(named, "the log names the peer")
    (line,) = named()
    assert said in line


def test_a_flood_of_bad_peers_does_not_flood_the_log(
    peer: Callable[[], socket.socket], pykafkad: PykafkadProcess
) -> None:
    """Hundreds of bad peers cost at most one log line each, and no lasting memory."""
    before, lines = resident_megabytes(pykafkad), len(pykafkad.log_text().splitlines())
    for _ in range(500):
        connection = peer()
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        connection.close()
    assert_prompt(pykafkad)
    logged = ["HTTP" in line for line in pykafkad.log_text().splitlines()[lines:]]
    # A few lines may have another cause.
    assert sum(logged) <= 500 and len(logged) <= 510
    assert resident_megabytes(pykafkad) - before < 10


def test_a_thousand_handshakes_without_an_end_hold_little(tmp_path: Path) -> None:
    """A thousand strangers at a listener with TLS greet and say no more: 20 MB at most, and others are served."""
    certificates.provide(str(tmp_path), [])
    plain, port = free_port(), free_port()
    listeners = f"PLAINTEXT://localhost:{plain},GUARDED://localhost:{port}"
    broker = PykafkadProcess(
        tmp_path,
        {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GUARDED:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / certificates.BROKER_FILE),
        },
        port=plain,
    )
    trusting = ssl.create_default_context(cafile=str(tmp_path / certificates.CA_FILE))
    strangers: list[socket.socket] = []

    def greet() -> None:
        outgoing = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            trusting.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
        strangers.append(socket.create_connection(("localhost", port), timeout=ANSWER_SECONDS))
        strangers[-1].sendall(outgoing.read())

    def shake_hands() -> None:
        with socket.create_connection(("localhost", port), timeout=ANSWER_SECONDS) as connected:
            with trusting.wrap_socket(connected, server_hostname="localhost") as secured:
                assert secured.version() == "TLSv1.3"

    try:
        broker.start()
        shake_hands()
        before = resident_megabytes(broker)
        for _ in range(1000):
            greet()
        shake_hands()
        # Each stranger was answered, or its place is another's.
        for stranger in strangers:
            with contextlib.suppress(ConnectionError):
                stranger.recv(1)
        grown = resident_megabytes(broker) - before
        assert grown < 20
        assert answers_at_once(broker.bootstrap)
    finally:
        for stranger in strangers:
            stranger.close()
        broker.close()
