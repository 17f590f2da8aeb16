"""What the connections of a listener with TLS share: keys and rules, the room for ciphertext, and the handshakes.

A handshake that has begun holds some 44 KB in OpenSSL, however little the stranger at its other end has sent or ever
will. So there is a bound on them: beyond it the oldest of the address that has most of them is ended."""

from __future__ import annotations

import ssl

from pykafkad.server.buffered_poller import HANDSHAKES_PER_TURN
from pykafkad.server.tls_transport import CIPHERTEXT_BYTES, TlsTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from pykafkad.server.certificate_names import PrincipalRules
    from pykafkad.server.connection import Connection
    from pykafkad.server.reactor import Reactor
    from pykafkad.server.tls_settings import ServerContext

HANDSHAKES_MAX = 320
"""So many, and the rest that a thousand connections take, are less than 20 MB. Clients that mean it finish theirs in
the time that two packets need to them and back: a broker does not begin as many in that time."""

_NEVER = float("inf")


class TlsEndpoint:
    """Keys and rules of one listener, and the handshakes that go on there."""

    __slots__ = (
        "_begun",
        "_begun_count",
        "_handshakes",
        "_round",
        "_steps",
        "_timeout_seconds",
        "ciphertext",
        "context",
        "next_tick",
        "outgoing",
        "rules",
        "sharers",
    )

    def __init__(self, context: ServerContext, rules: PrincipalRules | None, timeout_seconds: float) -> None:
        """`rules` make principals of certificates; without them the principal is somebody else's business, as with
        SASL. A handshake ends after `timeout_seconds`."""
        self.context = context
        """The keys and the trust of connections from now on; those that live keep what they began with."""
        self.rules = rules
        self.sharers = 1
        """Among so many clusters of the process `HANDSHAKES_MAX` are shared out evenly."""
        self._timeout_seconds = timeout_seconds
        self.ciphertext = memoryview(bytearray(CIPHERTEXT_BYTES))
        self.outgoing = ssl.MemoryBIO()
        """What OpenSSL writes for any of the connections. Who had it write takes all of it at once."""
        self._handshakes: dict[TlsTransport, float] = {}
        self._begun: dict[str, dict[TlsTransport, None]] = {}
        """Those that OpenSSL knows of, by the peer's address, oldest first."""
        self._begun_count = 0
        self.next_tick = _NEVER
        """The monotonic second at which the oldest handshake has taken too long."""
        self._round = self._steps = 0

    def transport(self, reactor: Reactor, connected: socket, connection: Connection, now: float) -> TlsTransport:
        """The transport of a connection that was accepted."""
        transport = TlsTransport(self, reactor, connected, connection, now)
        self._handshakes[transport] = now + self._timeout_seconds
        if self.next_tick == _NEVER:
            self.next_tick = now + self._timeout_seconds
            reactor.plan_tick(self.next_tick)
        return transport

    def secured(self, transport: TlsTransport, incoming: ssl.MemoryBIO) -> ssl.SSLObject:
        """The TLS side of a connection, whose handshake begins."""
        most_handshakes = max(1, HANDSHAKES_MAX // self.sharers)
        if self._begun_count >= most_handshakes:
            most = max(self._begun.values(), key=len)
            oldest = next(iter(most))
            self.ended(oldest)
            oldest.connection.close(f"more than {most_handshakes} TLS handshakes, and its address has most of them")
        self._begun.setdefault(_host(transport), {})[transport] = None
        self._begun_count += 1
        return self.context.wrap_bio(incoming, self.outgoing, server_side=True)

    def may_step(self, poll_round: int) -> bool:
        """Whether another handshake may go on in this turn of the loop."""
        if self._round != poll_round:
            self._round, self._steps = poll_round, 0
        self._steps += 1
        return self._steps <= HANDSHAKES_PER_TURN

    def is_shaking(self, connection: Connection) -> bool:
        """Whether the handshake of a connection goes on."""
        return connection.transport in self._handshakes

    def ended(self, transport: TlsTransport) -> None:
        """The handshake of a transport is over, well or not."""
        self._handshakes.pop(transport, None)
        host = _host(transport)
        of_host = self._begun.get(host)
        if of_host is not None and transport in of_host:
            del of_host[transport]
            self._begun_count -= 1
            if not of_host:
                del self._begun[host]

    def tick(self, now: float) -> None:
        """End the handshakes that take too long: they began in the order in which they stand."""
        self.next_tick = _NEVER
        while self._handshakes:
            transport, deadline = next(iter(self._handshakes.items()))
            if now < deadline:
                self.next_tick = deadline
                return
            self.ended(transport)
            transport.connection.close(f"the TLS handshake was not finished in {self._timeout_seconds:g} s")


def _host(transport: TlsTransport) -> str:
    return transport.connection.peer.rpartition(":")[0]
