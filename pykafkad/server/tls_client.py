"""TLS of the connections that begin here: the transport of a `Peer`, and what its settings make of it.

Kafka's settings are those of the listener that is reached: `ssl.truststore.*` says whom this node trusts,
`ssl.keystore.*` what it shows where the other side asks for a certificate, `ssl.endpoint.identification.algorithm`
whether the other's certificate must be for the host name that it was reached by (`https`, the default, or nothing).

Before each connection it is seen whether one of these settings or its file has changed: a certificate that was renewed
counts from the next connection, as at a listener (`tls_renewal.py`). What is not fit is told in the log once, and
connections go on with what there is."""

from __future__ import annotations

import ssl

from pykafkad.errors import ConfigError
from pykafkad.server import tls_renewal, tls_settings
from pykafkad.server.tls_transport import CIPHERTEXT_BYTES, HANDSHAKE_BYTES, RECORD_BYTES, TlsTransport
from pykafkad.settings.of_listener import ListenerSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.connection import Connection
    from pykafkad.server.logs import Logs
    from pykafkad.server.reactor import Reactor
    from pykafkad.server.transport import NewTransport

_ALGORITHM = "ssl.endpoint.identification.algorithm"


class TlsClient:
    """What the connections to one kind of listener share: keys, trust, and the room for ciphertext."""

    __slots__ = ("_made_of", "_read", "_unfit", "ciphertext", "context", "outgoing", "rules")

    def __init__(self, read: ListenerSettings) -> None:
        """`read` are the settings of the listener that is reached. Raises ConfigError."""
        self._read = read
        # Before the files are loaded: whoever changes them meanwhile is noticed by the next connection.
        self._made_of = _made_of(read)
        self._unfit: object = None
        self.context = _context(read)
        self.rules = None
        self.ciphertext = memoryview(bytearray(CIPHERTEXT_BYTES))
        self.outgoing = ssl.MemoryBIO()
        """What OpenSSL writes for any of the connections. Who had it write takes all of it at once."""

    def ended(self, transport: TlsTransport) -> None:
        """Peers end handshakes that take too long themselves."""

    def renew(self, logs: Logs) -> None:
        """Take what is new in the settings or in the files that they name. A certificate is for the names of the one
        before, as that of the listener is (`ssl.allow.dn.changes`)."""
        try:
            made_of = _made_of(self._read)
            if made_of in (self._made_of, self._unfit):
                return
            # Until something else changes it is looked at no more.
            self._unfit = made_of
            context = _context(self._read)
            if self.context.own_certificate and context.own_certificate:
                tls_renewal.check_names(self._read, self.context.own_certificate, context.own_certificate)
            self.context = context
        except ConfigError as error:
            logs.error("server", "peer-certificates-not-renewed", reason=error)
        else:
            self._made_of, self._unfit = made_of, None
            logs.info("server", "peer-certificates-renewed")

    def transport(self, host_name: str, logs: Logs) -> NewTransport:
        """What makes the transport of a connection to a host."""
        self.renew(logs)

        def new(reactor: Reactor, connected: socket, connection: Connection, now: float) -> TlsClientTransport:
            return TlsClientTransport(self, host_name, reactor, connected, connection, now)

        return new


class TlsClientTransport(TlsTransport):
    """A socket with TLS, the client's side. The connection's owner hears that it is `connected` when the other side has
    shown who it is."""

    __slots__ = ()

    def __init__(
        self,
        client: TlsClient,
        host_name: str,
        reactor: Reactor,
        connected: socket,
        connection: Connection,
        now: float,
    ) -> None:
        endpoint: Any = client
        super().__init__(endpoint, reactor, connected, connection, now)
        incoming = self._incoming = ssl.MemoryBIO()
        try:
            tls = self._tls = client.context.wrap_bio(incoming, client.outgoing, server_hostname=host_name)
            tls.do_handshake()
        except ssl.SSLWantReadError:
            # The greeting is written.
            pass
        except ValueError:
            raise ConnectionAbortedError(0, f"{host_name!r} is no name that a certificate may have") from None
        except ssl.SSLError as error:
            # Its errno is OpenSSL's, none of the system's.
            raise ConnectionAbortedError(0, f"the TLS handshake cannot begin: {error}") from None
        self._send_at_once(client.outgoing.read())

    def _shake_hands(self) -> None:
        """Go on with the handshake. Raises BlockingIOError if it is not done then."""
        endpoint, tls, incoming = self._endpoint, self._tls, self._incoming
        assert tls is not None and incoming is not None
        count = self.socket.recv_into(endpoint.ciphertext, RECORD_BYTES)
        if count == 0:
            raise ConnectionAbortedError(0, "ended by the peer in its TLS handshake")
        if count == RECORD_BYTES:
            self._poller.look_again(self)
        self._handshake_bytes += count
        incoming.write(endpoint.ciphertext[:count])
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._handshake_bytes > HANDSHAKE_BYTES:
                self._fail(f"a TLS handshake of more than {HANDSHAKE_BYTES} bytes", None)
            self._send_at_once(endpoint.outgoing.read())
            raise BlockingIOError from None
        except ssl.SSLError as error:
            self._fail("the TLS handshake failed", error)
            raise BlockingIOError from None
        self._send_at_once(endpoint.outgoing.read())
        self._is_open = True
        self.connection.owner.connected(self.connection)
        if self._tls is None:
            # Whoever was told has closed it.
            raise BlockingIOError


def of_settings(settings: Settings, listener: str) -> TlsClient:
    """What connections to the listener of that name of other nodes share. Raises ConfigError."""
    return TlsClient(ListenerSettings(settings, listener))


def _context(read: ListenerSettings) -> tls_settings.ServerContext:
    algorithm = (read.value(_ALGORITHM) or "").strip().lower()
    if algorithm not in ("", "https"):
        raise ConfigError(f"{read.name(_ALGORITHM)}: {algorithm!r} is neither https nor empty")
    return tls_settings.client_context(read, checks_name=algorithm == "https")


def _made_of(read: ListenerSettings) -> object:
    """What tells whether the keys or the trust have changed. Raises ConfigError."""
    values = [read.value(name) for name in tls_renewal.STORES]
    return values, [tls_renewal.file_state(path) for path in tls_renewal.paths(read)]
