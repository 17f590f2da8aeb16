"""Logins of commands by GSSAPI (RFC 4752), with a keytab, a principal or a cache of tickets of one's own: kafka-python
takes only those that the environment names.

A mechanism as kafka-python takes others; only a command that logs in by GSSAPI imports it.
"""

from __future__ import annotations

from kafka.net.sasl.abc import SaslMechanism

from pykafkad.cli import extras
from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GSSAPI = "GSSAPI"
_NO_LAYER = b"\1"
"""Neither integrity nor privacy: Kafka has no other."""


class KerberosLogin(SaslMechanism):  # type: ignore[misc]
    """One exchange, which ends with a token of the client."""

    def __init__(self, own: Mapping[str, str], **config: object) -> None:
        """`own` may have a keytab, a principal and a cache of tickets, by the names of `client_properties`; of `config`
        the service and the host count, by kafka-python's names. Raises `Failure` without a ticket."""
        if sentence := extras.missing("gssapi"):
            raise Failure(sentence, 2)
        import gssapi

        self._error = gssapi.exceptions.GSSError
        broker = f"{config['sasl_kerberos_service_name']}@{config['host']}"
        try:
            name = gssapi.Name(broker, gssapi.NameType.hostbased_service)
            self._context = gssapi.SecurityContext(
                name=name, creds=_credentials(own), usage="initiate", mech=gssapi.MechType.kerberos
            )
            # An error is told at once, and not with the next step.
            self._context.__DEFER_STEP_ERRORS__ = False
            self._token = self._context.step() or b""
        except self._error as error:
            raise Failure(f"the login by {GSSAPI} as a client of {broker} can't begin: {_text(error)}") from None
        self._is_last = self._is_done = False

    def auth_bytes(self) -> bytes:
        """The next token."""
        self._is_done = self._is_last
        return self._token

    def receive(self, auth_bytes: bytes) -> None:
        """The broker's answer to it. Raises ValueError if it is not that of the broker whose name it has."""
        try:
            if self._is_done:
                return
            if not self._context.complete:
                self._token = self._context.step(auth_bytes) or b""
                return
            offered = self._context.unwrap(auth_bytes).message
            # The largest message that either may send follows the layer; without a layer it says nothing.
            self._token = self._context.wrap(_NO_LAYER + offered[1:4], False).message
            self._is_last = True
        except self._error as error:
            raise ValueError(_text(error)) from None

    def is_done(self) -> bool:
        """Whether there is no token left."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Whether the broker has shown that it is the one that it should be."""
        return self._is_last


def _credentials(own: Mapping[str, str]) -> Any:
    """Those of the options; None for the usual ones."""
    import gssapi

    principal, keytab, tickets = (own.get(name) for name in ("principal", "keytab", "tickets"))
    if principal is keytab is tickets is None:
        return None
    store = {}
    if keytab is not None:
        # In memory: nobody else's tickets are used, or replaced.
        store = {"client_keytab": keytab, "ccache": "MEMORY:pykafkad"}
    elif tickets is not None:
        store = {"ccache": tickets}
    name = None if principal is None else gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    return gssapi.Credentials(name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], store=store or None)


def _text(error: Exception) -> str:
    return " ".join(str(error).split())
