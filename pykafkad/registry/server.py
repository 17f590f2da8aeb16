"""The registry's server: the application behind an HTTP server (`pykafkad/http_server.py`)."""

from __future__ import annotations

import logging
import traceback

from pykafkad.cli import extras
from pykafkad.cli.token_source import is_local
from pykafkad.errors import ConfigError
from pykafkad.http_server import HttpServer
from pykafkad.registry.application import MOST_BODY_BYTES, Application
from pykafkad.registry.registry import Registry
from pykafkad.registry.store import TopicStore
from pykafkad.server.logs import Logs, process_logs
from pykafkad.testing.operations import Operations

HOST = "127.0.0.1"
THREADS = 4
LOGGER = "waitress.queue"
"""Where the server library tells that requests wait for each other, which is nobody's concern."""

PACKAGES = ("waitress", "avro.schema", "jsonschema.validators")


class RegistryServer:
    """The registry of one broker: `start` when the broker serves, `close` before it ends."""

    def __init__(self, operations: Operations, *, host: str = HOST, port: int = 0, logs: Logs | None = None) -> None:
        """Port 0 takes a free one. Raises ConfigError without the libraries."""
        for package in PACKAGES:
            if sentence := extras.missing(package):
                raise ConfigError(f"registry: {sentence}")
        self.registry = Registry(TopicStore(operations))
        self._logs = logs or process_logs()
        self._server = HttpServer(
            "the schema registry", host or HOST, port, threads=THREADS, body_bytes_max=2 * MOST_BODY_BYTES
        )
        self._is_loopback = is_local(host or HOST)
        self._silence = logging.NullHandler()

    @property
    def url(self) -> str:
        """`http://HOST:PORT` while it is served."""
        return self._server.url

    def start(self) -> None:
        """Serve. Raises StartFailure for an address that can't be had."""
        logging.getLogger(LOGGER).addHandler(self._silence)
        self._server.start(Application(self.registry, self._tell, is_loopback=self._is_loopback))
        if not self._is_loopback:
            self._logs.warning("registry", "open-to-others", url=self.url, login="none")

    def close(self) -> None:
        """Stop. Fine if it does not run."""
        self._server.close()
        logging.getLogger(LOGGER).removeHandler(self._silence)

    def _tell(self, error: Exception, request: str) -> None:
        shown = "".join(traceback.format_exception(error))
        self._logs.error("registry", "unexpected-error", request=request, error=error, traceback=shown)
