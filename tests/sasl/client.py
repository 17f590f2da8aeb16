"""A client's side of SCRAM, written from RFC 5802 alone."""

from __future__ import annotations

import base64
import hashlib
import hmac


class ScramClient:
    """`first()`, then `final(answer)`, then `is_right(answer)`."""

    def __init__(
        self,
        hash_name: str,
        user: str,
        password: str,
        nonce: str = "fyko+d2lbbFgONRv9qkxdawL",
        *,
        extension: str = "",
    ) -> None:
        """`extension` is one as `tokenauth=true`, with which a delegation token logs in."""
        self.hash_name = hash_name
        self.password = password.encode()
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}{extension and ','}{extension}"
        self.header = "n,,"

    def first(self) -> bytes:
        """The client's first message."""
        return (self.header + self.bare).encode()

    def final(self, answer: bytes, *, header: str | None = None, more_nonce: str = "") -> bytes:
        """The client's final message, for the server's first. It may bind to another `header` than it sent, and
        lengthen the nonce; its proof is right all the same."""
        server_first = answer.decode()
        nonce, salt, iterations = (field[2:] for field in server_first.split(","))
        salted = hashlib.pbkdf2_hmac(self.hash_name, self.password, base64.b64decode(salt), int(iterations))
        client_key = hmac.digest(salted, b"Client Key", self.hash_name)
        stored_key = hashlib.new(self.hash_name, client_key).digest()
        bound = self.header if header is None else header
        without_proof = f"c={base64.b64encode(bound.encode()).decode()},r={nonce}{more_nonce}"
        said = f"{self.bare},{server_first},{without_proof}".encode()
        signature = hmac.digest(stored_key, said, self.hash_name)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self.hash_name)
        self.expected = b"v=" + base64.b64encode(hmac.digest(server_key, said, self.hash_name))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def is_right(self, answer: bytes) -> bool:
        """Whether the server has shown that it knows the user's keys."""
        return answer == self.expected
