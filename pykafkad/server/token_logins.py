"""Delegation tokens as SCRAM's exchanges ask for them: the password of a token is its HMAC in base64.

A broker without delegation tokens does not import this module.
"""

from __future__ import annotations

from binascii import b2a_base64

from pykafkad.metadata import delegation_tokens
from pykafkad.sasl import scram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.metadata.image import Image

CREDENTIALS_MAX = 10_000
"""As many credentials are kept, of some 200 bytes each; making one takes milliseconds."""

_SALT_BYTES = 18


class TokenLogins:
    """The delegation tokens of an image with what SCRAM needs of them."""

    __slots__ = ("_credentials", "_image", "_random_bytes", "_secret")

    def __init__(self, secret: str, random_bytes: Callable[[int], bytes], image: Callable[[], Image]) -> None:
        """`secret` is `delegation.token.secret.key`, `random_bytes(n)` gives the salts, and `image()` the tokens."""
        self._secret = secret
        self._random_bytes = random_bytes
        self._image = image
        self._credentials: dict[tuple[str, str], scram.Credential] = {}

    def find(self, mechanism: str, token_id: str) -> scram.Token | None:
        """The token with this id, for a login by SCRAM-SHA-256 or SCRAM-SHA-512; also one that has expired and is not
        yet removed, as in Kafka: that login ends at once."""
        record = self._image().delegation_tokens.get(token_id)
        if record is None:
            return None
        credential = self._credentials.get((mechanism, token_id)) or self._make(mechanism, token_id)
        return scram.Token(credential, delegation_tokens.parts(record.owner)[1], record.expiration_timestamp)

    def _make(self, mechanism: str, token_id: str) -> scram.Credential:
        password = b2a_base64(delegation_tokens.hmac_of(self._secret, token_id), newline=False).decode()
        salt = scram.usual_salt(self._random_bytes(_SALT_BYTES))
        made = scram.credential(mechanism, password, salt, scram.USUAL_ITERATIONS)
        if len(self._credentials) >= CREDENTIALS_MAX:
            del self._credentials[next(iter(self._credentials))]
        self._credentials[mechanism, token_id] = made
        return made
