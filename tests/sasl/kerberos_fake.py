"""A library of Kerberos without Kerberos: tickets are `ticket:<user@REALM>`, wrapped messages begin with `wrapped:`."""

from __future__ import annotations

from pykafkad.sasl.kerberos import KerberosFailure

WRAPPED = b"wrapped:"


class FakeContext:
    """A client. With `mutual` it is answered before it asks for the layers."""

    def __init__(self, mutual: bool = True) -> None:
        self.mutual = mutual
        self.user = ""
        self.is_complete = False

    def step(self, token: bytes) -> bytes | None:
        """Takes a ticket; `more` asks for another token first."""
        if token == b"more":
            return b"more"
        kind, _, user = token.partition(b":")
        if kind == b"bug":
            raise ZeroDivisionError("of the library")
        if kind != b"ticket":
            raise KerberosFailure("it is no ticket")
        self.user = user.decode()
        self.is_complete = True
        return b"mutual" if self.mutual else None

    def client(self) -> str:
        """Who it is."""
        return self.user

    def wrap(self, message: bytes) -> bytes:
        """A message for the client."""
        return WRAPPED + message

    def unwrap(self, token: bytes) -> bytes:
        """A message of the client."""
        if not token.startswith(WRAPPED):
            raise KerberosFailure("it is not wrapped")
        return token.removeprefix(WRAPPED)


class FakeAcceptor:
    """A broker in the realm REALM."""

    default_realm = "REALM"

    def __init__(self, mutual: bool = True) -> None:
        self.mutual = mutual

    def context(self) -> FakeContext:
        """For a new client."""
        return FakeContext(self.mutual)
