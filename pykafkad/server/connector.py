"""Connections that begin here: sockets on their way to an address, until they are a reactor's like all others."""

from __future__ import annotations

from os import strerror

from pykafkad.server.transport import PlainTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from pykafkad.server.connection import Connection
    from pykafkad.server.reactor import Reactor
    from pykafkad.server.transport import NewTransport

_WRITE = 0x4
"""EPOLLOUT: an attempt to connect is over."""


class Connector:
    """The connection attempts of one reactor."""

    __slots__ = ("_connecting", "_reactor")

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._connecting: dict[Connection, tuple[socket, NewTransport | None]] = {}

    def __len__(self) -> int:
        return len(self._connecting)

    def connect(self, host: str, port: int, connection: Connection, secured: NewTransport | None = None) -> None:
        """Connect to an address and serve `connection` through that: its owner is told when it is `connected`, or it is
        lost. `host` is an address as digits. `secured` makes a transport that tells the owner itself, later."""
        reactor = self._reactor
        try:
            connecting = reactor.network.connect(host, port)
        except OSError as error:
            connection.lost(error.strerror or "not connected")
            return
        try:
            reactor.watch(connecting.fileno(), lambda now: self._ended(connection), _WRITE)
        except OSError as error:
            connecting.close()
            connection.lost(error.strerror or "not connected")
            return
        self._connecting[connection] = connecting, secured

    def disconnect(self, connection: Connection, reason: str) -> None:
        """Close a connection, or the attempt at one; it is lost."""
        if connection in self._connecting:
            self._take(connection)[0].close()
            connection.lost(reason)
        else:
            self._reactor.drop_connection(connection, reason)

    def close(self) -> None:
        """Give up every attempt."""
        for connection in list(self._connecting):
            self.disconnect(connection, "the broker stops")

    def _ended(self, connection: Connection) -> None:
        connecting, secured = self._take(connection)
        code = self._reactor.network.connect_error(connecting)
        reason = strerror(code) if code else ""
        if not reason:
            try:
                self._reactor.add(connecting, connection, secured or PlainTransport)
            except OSError as error:
                # The system lets us wait for no more descriptors, or the connection has ended again.
                reason = error.strerror or str(error) or "not connected"
                if not error.errno:
                    # It is not the system that says so: the transport cannot begin with this peer.
                    connection.close(reason)
        if reason:
            connecting.close()
            connection.lost(reason)
        elif secured is None:
            connection.owner.connected(connection)

    def _take(self, connection: Connection) -> tuple[socket, NewTransport | None]:
        connecting, secured = self._connecting.pop(connection)
        self._reactor.unwatch(connecting.fileno())
        return connecting, secured
