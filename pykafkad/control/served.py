"""The control API of the broker that `pykafkad serve` runs: the same calls, carried to the loop of the main thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pykafkad.control.server import ControlServer
from pykafkad.server.logs import process_logs
from pykafkad.testing.operations import Operations
from pykafkad.testing.served_broker import ServedBroker
from pykafkad.testing.topics import Topic

LOGGER, QUEUE_LOGGER = "waitress", "waitress.queue"
"""Where the server library tells what it sees, and that requests wait for a thread."""


class _ToLog(logging.Handler):
    """Writes what the server library tells as lines of the broker's log."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line; the library's queue of requests is nobody's concern."""
        if record.name != QUEUE_LOGGER:
            process_logs().warning("control", "server-tells", level=record.levelname, text=record.getMessage())


class ServedControl:
    """The control API of this process: made before its broker, and closed after the last."""

    def __init__(
        self,
        broker: ServedBroker,
        host: str,
        port: int,
        token: str | None,
        topics: Iterable[tuple[str, int]],
        registry: Callable[[], str] | None = None,
    ) -> None:
        """`topics` (name, partitions) are there again after a reset. Without a token one is made. `registry` says where
        the broker's schema registry is. Raises ConfigError
        where the library is missing."""
        self._broker = broker
        broker.keep_timeline()
        self._operations = Operations(broker, {name: Topic(partitions) for name, partitions in topics})
        self._server = ControlServer(self._operations, host=host, port=port, token=token, registry=registry)
        self._is_token_new = token is None
        self._to_log = _ToLog(logging.WARNING)

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
