"""A login by hand, token by token, and what each was answered: to compare one broker's with another's."""

from __future__ import annotations

import struct
from typing import Any, Protocol

from compat_tests.scenarios.exchange import CLOSED, Connection, request
from pykafkad.sasl.scram import HASHES
from tests.sasl.client import ScramClient


class HasBootstrap(Protocol):
    """A broker's listener with SASL."""

    bootstrap: str


class Talk:
    """A connection that logs in, and what it was told."""

    def __init__(self, guarded: HasBootstrap, title: str) -> None:
        self._connection = Connection(guarded.bootstrap)
        self.told = [title]
        self.lifetime_unit_ms = 1
        """The lifetimes of logins are noted in whole units."""

    def ask(self, api: str, version: int, /, **fields: Any) -> Any:
        """Send a request and note its answer."""
        try:
            self._connection.send(api, version, request(api, version, **fields))
            answer = self._connection.receive()
        except (BrokenPipeError, ConnectionResetError):
            answer = CLOSED
        shown = repr(answer)
        if api == "ApiVersions" and answer != CLOSED:
            shown = f"{answer.error_code}"
        elif api == "Metadata" and answer != CLOSED:
            shown = f"{len(answer.brokers)} brokers"
        elif getattr(answer, "auth_bytes", b"").startswith((b"r=", b"v=")):
            lifetime = round(answer.session_lifetime_ms / self.lifetime_unit_ms)
            shown = f"{bytes(answer.auth_bytes[:2])!r} {answer.error_code} {lifetime}"
        self.told.append(f"{api} {version}: {shown}")
        return answer

    def bare(self, token: bytes) -> bytes | None:
        """Send a token without a header and note the answer's form."""
        stream = self._connection.socket
        try:
            stream.sendall(struct.pack(">i", len(token)) + token)
            size = stream.recv(4, 0x100)
            answer = stream.recv(struct.unpack(">i", size)[0]) if size else None
        except ConnectionError:
            answer = None
        self.told.append(f"bare: {answer[:2] if answer is not None else CLOSED!r}")
        return answer

    def ends(self) -> None:
        """Note whether the connection ends now."""
        stream = self._connection.socket
        stream.settimeout(2.0)
        try:
            ended = stream.recv(1) == b""
        except TimeoutError:
            ended = False
        except ConnectionError:
            ended = True
        self.told.append("it ends" if ended else "it goes on")

    def close(self) -> list[str]:
        """The notes."""
        self._connection.close()
        return self.told

    def log_in(
        self,
        mechanism: str,
        user: str,
        password: str,
        version: int = 2,
        handshake: int = 1,
        *,
        extension: str = "",
    ) -> None:
        """A whole login."""
        self.ask("SaslHandshake", handshake, mechanism=mechanism)

        def token(data: bytes) -> bytes:
            if handshake == 0:
                return self.bare(data) or b""
            answer = self.ask("SaslAuthenticate", version, auth_bytes=data)
            return b"" if answer == CLOSED else bytes(answer.auth_bytes)

        if mechanism == "PLAIN":
            token(f"\0{user}\0{password}".encode())
            return
        client = ScramClient(HASHES[mechanism], user, password, extension=extension)
        if first := token(client.first()):
            token(client.final(first))
