"""The tokens of one client of an issuer, from its token end point (RFC 6749, section 4.4).

Only a test's clients and commands that log in by OAUTHBEARER import it.
"""

from __future__ import annotations

import ipaddress
import json
import threading
import urllib.request as request
from base64 import b64encode
from http.client import HTTPException
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from pykafkad.clock import Clock

TIMEOUT_SECONDS = 30.0
ANSWER_BYTES_MAX = 1 << 20
LEFT = 0.1
"""A token of which less is left is not used again."""


class TokenSource:
    """Gets a token and uses it again until a tenth of its time is left. Safe from every thread."""

    def __init__(self, url: str, client: str, secret: str, scope: str | None = None) -> None:
        self._url = url
        encoded = f"{quote_plus(client)}:{quote_plus(secret)}"
        self._authorization = f"Basic {b64encode(encoded.encode()).decode()}"
        self._form = {"grant_type": "client_credentials", **({} if scope is None else {"scope": scope})}
        self._lock = threading.Lock()
        self._clock = Clock()
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """One that counts now. Raises OSError if the issuer gives none (of which urllib's HTTPError is one)."""
        with self._lock:
            now = self._clock.now()
            if now >= self._until:
                answer = self._asked()
                try:
                    self._token = str(answer["access_token"])
                    self._until = now + (1 - LEFT) * float(answer.get("expires_in", 0))
                except (KeyError, TypeError, ValueError, AttributeError):
                    raise OSError("its answer holds no access_token that expires_in seconds") from None
            return self._token

    def _asked(self) -> Any:
        try:
            # A port above 65535 raises ValueError; the system would take it for another one.
            _ = urlsplit(self._url).port
            asked = request.Request(self._url, urlencode(self._form).encode(), {"Authorization": self._authorization})
        except ValueError:
            raise OSError("it is no URL such as https://issuer.example.com/token") from None
        try:
            with opener(self._url).open(asked, timeout=TIMEOUT_SECONDS) as answer:
                data = answer.read(ANSWER_BYTES_MAX)
        except (HTTPException, ValueError) as error:
            raise OSError(f"it does not answer by HTTP: {type(error).__name__}") from None
        try:
            return json.loads(data)
        except ValueError:
            raise OSError("its answer is no JSON") from None


def opener(url: str) -> request.OpenerDirector:
    """What asks for a URL with a secret: at this machine without a proxy, and never elsewhere. Raises ValueError for
    what is no URL."""
    made = request.OpenerDirector()
    for each in (
        # None: those of the environment, as every library takes them.
        request.ProxyHandler({} if is_local(urlsplit(url).hostname or "") else None),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPErrorProcessor(),
        # No redirections: the secret would go along.
        request.HTTPDefaultErrorHandler(),
        request.UnknownHandler(),
    ):
        made.add_handler(each)
    return made


def is_local(host: str) -> bool:
    """Whether a host is this machine by its name or number, which no proxy can reach (RFC 6761, section 6.3)."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        name = host.lower().rstrip(".")
        return name == "localhost" or name.endswith(".localhost")
