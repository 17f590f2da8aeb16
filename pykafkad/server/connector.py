"""Connections that begin here: sockets on their way to an address, until they are a reactor's like all others."""

from __future__ import annotations

from os import strerror

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from pykafkad.server.connection import Connection
    from pykafkad.server.reactor import Reactor

_WRITE = 0x4
"""EPOLLOUT: an attempt to connect is over."""


class Connector:
    """The connection attempts of one reactor."""

    __slots__ = ("_connecting", "_reactor")

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._connecting: dict[Connection, socket] = {}

    def __len__(self) -> int:
        return len(self._connecting)

    def connect(self, host: str, port: int, connection: Connection) -> None:
        """Connect to an address and serve `connection` through that: its owner is told when it is `connected`, or it is
        lost. `host` is an address as digits."""
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
        self._connecting[connection] = connecting

    def disconnect(self, connection: Connection, reason: str) -> None:
        """Close a connection, or the attempt at one; it is lost."""
        if connection in self._connecting:
            self._take(connection).close()
            connection.lost(reason)
        else:
            self._reactor.drop_connection(connection, reason)

    def close(self) -> None:
        """Give up every attempt."""
        for connection in list(self._connecting):
            self.disconnect(connection, "the broker stops")

    def _ended(self, connection: Connection) -> None:
        connecting = self._take(connection)
        code = self._reactor.network.connect_error(connecting)
        if not code:
            try:
                self._reactor.add(connecting, connection)
            except OSError as error:
                # The system lets us wait for no more descriptors.
                code = error.errno or -1
        if code:
            connecting.close()
            connection.lost(strerror(code))
        else:
            connection.owner.connected(connection)

    def _take(self, connection: Connection) -> socket:
        connecting = self._connecting.pop(connection)
        self._reactor.unwatch(connecting.fileno())
        return connecting
