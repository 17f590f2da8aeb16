"""Token providers of kafka-python and aiokafka for OAUTHBEARER: both get their tokens at a token end point, as
`pykafkad serve --oauth` has one (RFC 6749, section 4.4).

A token is used again until a tenth of its time is left.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from base64 import b64encode
from typing import Any
from urllib.parse import quote_plus, urlencode

from pykafkad.clock import Clock

TIMEOUT_SECONDS = 30.0
LEFT = 0.1
"""A token of which less is left is not used again."""


class TokenSource:
    """The tokens of one client. Safe from every thread."""

    def __init__(self, url: str, client: str, secret: str) -> None:
        self._url = url
        encoded = f"{quote_plus(client)}:{quote_plus(secret)}"
        self._authorization = f"Basic {b64encode(encoded.encode()).decode()}"
        self._lock = threading.Lock()
        self._clock = Clock()
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """One that counts now. Raises OSError if the issuer gives none (of which urllib's HTTPError is one)."""
        with self._lock:
            now = self._clock.now()
            if now >= self._until:
                answer = self._asked()
                self._token = str(answer["access_token"])
                self._until = now + (1 - LEFT) * float(answer.get("expires_in", 0))
            return self._token

    def _asked(self) -> Any:
        form = urlencode({"grant_type": "client_credentials"}).encode()
        request = urllib.request.Request(self._url, form, {"Authorization": self._authorization})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return json.load(answer)


def kafka_python(url: str, client: str, secret: str) -> Any:
    """The value of kafka-python's `sasl_oauth_token_provider`."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    source = TokenSource(url, client, secret)

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        """As kafka-python wants it."""

        def token(self) -> str:
            return source.token()

    return Provider()


def aiokafka(url: str, client: str, secret: str) -> Any:
    """The value of aiokafka's `sasl_oauth_token_provider`."""
    import asyncio

    from aiokafka.abc import AbstractTokenProvider

    source = TokenSource(url, client, secret)

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        """As aiokafka wants it."""

        async def token(self) -> str:
            return await asyncio.get_running_loop().run_in_executor(None, source.token)

    return Provider()
