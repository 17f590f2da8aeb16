"""Bad input on the port is handled as a real Kafka handles it, without an effect on other clients.

Whatever arrives, the broker answers or closes the connection, and serves others meanwhile.
"""

from __future__ import annotations

import random
import socket
import ssl
import struct
from collections.abc import Callable, Iterator

import pytest

from compat_tests.brokers.broker import ANSWER_SECONDS, answers, answers_at_once
from compat_tests.samples import wait_until
from compat_tests.scenarios.exchange import Connection, part
from pykafkad.wire import messages

CLOSE_SECONDS = 30.0
SEED = 4711


@pytest.fixture
def peer(bootstrap: str) -> Iterator[Callable[[], socket.socket]]:
    """Opens raw connections that are closed at the end of the test."""
    opened: list[socket.socket] = []

    def connect() -> socket.socket:
        host, port = bootstrap.rsplit(":", 1)
        opened.append(socket.create_connection((host, int(port)), timeout=CLOSE_SECONDS))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture(autouse=True)
def others_are_served(bootstrap: str) -> Iterator[None]:
    """After the test another client must be served at once."""
    yield
    wait_until(lambda: answers_at_once(bootstrap), "another client is answered within a second", ANSWER_SECONDS)


def is_closed(connection: socket.socket) -> bool:
    """Whether the broker closes the connection without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def frame(body: bytes) -> bytes:
    """A frame with that body."""
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, correlation_id: int = 1) -> bytes:
    """A request header without client id."""
    return struct.pack(">hhih", key, version, correlation_id, -1)


@pytest.mark.parametrize("size", [-1, -2147483648, 104857601, 2147483647])
def test_impossible_size(peer: Callable[[], socket.socket], size: int) -> None:
    """A frame with a negative size, or one larger than `socket.request.max.bytes`, ends the connection."""
    connection = peer()
    connection.sendall(struct.pack(">i", size) + b"\0" * 100)
    assert is_closed(connection)


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\3", b"\0\3\0\1\0\0\0", header(3, 1)[:-1], header(3, 1)[:-2]])
def test_frame_shorter_than_a_header(peer: Callable[[], socket.socket], body: bytes) -> None:
    """A frame that cannot hold a header ends the connection."""
    connection = peer()
    connection.sendall(frame(body))
    assert is_closed(connection)


# Requests between controllers and brokers belong to another listener.
OF_CONTROLLERS = (52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82)


@pytest.mark.parametrize("key", [-1, *range(4, 8), *OF_CONTROLLERS, 93, 500, 32767])
def test_unknown_api(peer: Callable[[], socket.socket], key: int) -> None:
    """An unknown API key ends the connection."""
    connection = peer()
    connection.sendall(frame(header(key, 0)))
    assert is_closed(connection)


@pytest.mark.parametrize(
    ("key", "version"),
    [(0, 2), (0, 14), (1, 3), (1, 99), (2, 0), (3, -1), (3, 99), (8, 1), (12, 5), (24, 6), (68, 2), (76, 0), (92, 1)],
)
def test_unknown_version(peer: Callable[[], socket.socket], key: int, version: int) -> None:
    """An unknown version ends the connection, except for ApiVersions."""
    connection = peer()
    connection.sendall(frame(header(key, version) + b"\0" * 40))
    assert is_closed(connection)


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_truncated_body(peer: Callable[[], socket.socket], cut: int) -> None:
    """A body that ends before its last field ends the connection."""
    body = header(3, 1) + struct.pack(">ih", 1, 10) + b"0123456789"
    connection = peer()
    connection.sendall(frame(body[:-cut]))
    assert is_closed(connection)


@pytest.mark.parametrize("count", [1_000_000, 2147483647])
def test_lying_count(peer: Callable[[], socket.socket], count: int) -> None:
    """An array that claims more elements than the frame has bytes ends the connection, and takes no memory."""
    connection = peer()
    connection.sendall(frame(header(3, 1) + struct.pack(">i", count)))
    assert is_closed(connection)


def test_lying_compact_count(peer: Callable[[], socket.socket]) -> None:
    """The same for the variable-length count of a flexible version."""
    for count in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\xff" * 10):
        connection = peer()
        connection.sendall(frame(header(3, 9) + b"\0" + count))
        assert is_closed(connection)


def test_lying_string_length(peer: Callable[[], socket.socket]) -> None:
    """A string longer than its frame ends the connection."""
    for length in (32767, -2):
        connection = peer()
        connection.sendall(frame(header(3, 1) + struct.pack(">ih", 1, length) + b"abc"))
        assert is_closed(connection)


def test_bytes_behind_the_body(bootstrap: str) -> None:
    """Bytes after a complete body are ignored."""
    connection = Connection(bootstrap)
    connection.socket.sendall(frame(header(18, 0, 5) + b"left over"))
    connection.expect("ApiVersions", 0, 5)
    assert connection.receive().error_code == 0
    connection.close()


def test_http_request(peer: Callable[[], socket.socket]) -> None:
    """A web browser on the port: its first letters are read as a size that is too large."""
    connection = peer()
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert is_closed(connection)


def test_tls_client(peer: Callable[[], socket.socket]) -> None:
    """A TLS client on a plain port does not get a handshake."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with pytest.raises((ssl.SSLError, ConnectionError, TimeoutError)):
        context.wrap_socket(peer(), server_hostname="localhost")


def test_garbage(peer: Callable[[], socket.socket]) -> None:
    """Random bytes, and random bytes in a valid frame with a valid header, are answered or end the connection."""
    source = random.Random(SEED)
    for _ in range(30):
        connection = peer()
        connection.sendall(source.randbytes(source.randrange(1, 300)))
        read_until_closed(connection)
    for _ in range(100):
        connection = peer()
        key, version = source.choice((0, 1, 2, 3, 8, 9, 10, 11, 14, 18, 19, 20, 32, 44)), source.randrange(0, 10)
        # Random bodies of these APIs could create or delete something.
        connection.sendall(frame(header(key, version) + source.randbytes(source.randrange(0, 60))))
        read_until_closed(connection)


def read_until_closed(connection: socket.socket) -> None:
    """Close the sending side and read until the broker closes the connection; AssertionError if it stays open."""
    try:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    except TimeoutError:
        pytest.fail(f"the connection is still open after {CLOSE_SECONDS} s")
    except OSError:
        # The broker has closed the connection with unread bytes, which resets it.
        pass


def test_byte_by_byte(bootstrap: str) -> None:
    """A slow peer whose frame arrives byte by byte is served, and delays no other client."""
    slow = Connection(bootstrap)
    for byte in frame(header(18, 0, 9)):
        slow.socket.sendall(bytes((byte,)))
        assert answers(bootstrap)
    slow.expect("ApiVersions", 0, 9)
    assert slow.receive().error_code == 0
    slow.close()


def test_peers_that_disconnect_within_a_frame(peer: Callable[[], socket.socket], bootstrap: str) -> None:
    """Peers that announce a frame and disconnect in the middle of it."""
    for size in (100, 1_000_000, 100_000_000):
        connection = peer()
        connection.sendall(struct.pack(">i", size) + b"x" * 50)
        connection.close()
    assert answers(bootstrap)


@pytest.mark.parametrize("count", [1, 20_000])
def test_a_half_closed_connection_gets_its_answers(bootstrap: str, count: int) -> None:
    """The client closes its sending side after two requests: both answers arrive whole, and then the broker closes."""
    connection = Connection(bootstrap)
    topics = [part("Metadata", "MetadataRequestTopic", name=f"nobody-knows-{number}") for number in range(count)]
    for _ in range(2):
        connection.send("Metadata", 12, messages.MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    connection.socket.shutdown(socket.SHUT_WR)
    assert [len(connection.receive().topics) for _ in range(2)] == [count, count]
    assert is_closed(connection.socket)
    connection.close()
