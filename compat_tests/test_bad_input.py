"""Bad input on the port: what a real Kafka does with it, and that it has no effect on anyone else.

Whatever arrives, the connection is answered or closed, and the broker goes on serving others.
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
    """Opens raw connections, closed at the end of the test."""
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
    """Whatever the test sent, another client is served afterwards at once."""
    yield
    wait_until(lambda: answers_at_once(bootstrap), "another client is answered within a second", ANSWER_SECONDS)


def is_closed(connection: socket.socket) -> bool:
    """Whether the broker closes the connection without a word."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def frame(body: bytes) -> bytes:
    """A frame of that body."""
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, correlation_id: int = 1) -> bytes:
    """A request header without client id."""
    return struct.pack(">hhih", key, version, correlation_id, -1)


@pytest.mark.parametrize("size", [-1, -2147483648, 104857601, 2147483647])
def test_impossible_size(peer: Callable[[], socket.socket], size: int) -> None:
    """A frame that says it is negative, or larger than `socket.request.max.bytes`, ends the connection."""
    connection = peer()
    connection.sendall(struct.pack(">i", size) + b"\0" * 100)
    assert is_closed(connection)


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\3", b"\0\3\0\1\0\0\0", header(3, 1)[:-1], header(3, 1)[:-2]])
def test_frame_shorter_than_a_header(peer: Callable[[], socket.socket], body: bytes) -> None:
    """A frame that cannot hold a header ends the connection."""
    connection = peer()
    connection.sendall(frame(body))
    assert is_closed(connection)


# What controllers and brokers say to each other, on another listener.
OF_CONTROLLERS = (52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82)


@pytest.mark.parametrize("key", [-1, *range(4, 8), *OF_CONTROLLERS, 93, 500, 32767])
def test_unknown_api(peer: Callable[[], socket.socket], key: int) -> None:
    """A key that is not served here ends the connection."""
    connection = peer()
    connection.sendall(frame(header(key, 0)))
    assert is_closed(connection)


@pytest.mark.parametrize(
    ("key", "version"),
    [(0, 2), (0, 14), (1, 3), (1, 99), (2, 0), (3, -1), (3, 99), (8, 1), (12, 5), (24, 6), (68, 2), (76, 0), (92, 1)],
)
def test_unknown_version(peer: Callable[[], socket.socket], key: int, version: int) -> None:
    """A version that is not served ends the connection, except for ApiVersions itself."""
    connection = peer()
    connection.sendall(frame(header(key, version) + b"\0" * 40))
    assert is_closed(connection)


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_truncated_body(peer: Callable[[], socket.socket], cut: int) -> None:
    """A body that ends before its fields do ends the connection."""
    body = header(3, 1) + struct.pack(">ih", 1, 10) + b"0123456789"
    connection = peer()
    connection.sendall(frame(body[:-cut]))
    assert is_closed(connection)


@pytest.mark.parametrize("count", [1_000_000, 2147483647])
def test_lying_count(peer: Callable[[], socket.socket], count: int) -> None:
    """An array that says it has more elements than there are bytes ends the connection, and takes no memory."""
    connection = peer()
    connection.sendall(frame(header(3, 1) + struct.pack(">i", count)))
    assert is_closed(connection)


def test_lying_compact_count(peer: Callable[[], socket.socket]) -> None:
    """The same for the variable length of a flexible version."""
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
    """Bytes behind a whole body are ignored."""
    connection = Connection(bootstrap)
    connection.socket.sendall(frame(header(18, 0, 5) + b"left over"))
    connection.expect("ApiVersions", 0, 5)
    assert connection.receive().error_code == 0
    connection.close()


def test_http_request(peer: Callable[[], socket.socket]) -> None:
    """A web browser on the port: its letters are a size that is too large."""
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
    """Random bytes, and random bytes in a right frame with a right header: answered or closed, never served wrongly."""
    source = random.Random(SEED)
    for _ in range(30):
        connection = peer()
        connection.sendall(source.randbytes(source.randrange(1, 300)))
        drained(connection)
    for _ in range(100):
        connection = peer()
        key, version = source.choice((0, 1, 2, 3, 8, 9, 10, 11, 14, 18, 19, 20, 32, 44)), source.randrange(0, 10)
        # A broker must not take what a random body says as an order to create or delete.
        connection.sendall(frame(header(key, version) + source.randbytes(source.randrange(0, 60))))
        drained(connection)


def drained(connection: socket.socket) -> None:
    """Read until the broker closes; told that nothing more comes, it does, and soon."""
    try:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    except TimeoutError:
        pytest.fail(f"the connection is still open after {CLOSE_SECONDS} s")
    except OSError:
        # The broker closed with bytes unread, which is a reset.
        pass


def test_byte_by_byte(bootstrap: str) -> None:
    """A slow peer whose frame comes byte by byte is served like any other, and holds nobody up."""
    slow = Connection(bootstrap)
    for byte in frame(header(18, 0, 9)):
        slow.socket.sendall(bytes((byte,)))
        assert answers(bootstrap)
    slow.expect("ApiVersions", 0, 9)
    assert slow.receive().error_code == 0
    slow.close()


def test_half_a_frame_and_gone(peer: Callable[[], socket.socket], bootstrap: str) -> None:
    """Peers that announce a frame and leave in the middle of it."""
    for size in (100, 1_000_000, 100_000_000):
        connection = peer()
        connection.sendall(struct.pack(">i", size) + b"x" * 50)
        connection.close()
    assert answers(bootstrap)


@pytest.mark.parametrize("count", [1, 20_000])
def test_a_peer_that_says_nothing_more_is_answered(bootstrap: str, count: int) -> None:
    """Its end of the connection is closed behind two requests; both answers come whole, and then the broker's end."""
    connection = Connection(bootstrap)
    topics = [part("Metadata", "MetadataRequestTopic", name=f"nobody-knows-{number}") for number in range(count)]
    for _ in range(2):
        connection.send("Metadata", 12, messages.MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    connection.socket.shutdown(socket.SHUT_WR)
    assert [len(connection.receive().topics) for _ in range(2)] == [count, count]
    assert is_closed(connection.socket)
    connection.close()
