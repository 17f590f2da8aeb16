"""Who gets which token: clients with their secrets, a key that lives as long as the process, and what is published.

The key is made at the start and kept nowhere: tokens of an earlier start count no more.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote_plus

AUDIENCE = "kafka"
ALGORITHM = "ES256"
USUAL_LIFETIME_SECONDS = 3600
TOKEN_PATH, KEYS_PATH = "/token", "/jwks"
GRANT = "client_credentials"

_NOBODYS_SECRET = "\0"
"""No command line can hold this character."""

_SCOPES = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")
"""RFC 6749, section 3.3."""

_ID_BYTES = 12


class Issuer:
    """What one issuer does. Its name is the address `url`, at which all of it stands."""

    def __init__(
        self,
        url: str,
        clients: Mapping[str, str],
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        lifetime_seconds: int = USUAL_LIFETIME_SECONDS,
    ) -> None:
        """`clients` are secrets by ids; a token counts for `lifetime_seconds` from `now_ms()`, in milliseconds since
        1970. `random_bytes(n)` are bytes for the ids of keys and tokens."""
        from cryptography.hazmat.primitives.asymmetric import ec

        self.url = url
        self.lifetime_seconds = lifetime_seconds
        self._clients = dict(clients)
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._key_id = random_bytes(_ID_BYTES).hex()

    def is_client(self, client: str, secret: str, *, may_be_encoded: bool = False) -> bool:
        """Whether that is the client's secret. Clients write both into a header as they are, or encoded as in a form
        (RFC 6749, section 2.3.1); librdkafka and Java's do the former."""
        found = self._matches(client, secret)
        if may_be_encoded:
            found |= self._matches(unquote_plus(client), unquote_plus(secret))
        return found

    def id_of(self, client: str) -> str:
        """The id of a client that `is_client` knows, which may be encoded."""
        return client if client in self._clients else unquote_plus(client)

    def _matches(self, client: str, secret: str) -> bool:
        expected = self._clients.get(client)
        # In a time that tells nothing of the secret.
        is_right = hmac.compare_digest(
            secret.encode("utf-8", "surrogateescape"),
            (_NOBODYS_SECRET if expected is None else expected).encode("utf-8", "surrogateescape"),
        )
        return is_right and expected is not None

    def grant(self, client: str, scope: str | None) -> dict[str, Any]:
        """The answer to a client that asks for a token (RFC 6749, section 5.1), for these scopes. Raises ValueError
        for what names no scopes."""
        if scope and not _SCOPES.fullmatch(scope):
            raise ValueError("scope")
        now = self._now_ms() // 1000
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": client,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + self.lifetime_seconds,
            "jti": self._random_bytes(_ID_BYTES).hex(),
            "client_id": client,
        }
        if scope:
            # A list, since Kafka takes a text for one scope, and names each once.
            claims["scope"] = list(dict.fromkeys(scope.split(" ")))
        answer = {"access_token": self._signed(claims), "token_type": "Bearer", "expires_in": self.lifetime_seconds}
        return {**answer, "scope": scope} if scope else answer

    def _signed(self, claims: Mapping[str, Any]) -> str:
        import jwt

        return jwt.encode(dict(claims), self._key, ALGORITHM, {"kid": self._key_id})

    def keys(self) -> dict[str, Any]:
        """What verifies the tokens (RFC 7517)."""
        from jwt.algorithms import ECAlgorithm

        public = json.loads(ECAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**public, "kid": self._key_id, "use": "sig", "alg": ALGORITHM}]}

    def description(self) -> dict[str, Any]:
        """What the issuer says of itself (OpenID Connect Discovery 1.0; RFC 8414)."""
        return {
            "issuer": self.url,
            "token_endpoint": self.url + TOKEN_PATH,
            "jwks_uri": self.url + KEYS_PATH,
            "grant_types_supported": [GRANT],
            "response_types_supported": [],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
