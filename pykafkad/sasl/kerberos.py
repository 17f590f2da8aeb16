"""GSSAPI (RFC 4752): the client shows a ticket of Kerberos for the broker.

The tokens of the first stage are those of the library that knows Kerberos (`Context`). Then broker and client agree on
a security layer, each in a wrapped token: one byte of layers and three of the largest message, here none (1) and 64 KB
as Java's; the client's has its choice, and the name that it wants to act as, which Kafka does not look at.

What Java's library refuses, replays too, gets Kafka's usual error. Where Java's stumbles, over a choice that is too
short, the connection ends without an answer, as Kafka's.
"""

from __future__ import annotations

from pykafkad.sasl.kerberos_names import NoName
from pykafkad.sasl.step import DONE, GOES_ON, REFUSED, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Context(Protocol):
        """One client's side of the library. All may take time, and raise KerberosFailure."""

        @property
        def is_complete(self) -> bool:
            """Whether it is known who the client is."""

        def step(self, token: bytes) -> bytes | None:
            """Take a token; the answer, None for none."""

        def client(self) -> str:
            """Who the client is: `user@REALM`."""

        def wrap(self, message: bytes) -> bytes:
            """A message for the client, with its integrity protected."""

        def unwrap(self, token: bytes) -> bytes:
            """A message of the client."""

    class Acceptor(Protocol):
        """Who the broker is to its clients."""

        @property
        def default_realm(self) -> str:
            """That of this machine; empty without one."""

        def context(self) -> Context:
            """For a new client."""

    OpenAcceptor = Callable[[str | None, str], Acceptor]
    """`open(keytab, principal)`; without a `keytab` the usual one of the machine counts. Raises ConfigError."""

NO_LAYER = 1
"""The bit of authentication alone; the others would protect messages or hide them."""

MESSAGE_BYTES_MAX = 1 << 16
OFFERED = bytes([NO_LAYER]) + MESSAGE_BYTES_MAX.to_bytes(3, "big")


class KerberosFailure(Exception):
    """The library refuses a token. Its text is the reason, for the broker's log."""


class Gssapi:
    """One exchange. `user` is the short name of who has logged in; None if no rule makes one."""

    __slots__ = ("_context", "_is_offered", "_make", "_short_name", "user")

    is_by_token = False
    """Delegation tokens log in by SCRAM."""

    expires_ms = None
    """A login outlives its ticket, as in Kafka."""

    may_block = True
    """The library reads the keytab, and writes down what it has seen."""

    def __init__(self, make: Callable[[], Context], short_name: Callable[[str], str]) -> None:
        """`make` begins with a client, and `short_name` raises NoName."""
        self._make = make
        self._context: Context | None = None
        self._short_name = short_name
        self._is_offered = False
        self.user: str | None = ""

    def step(self, token: bytes) -> Step:
        """Takes a token of the library, an empty one that asks for the layers, or the choice of one."""
        try:
            if self._is_offered:
                return self._chosen(token)
            if self._context is None:
                self._context = self._make()
            context = self._context
            if context.is_complete:
                return _wrong("a token after the last") if token else self._offer()
            answer = context.step(token)
            if context.is_complete and not answer:
                return self._offer()
            return Step(GOES_ON, answer or b"")
        except KerberosFailure as failure:
            return _wrong(str(failure))

    def _offer(self) -> Step:
        self._is_offered = True
        assert self._context is not None
        return Step(GOES_ON, self._context.wrap(OFFERED))

    def _chosen(self, token: bytes) -> Step:
        assert self._context is not None
        choice = self._context.unwrap(token)
        if choice and not choice[0] & NO_LAYER:
            return _wrong("the client wants a security layer, and there is none")
        if len(choice) < len(OFFERED):
            reason = "the client's choice of a layer is too short"
            return Step(REFUSED, problem=reason, is_silent=True, reason=reason)
        client = self._context.client()
        try:
            self.user = self._short_name(client)
        except NoName as error:
            self.user = None
            return Step(DONE, None, reason=f"{client}: {error}")
        return Step(DONE, None)


def _wrong(reason: str) -> Step:
    return Step(REFUSED, reason=reason)
