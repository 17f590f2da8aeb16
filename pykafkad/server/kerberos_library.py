"""Kerberos by the library `gssapi` (MIT's or Heimdal's beneath it): the broker's side of a client's tickets.

The only module that knows the library, which is loaded where a listener offers GSSAPI. The library keeps what it has
seen (its replay cache, by KRB5RCACHENAME), reads the keytab for each client, and may ask the system about names: its
calls belong beside the loop.
"""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.sasl.kerberos import KerberosFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def open_acceptor(keytab: str | None, principal: str) -> LibraryAcceptor:
    """The broker as `principal`, whose keys are in `keytab`; without one in that of KRB5_KTNAME, or of the machine.
    Raises ConfigError."""
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise ConfigError(f"GSSAPI needs the package gssapi ({error}); pip install 'pykafkad[gssapi]'") from None
    try:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        keys = gssapi.Credentials(
            name=name,
            usage="accept",
            mechs=[gssapi.MechType.kerberos],
            store=None if keytab is None else {"keytab": keytab},
        )
    except gssapi.exceptions.GSSError as error:
        where = "the usual keytab" if keytab is None else keytab
        raise ConfigError(f"there are no keys of {principal} in {where}: {_text(error)}") from None
    return LibraryAcceptor(keys)


class LibraryAcceptor:
    """The broker with its keys."""

    __slots__ = ("_keys", "default_realm")

    def __init__(self, keys: Any) -> None:
        self._keys = keys
        self.default_realm = _default_realm()
        """That of this machine; empty without one."""

    def context(self) -> LibraryContext:
        """For a new client."""
        return LibraryContext(self._keys)


class LibraryContext:
    """A client and its tickets."""

    __slots__ = ("_context",)

    def __init__(self, keys: Any) -> None:
        import gssapi

        self._context = gssapi.SecurityContext(creds=keys, usage="accept")
        # An error of the first token is told at once, and not with the next one.
        self._context.__DEFER_STEP_ERRORS__ = False

    @property
    def is_complete(self) -> bool:
        """Whether it is known who the client is."""
        return bool(self._context.complete)

    def step(self, token: bytes) -> bytes | None:
        """Take a token; the answer. Raises KerberosFailure."""
        answer: bytes | None = _checked(lambda: self._context.step(token))
        return answer

    def client(self) -> str:
        """Who the client is: `user@REALM`. Raises KerberosFailure."""
        name: str = _checked(lambda: str(self._context.initiator_name))
        return name

    def wrap(self, message: bytes) -> bytes:
        """A message for the client. Raises KerberosFailure."""
        token: bytes = _checked(lambda: self._context.wrap(message, False).message)
        return token

    def unwrap(self, token: bytes) -> bytes:
        """A message of the client. Raises KerberosFailure."""
        message: bytes = _checked(lambda: self._context.unwrap(token).message)
        return message


def _checked(call: Callable[[], Any]) -> Any:
    import gssapi

    try:
        return call()
    except gssapi.exceptions.GSSError as error:
        raise KerberosFailure(_text(error)) from None


def _text(error: Exception) -> str:
    return " ".join(str(error).split())


def _default_realm() -> str:
    import gssapi

    try:
        name = gssapi.Name("name", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
    except gssapi.exceptions.GSSError:
        return ""
    return str(name).partition("@")[2]
