"""The schema registry of the broker that `pykafkad serve` runs."""

from __future__ import annotations

from pykafkad.registry.server import RegistryServer
from pykafkad.testing.operations import Operations
from pykafkad.testing.served_broker import ServedBroker


class ServedRegistry:
    """The registry of this process: made before its broker, and closed after the last."""

    def __init__(self, broker: ServedBroker, host: str, port: int) -> None:
        """Without a host it is at 127.0.0.1 alone; port 0 takes a free one. Raises ConfigError where a library is
        missing."""
        self._operations = Operations(broker, {})
        self._server = RegistryServer(self._operations, host=host, port=port)

    @property
    def url(self) -> str:
        """`http://HOST:PORT` while it is served."""
        return self._server.url

    def start(self) -> None:
        """Serve. Raises StartFailure for an address that can't be had."""
        self._server.start()

    def close(self) -> None:
        """Stop. The broker has ended, so that nobody waits for it."""
        self._server.close()
        self._operations.disconnect()
