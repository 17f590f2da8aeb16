"""Connections between the nodes of one process, which nobody outside of it can reach: its brokers, or a broker and the
controller beside it.

Each is a pair of sockets that this process alone has: one end is a `Peer`'s, the other is served by the other node, at
a listener without an address. No port is open for them, so there is nothing that a stranger could connect to;
whoever has an end is a broker of this process, needs no login, and may do what brokers do."""

from __future__ import annotations

from pykafkad.metadata.brokers import Endpoint
from pykafkad.server.listeners import Listener
from pykafkad.server.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.server.connection import Connection
    from pykafkad.server.runtime import Runtime
    from pykafkad.server.socket_server import SocketServer
    from pykafkad.server.transport import NewTransport

NAME = "LOCAL"


def endpoint(node_id: int) -> Endpoint:
    """Where a broker of this process is: no host, and its node id in place of a port."""
    return Endpoint(NAME, "", node_id)


class LocalSession(Session):
    """The session of a broker of this process: no authorizer is asked."""

    __slots__ = ()

    is_local = True

    def could(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """Brokers of one process trust each other."""
        return True

    allowed = could
    may_describe = None


class LocalLinks:
    """What connects the brokers of one process; it takes the place of the reactor's connector."""

    __slots__ = ("_find", "_listener", "_runtime")

    def __init__(self, runtime: Runtime, find: Callable[[int], SocketServer | None]) -> None:
        """`find(node_id)` is the server of a broker that is up."""
        self._runtime = runtime
        self._find = find
        self._listener = Listener(NAME, "", 0)

    def connect(self, host: str, port: int, connection: Connection, secured: NewTransport | None = None) -> None:
        """Connect to the broker whose node id is `port`: the connection's owner is told at once that it is `connected`,
        or it is lost."""
        server, reactor = self._find(port), self._runtime.reactor
        if server is None:
            connection.lost(f"broker {port} is down")
            return
        try:
            here, there = reactor.network.pair()
        except OSError as error:
            connection.lost(error.strerror or "not connected")
            return
        try:
            reactor.add(here, connection)
        except OSError as error:
            here.close()
            there.close()
            connection.lost(error.strerror or "not connected")
            return
        try:
            server.adopt_local(there, self._listener)
        except OSError as error:
            there.close()
            reactor.drop_connection(connection, error.strerror or "not connected")
            return
        connection.owner.connected(connection)

    def disconnect(self, connection: Connection, reason: str) -> None:
        """Close a connection; it is lost."""
        self._runtime.reactor.drop_connection(connection, reason)
