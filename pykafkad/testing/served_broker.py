"""The broker that `pykafkad serve` runs on its main thread, for the servers beside it (control API, schema registry).

Their calls have a connection of their own to the broker, which no listener accepts: one end of a pair of sockets is
handed to the loop. So they work the same with listeners that encrypt and ask for a login, and nobody else gets in by
it."""

from __future__ import annotations

import socket
import threading

from pykafkad.clock import AdvancingClock
from pykafkad.server.listeners import Listener
from pykafkad.server.wiring import Process
from pykafkad.settings.authorizer_settings import SUPER_USERS
from pykafkad.testing.broker_loop import BrokerLoop
from pykafkad.testing.wire_client import TIMEOUT_SECONDS

LOOPBACK = "127.0.0.1"

PRINCIPAL = "Control:pykafkad"
"""Who these requests come from, where an authorizer decides. No login leads to it: the principal of a client begins
with `User:`."""


def allow(properties: dict[str, tuple[str, str]], option: str) -> None:
    """Where an authorizer decides, allow these requests everything. `option` asks for it."""
    if properties.get("authorizer.class.name", ("", ""))[0].strip():
        given, origin = properties.get(SUPER_USERS, ("", option))
        names = given.strip().rstrip(";")
        if PRINCIPAL not in names.split(";"):
            properties[SUPER_USERS] = ";".join(filter(None, (names, PRINCIPAL))), origin


class ServedBroker(BrokerLoop):
    """The broker on the thread that has made this: told of each process by `began`, and of the end by `ended`."""

    def __init__(self, *, has_several: bool = False) -> None:
        """`has_several`: each process has several brokers."""
        super().__init__(AdvancingClock())
        self.has_several = has_several
        self._thread = threading.current_thread()
        self._serves = False

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._serves

    def began(self, process: Process) -> None:
        """This is the broker from now on: the first, or one that has taken another's place."""
        self.take(process)
        self.bootstrap = ",".join(each.listeners[0].address() for each in process.brokers)
        if not self._serves:
            self.remember_settings()
            self._serves = True

    def ended(self) -> None:
        """Nobody serves any more, and nobody need wait for it."""
        self._serves = False
        self.abandon()

    def connect(self, node_id: int | None = None) -> socket.socket:
        """A connection that the loop serves, as that one of several brokers or the first that serves. Raises
        BrokerEnded, and OSError."""
        with socket.create_server((LOOPBACK, 0), backlog=1) as listening:
            ours = socket.create_connection(listening.getsockname(), TIMEOUT_SECONDS)
            theirs, address = listening.accept()
        try:
            if address != ours.getsockname():
                raise ConnectionError("another process has connected in place of this one")
            theirs.setblocking(False)
            self.call(lambda: self._adopt(theirs, node_id))
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return ours

    def _adopt(self, theirs: socket.socket, node_id: int | None) -> None:
        broker = next((each for each in self._process.brokers if node_id in (None, each.node_id)), None)
        if broker is None:
            raise ConnectionRefusedError(f"broker {node_id} does not serve")
        first = broker.listeners[0]
        # Of that name, since answers tell the addresses of a listener, and without its TLS and logins.
        connection = broker.socket_server.adopt(theirs, Listener(first.name, first.host, first.port))
        if connection is None:
            raise ConnectionError("the connection was lost at once")
        connection.session.identify(PRINCIPAL)
