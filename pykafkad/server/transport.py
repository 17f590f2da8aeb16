"""Between a connection and its socket: bytes go in as the peer sent them, and the outbox leaves.

The reactor reads through `recv_into`, sends the commonest outbox through `send` and every other one through `flush`.
`PlainTransport` hands all of them to the socket. The one that encrypts (`tls_transport.py`) fits in the same place: its
`recv_into` gives plaintext and raises BlockingIOError when there is none yet, its `flush` encrypts, with file slices
read first, and it leaves ciphertext that the socket did not take as a buffer at the front of the outbox, which is so
not empty before the peer has everything."""

from __future__ import annotations

from pykafkad.log.file_slice import FileSlice
from pykafkad.server.sending import send_many

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from typing import Protocol

    from pykafkad.server.connection import Chunk, Connection
    from pykafkad.server.reactor import Reactor

    class Transport(Protocol):
        """What the reactor asks of every transport; `PlainTransport` says what the attributes are."""

        connection: Connection
        fileno: int
        interest: int
        last_active: float
        queued: bool
        socket: socket

        def recv_into(self, buffer: memoryview, /) -> int: ...
        def send(self, data: bytes, /) -> int: ...
        def flush(self, outbox: list[Chunk]) -> int: ...
        def close(self) -> None: ...
        def send_soon(self) -> None: ...
        def resume_soon(self) -> None: ...

    NewTransport = Callable[[Reactor, socket, Connection, float], Transport]
    """Makes a transport that serves a connection through a socket, from a monotonic second on."""

_BUFFERS = (bytes, bytearray)


class PlainTransport:
    """A socket without encryption. What the reactor knows of a connection's descriptor stands here."""

    __slots__ = ("connection", "fileno", "interest", "last_active", "queued", "reactor", "recv_into", "send", "socket")

    def __init__(self, reactor: Reactor, connected: socket, connection: Connection, now: float) -> None:
        self.reactor = reactor
        self.socket = connected
        # The calls of the socket that every request needs.
        self.recv_into = connected.recv_into
        self.send = connected.send
        self.fileno = connected.fileno()
        self.connection = connection
        self.interest = 0
        """The events that the reactor waits for."""
        self.queued = False
        """Whether the reactor looks at the outbox at the end of this turn."""
        self.last_active = now
        """The monotonic second of the last event."""

    def flush(self, outbox: list[Chunk]) -> int:
        """Send what the peer takes and remove it from `outbox`; the bytes that left straight from files. Raises
        BlockingIOError or OSError as the socket does, LogCut (an OSError) for a slice that was cut off, and
        StorageFailure for one that can't be read."""
        data = outbox[0]
        if len(outbox) > 1 or type(data) not in _BUFFERS:
            return send_many(self.socket, outbox, self.reactor.network.send_slice)
        assert not isinstance(data, FileSlice)
        sent = self.send(data)
        if sent == len(data):
            outbox.clear()
        else:
            outbox[0] = memoryview(data)[sent:]
        return 0

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    # --- what the connection asks for ---------------------------------------------------------------------------

    def send_soon(self) -> None:
        """Look at the outbox at the end of the turn."""
        self.reactor.send_soon(self)

    def resume_soon(self) -> None:
        """Serve what the connection has kept."""
        self.reactor.resume_soon(self)
