"""Logins of commands by a delegation token (KIP-48): SCRAM with the extension `tokenauth=true`, which kafka-python's
own SCRAM does not send. The name is the token's id, the password its HMAC.

A mechanism as kafka-python takes others; only a command whose properties say `tokenauth="true"` imports it.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import b64decode, b64encode
from hmac import compare_digest, digest

from kafka.net.sasl.abc import SaslMechanism

from pykafkad.sasl.scram import HASHES

EXTENSION = "tokenauth=true"
ITERATIONS_MAX = 1_000_000
"""A broker that asks for more wants this process to be busy."""

_NONCE_BYTES = 24


class TokenScram(SaslMechanism):  # type: ignore[misc]
    """One exchange of two tokens."""

    def __init__(self, **config: object) -> None:
        """Of `config` the mechanism, the name and the password count, by kafka-python's names."""
        self._hash = HASHES[str(config["sasl_mechanism"])]
        self._user = str(config["sasl_plain_username"])
        self._password = str(config["sasl_plain_password"]).encode()
        self._nonce = secrets.token_hex(_NONCE_BYTES)
        name = self._user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce},{EXTENSION}"
        self._final = b""
        self._signature = b""
        self._is_done = False

    def auth_bytes(self) -> bytes:
        """The next token."""
        return self._final or f"n,,{self._bare}".encode()

    def receive(self, auth_bytes: bytes) -> None:
        """The broker's answer to it. Raises ValueError if it is not that of one who knows the token."""
        text = auth_bytes.decode("ascii")
        fields = dict(each.split("=", 1) for each in text.split(","))
        if not self._final:
            self._answer(text, fields)
        elif compare_digest(b64decode(fields["v"]), self._signature):
            self._is_done = True
        else:
            raise ValueError("its signature is wrong")

    def _answer(self, text: str, fields: dict[str, str]) -> None:
        nonce, iterations = fields["r"], int(fields["i"])
        if not nonce.startswith(self._nonce) or not 0 < iterations <= ITERATIONS_MAX:
            raise ValueError("its nonce or its number of iterations is wrong")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, b64decode(fields["s"]), iterations)
        without_proof = f"c={b64encode(b'n,,').decode()},r={nonce}"
        said = f"{self._bare},{text},{without_proof}".encode()
        client_key = digest(salted, b"Client Key", self._hash)
        mask = digest(hashlib.new(self._hash, client_key).digest(), said, self._hash)
        proof = bytes(one ^ other for one, other in zip(client_key, mask, strict=True))
        self._signature = digest(digest(salted, b"Server Key", self._hash), said, self._hash)
        self._final = f"{without_proof},p={b64encode(proof).decode()}".encode()

    def is_done(self) -> bool:
        """Whether there is no token left."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Whether the broker knows the token, too."""
        return self._is_done
