"""The control API of the broker that `pykafkad serve` runs: the same calls, carried to the loop of the main thread.

The calls have a connection of their own to the broker, which no listener accepts: one end of a pair of sockets is
handed to the loop. So they work the same with listeners that encrypt and ask for a login, and nobody else gets in by
it."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterable

from pykafkad.clock import AdvancingClock
from pykafkad.control.command_line import PRINCIPAL
from pykafkad.control.server import HOST, ControlServer
from pykafkad.server.listeners import Listener
from pykafkad.server.logs import process_logs
from pykafkad.server.wiring import Process
from pykafkad.testing.broker_loop import BrokerLoop
from pykafkad.testing.operations import Operations
from pykafkad.testing.topics import Topic
from pykafkad.testing.wire_client import TIMEOUT_SECONDS

LOGGER, QUEUE_LOGGER = "waitress", "waitress.queue"
"""Where the server library tells what it sees, and that requests wait for a thread."""


class ServedBroker(BrokerLoop):
    """The broker on the thread that has made this."""

    def __init__(self) -> None:
        super().__init__(AdvancingClock())
        self.keep_timeline()
        self._thread = threading.current_thread()
        self._serves = False

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._serves

    def began(self, process: Process) -> None:
        """This is the broker from now on: the first, or one that has taken another's place."""
        self.take(process)
        self.bootstrap = process.listeners[0].address()
        if not self._serves:
            self.remember_settings()
            self._serves = True

    def ended(self) -> None:
        """Nobody serves any more, and nobody need wait for it."""
        self._serves = False
        self.abandon()

    def connect(self) -> socket.socket:
        """A connection that the loop serves. Raises BrokerEnded, and OSError."""
        with socket.create_server((HOST, 0), backlog=1) as listening:
            ours = socket.create_connection(listening.getsockname(), TIMEOUT_SECONDS)
            theirs, address = listening.accept()
        try:
            if address != ours.getsockname():
                raise ConnectionError("another process has connected in place of this one")
            theirs.setblocking(False)
            self.call(lambda: self._adopt(theirs))
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return ours

    def _adopt(self, theirs: socket.socket) -> None:
        first = self._broker.listeners[0]
        # Of that name, since answers tell the addresses of a listener, and without its TLS and logins.
        connection = self._broker.socket_server.adopt(theirs, Listener(first.name, first.host, first.port))
        if connection is None:
            raise ConnectionError("the connection was lost at once")
        connection.session.identify(PRINCIPAL)


class _ToLog(logging.Handler):
    """Writes what the server library tells as lines of the broker's log."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line; the library's queue of requests is nobody's concern."""
        if record.name != QUEUE_LOGGER:
            process_logs().warning("control", "server-tells", level=record.levelname, text=record.getMessage())


class ServedControl:
    """The control API of this process: made before its broker, told of each by `began`, and closed after the last."""

    def __init__(self, host: str, port: int, token: str | None, topics: Iterable[tuple[str, int]]) -> None:
        """`topics` (name, partitions) are there again after a reset. Without a token one is made. Raises ConfigError
        where the library is missing."""
        self._broker = ServedBroker()
        self._operations = Operations(self._broker, {name: Topic(partitions) for name, partitions in topics})
        self._server = ControlServer(self._operations, host=host, port=port, token=token)
        self._is_token_new = token is None
        self._to_log = _ToLog(logging.WARNING)
        self.clock = self._broker.clock
        """The broker's, which may be moved."""
        self.began = self._broker.began

    def start(self) -> None:
        """Serve; without a broker requests are refused as such. Raises StartFailure for an address that can't be
        had."""
        self._server.start()
        library = logging.getLogger(LOGGER)
        library.propagate = False
        library.addHandler(self._to_log)

    def close(self) -> None:
        """Stop. The broker has ended."""
        self._broker.ended()
        self._server.close()
        self._operations.disconnect()
        library = logging.getLogger(LOGGER)
        library.propagate = True
        library.removeHandler(self._to_log)

    @property
    def words(self) -> dict[str, str]:
        """What the readiness line tells of it: where it is, a token that nobody knows yet, and its page."""
        url = self._server.url
        if not self._is_token_new:
            return {"control": url, "control.page": f"{url}/"}
        token = self._server.token
        # What stands behind the # is never sent to a server: the page takes the token from there and removes it.
        return {"control": url, "control.token": token, "control.page": f"{url}/#token={token}"}
