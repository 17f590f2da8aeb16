"""Tests of the proxy: what is cut off arrives late or never, and nobody else notices."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from compat_tests.brokers.broker import free_port
from compat_tests.exactly_once.proxy import ANSWERS, HEADER, REQUESTS, Proxy
from compat_tests.samples import wait_until

SHORT_SECONDS, LONG_SECONDS = 0.2, 20.0


class Echo(threading.Thread):
    """Answers each connection with the bytes that it gets, and counts them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("localhost", 0))
        self.address = f"localhost:{self.listener.getsockname()[1]}"
        self.received = 0

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """End also the call that waits for the next connection."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.join(LONG_SECONDS)

    def answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(100):
                    self.received += len(data)
                    connection.sendall(data)
            except OSError:
                pass


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    made.start()
    yield made
    made.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    made = Proxy(free_port(), echo.address)
    yield made
    made.close()


class Peer:
    """A client of that id; `says` sends a frame, and `hears` whether as many bytes came back."""

    def __init__(self, proxy: Proxy, client: str) -> None:
        self.frame = HEADER.pack(0, 18, 0, 7, len(client)) + client.encode()
        host, port = proxy.address.split(":")
        self.connection = socket.create_connection((host, int(port)))

    def says(self) -> Peer:
        self.connection.sendall(self.frame)
        return self

    def hears(self, seconds: float = LONG_SECONDS) -> bool:
        self.connection.settimeout(seconds)
        try:
            return bool(self.connection.recv(len(self.frame), socket.MSG_WAITALL))
        except TimeoutError:
            return False


def test_what_is_held_arrives_late(proxy: Proxy, echo: Echo) -> None:
    """A held request does not reach the broker, one whose answer is held does; another client goes on."""
    one, other = Peer(proxy, "one"), Peer(proxy, "other")
    assert one.says().hears() and other.says().hears()
    for way, reaches in ((REQUESTS, False), (ANSWERS, True)):
        proxy.cut("one", (way,))
        before = echo.received
        assert not one.says().hears(SHORT_SECONDS)
        if reaches:
            wait_until(lambda before=before: echo.received > before, "the broker has the request")
        assert reaches or echo.received == before
        assert other.says().hears()
        assert not Peer(proxy, "one").says().hears(SHORT_SECONDS)
        proxy.heal("one", reset=False)
        assert one.hears()
    for peer in (one, other):
        peer.connection.close()


def test_a_reset_loses_what_is_held(proxy: Proxy) -> None:
    """The client sees an error, and connects again."""
    peer = Peer(proxy, "one")
    assert peer.says().hears()
    proxy.cut("one", (ANSWERS,))
    assert not peer.says().hears(SHORT_SECONDS)
    proxy.heal("one", reset=True)
    with pytest.raises(ConnectionResetError):
        peer.hears()
    assert Peer(proxy, "one").says().hears()


def test_a_broker_that_is_away_closes_connections(proxy: Proxy, echo: Echo) -> None:
    """As without the proxy."""
    echo.close()
    try:
        heard = Peer(proxy, "one").says().hears()
    except ConnectionResetError:
        heard = False
    assert not heard
