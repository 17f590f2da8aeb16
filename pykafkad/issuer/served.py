"""The issuer that `pykafkad serve --oauth` runs beside its broker, on a port of its own."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Mapping

from pykafkad.clock import Clock
from pykafkad.http_server import HttpServer
from pykafkad.issuer.application import BODY_BYTES_MAX, Application
from pykafkad.issuer.tokens import AUDIENCE, KEYS_PATH, TOKEN_PATH, Issuer
from pykafkad.server.logs import process_logs

HOST = "127.0.0.1"
THREADS = 4
LOGGER = "waitress"
"""Where the server library tells what it sees, which is nobody's concern: that requests wait, and clients go."""


class ServedIssuer:
    """Serves from the moment it is made until `close`."""

    def __init__(self, clients: Mapping[str, str], host: str, port: int, lifetime_seconds: int) -> None:
        """Without a host it is at 127.0.0.1 alone; port 0 takes a free one. See `Issuer`. Raises StartFailure for an
        address that can't be had."""
        self._server = HttpServer(
            "the token end point", host or HOST, port, threads=THREADS, body_bytes_max=2 * BODY_BYTES_MAX
        )
        listening = self._server.bind()
        self.url = self._server.url
        """The issuer's name, as tokens have it."""
        self._silence = logging.NullHandler()
        logging.getLogger(LOGGER).addHandler(self._silence)
        self._clock = Clock()
        issuer = Issuer(self.url, clients, lambda: self._clock.now_ms(), os.urandom, lifetime_seconds)
        self._server.start(Application(issuer, _tell), listening)

    def follow(self, clock: Clock) -> None:
        """Have tokens begin and end by the clock of the broker that checks them."""
        self._clock = clock

    @property
    def token_url(self) -> str:
        """Where clients ask for tokens."""
        return self.url + TOKEN_PATH

    @property
    def settings(self) -> dict[str, str]:
        """Those of a broker that believes it."""
        return {
            "sasl.oauthbearer.jwks.endpoint.url": self.url + KEYS_PATH,
            "sasl.oauthbearer.expected.issuer": self.url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }

    def close(self) -> None:
        """Stop."""
        self._server.close()
        logging.getLogger(LOGGER).removeHandler(self._silence)


def _tell(error: Exception) -> None:
    shown = "".join(traceback.format_exception(error))
    process_logs().error("issuer", "unexpected-error", error=error, traceback=shown)
