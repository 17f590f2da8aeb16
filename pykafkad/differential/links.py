"""Connections that carry whole frames."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NamedTuple

TIMEOUT_SECONDS = 120.0
"""No answer takes longer."""
MOST_FRAME_BYTES = 100 * 1024 * 1024


class Secured(NamedTuple):
    """A broker's address where a connection has to be made ready: `secure` encrypts it and logs in. It raises
    OSError."""

    host: str
    port: int
    secure: Callable[[socket.socket], socket.socket]


def address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, whose host may stand in brackets. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"{text!r} is no HOST:PORT, such as localhost:9092")
    return host, int(port)


class Link:
    """One connection. Used by one thread at a time."""

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(TIMEOUT_SECONDS)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected

    def send(self, frame: bytes) -> None:
        """Send a frame, which is given without its size. A connection that was closed shows when it is read."""
        try:
            self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        except OSError:
            pass

    def receive(self) -> bytes | None:
        """The next frame without its size; None if the connection is closed or silent for too long."""
        try:
            head = self._read(4)
            size = int.from_bytes(head, "big", signed=True)
            if len(head) < 4 or not 0 <= size <= MOST_FRAME_BYTES:
                return None
            frame = self._read(size)
        except OSError:
            return None
        return frame if len(frame) == size else None

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                break
            parts += part
        return bytes(parts)

    def own_address(self) -> tuple[str, int]:
        """Host and port of this end. Raises OSError for a connection that is closed."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    def wait_longer(self) -> None:
        """Wait for the next frame as long as it takes, as for a client's next request."""
        self._socket.settimeout(None)

    def close(self) -> None:
        """Close it, also under a thread that reads."""
        try:
            # That of the connection itself: a thread may read what it encrypts.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


def connect(where: tuple[str, int] | Secured) -> Link:
    """A connection to a broker. Raises OSError."""
    return Link(connected(where))


def connected(where: tuple[str, int] | Secured) -> socket.socket:
    """A connection's socket. Raises OSError."""
    made = socket.create_connection(where[:2], 10)
    if not isinstance(where, Secured):
        return made
    try:
        return where.secure(made)
    except BaseException:
        made.close()
        raise


def listen(where: tuple[str, int]) -> socket.socket:
    """Listens there; port 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    return socket.create_server(where, family=family, backlog=128)
