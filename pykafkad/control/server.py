"""The control API's server: the application behind an HTTP server (`pykafkad/http_server.py`).

Calls are carried to the broker's loop as those of a test are (`pykafkad/testing/broker_loop.py`)."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafkad.cli import extras
from pykafkad.control.application import MOST_BODY_BYTES, Application, refusal
from pykafkad.control.route import MOST_STREAMS, MOST_WAITS, Control
from pykafkad.errors import ConfigError
from pykafkad.http_door import Door
from pykafkad.http_server import HttpServer
from pykafkad.server.logs import Logs, process_logs
from pykafkad.testing.operations import Operations

if TYPE_CHECKING:
    from pykafkad.control.by_schema import BySchema

HOST = "127.0.0.1"
THREADS = MOST_WAITS + MOST_STREAMS + 4
"""Of which `MOST_WAITS` may wait and `MOST_STREAMS` stream, so that others are always answered."""

TOKEN_BYTES = 24


class ControlServer:
    """The control API of one broker: `start`, then `close`."""

    def __init__(
        self,
        operations: Operations,
        *,
        host: str = HOST,
        port: int = 0,
        token: str | None = None,
        logs: Logs | None = None,
        registry: Callable[[], str] | None = None,
    ) -> None:
        """Port 0 takes a free one. Without a token one is made. `registry` says where the broker's schema registry is,
        once it is served. Raises ConfigError without the library."""
        if sentence := extras.missing("waitress"):
            raise ConfigError(f"control: {sentence}")
        self.token = token or secrets.token_urlsafe(TOKEN_BYTES)
        self.control = Control(operations, None if registry is None else _by_schema(registry))
        self._logs = logs or process_logs()
        # A larger body is refused before it is read; the application says so in JSON up to twice its limit.
        self._application = Application(self.control, self.token, self._tell)
        self._server = HttpServer(
            "the control API",
            host or HOST,
            port,
            threads=THREADS,
            body_bytes_max=2 * MOST_BODY_BYTES,
            door=Door(self._application.has_token, refusal),
        )

    @property
    def url(self) -> str:
        """`http://HOST:PORT` while it is served."""
        return self._server.url

    def start(self) -> None:
        """Serve. Raises StartFailure for an address that can't be had."""
        self.control.closing.clear()
        self._server.start(self._application)

    def close(self) -> None:
        """Stop; the port is free afterwards, and no thread is left. Fine if it does not run. The broker must have ended
        before, so that requests that wait end."""
        if self._server.is_served:
            self.control.closing.set()
            self._server.close()

    def _tell(self, error: Exception, request: str) -> None:
        shown = "".join(traceback.format_exception(error))
        self._logs.error("control", "unexpected-error", request=request, error=error, traceback=shown)


def _by_schema(registry: Callable[[], str]) -> BySchema:
    from pykafkad.control.by_schema import BySchema

    return BySchema(registry)
