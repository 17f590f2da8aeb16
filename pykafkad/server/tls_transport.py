"""TLS between a connection and its socket: ciphertext outside, the connection's bytes inside.

OpenSSL works on memory here (`ssl.SSLObject`): the transport reads ciphertext from the socket, has it decrypted into
the reactor's buffer, and sends what was encrypted. Nothing blocks, and the reactor sees a transport like any other.
Only a broker with a listener that encrypts imports this module.

A stranger is given nothing. Until its first record is here, whole and the beginning of a TLS handshake, it has no more
than the bytes that it sent; a handshake has a bound on its bytes and an end in time, few of them go on in one turn of
the loop, and not too many at a time (`tls_endpoint.py`). Renegotiation is refused (`tls_settings.py`)."""

from __future__ import annotations

import ssl

from pykafkad.log.file_slice import FileSlice
from pykafkad.server.certificate_names import subject
from pykafkad.server.greetings import KNOWN_GREETINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

    from pykafkad.server.connection import Chunk, Connection
    from pykafkad.server.reactor import Reactor
    from pykafkad.server.tls_endpoint import TlsEndpoint

CIPHERTEXT_BYTES = 128 * 1024
"""At most so much is taken from a socket at once."""

RECORD_BYTES = 5 + 16 * 1024 + 256
"""The largest record: header, payload, and what encryption adds."""

_PIECE_BYTES = 64 * 1024
"""So much is encrypted at once; it leaves in one send."""

FLUSH_BYTES = 512 * 1024
"""A connection gets at most so much of a turn's encrypting, so that a large fetch does not starve the others."""

HANDSHAKE_BYTES = 256 * 1024
"""A client's part of the handshake is shorter: a greeting and, where it is asked for, a chain of certificates."""

_HEADER_BYTES = 5
_GREETING_BYTES = 16 * 1024
_HANDSHAKE_RECORD = 0x16
_CLIENT_HELLO = 0x01

_REASONS = {
    "NO_SHARED_CIPHER": "no cipher suite that both sides allow",
    "UNSUPPORTED_PROTOCOL": "the peer's TLS versions are not among ssl.enabled.protocols",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer showed no certificate, and ssl.client.auth requires one",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust this broker's certificate (unknown authority)",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer does not accept this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not accept this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer says that this broker's certificate has expired",
}
"""OpenSSL's names of the commonest failures, in words."""


class TlsTransport:
    """A socket with TLS, the server's side. For the attributes see `PlainTransport`."""

    __slots__ = (
        "_endpoint",
        "_first",
        "_handshake_bytes",
        "_incoming",
        "_is_broken",
        "_is_ended",
        "_is_open",
        "_poller",
        "_tls",
        "_unsent",
        "connection",
        "fileno",
        "interest",
        "last_active",
        "queued",
        "reactor",
        "socket",
    )

    def __init__(
        self, endpoint: TlsEndpoint, reactor: Reactor, connected: socket, connection: Connection, now: float
    ) -> None:
        self.reactor = reactor
        self.socket = connected
        self.fileno = connected.fileno()
        self.connection = connection
        self.interest = 0
        self.queued = False
        self.last_active = now
        self._endpoint = endpoint
        self._poller = reactor.buffered_poller()
        self._first = b""
        """The beginning of the peer's first record, until it is whole."""
        self._handshake_bytes = 0
        self._incoming: ssl.MemoryBIO | None = None
        self._tls: ssl.SSLObject | None = None
        self._is_open = False
        """Whether the handshake is done."""
        self._is_broken = False
        """Whether TLS has failed: nothing can be said any more, not even good-bye."""
        self._is_ended = False
        """Whether the peer has said that it says nothing more."""
        self._unsent: memoryview | None = None
        """Ciphertext that the socket did not take. It stands at the front of the outbox."""

    # --- bytes in -----------------------------------------------------------------------------------------------

    def recv_into(self, buffer: memoryview) -> int:
        """Read plaintext; 0 at the peer's end. Raises BlockingIOError while there is none, OSError as the socket."""
        if not self._is_open:
            self._shake_hands()
        elif self._is_ended:
            return 0
        tls, incoming = self._tls, self._incoming
        assert tls is not None and incoming is not None
        if incoming.pending or tls.pending():
            # What came with the handshake, or what there was no room for. The socket's turn comes after it.
            self._poller.look_again(self)
            count = 0
        else:
            asked = min(max(len(buffer), RECORD_BYTES), CIPHERTEXT_BYTES)
            count = self.socket.recv_into(self._endpoint.ciphertext, asked)
            if count == 0:
                return 0
            if count == asked:
                self._poller.look_again(self)
        length = self._decrypt(tls, incoming, buffer, count)
        if incoming.pending or tls.pending() or self._is_ended:
            self._poller.keeps(self)
        else:
            self._poller.keeps_nothing(self)
        if length == 0 and not self._is_ended:
            raise BlockingIOError
        return length

    def _decrypt(self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, buffer: memoryview, count: int) -> int:
        """Decrypt what is kept, then `count` bytes of new ciphertext, as far as there is room; the bytes of plaintext.
        What there is no room for is kept: at most two records."""
        endpoint = self._endpoint
        room = len(buffer)
        length = position = 0
        try:
            while not self._is_ended:
                if length < room and (incoming.pending or tls.pending()):
                    try:
                        read: Any = tls.read(room - length, buffer[length:] if length else buffer)
                    except ssl.SSLWantReadError:
                        # The beginning of a record is inside now.
                        continue
                    length += read
                    self._is_ended = read == 0
                elif position < count:
                    # Fed by the record: the memory behind it grows to the most that it ever held, and stays.
                    end = count if length == room else min(position + RECORD_BYTES, count)
                    incoming.write(endpoint.ciphertext[position:end])
                    position = end
                else:
                    break
        except ssl.SSLZeroReturnError:
            self._is_ended = True
        except ssl.SSLError as error:
            self._fail("TLS failed", error)
            raise BlockingIOError from None
        if endpoint.outgoing.pending:
            # An answer to what is no data, such as a change of keys.
            self._send_at_once(endpoint.outgoing.read())
        return length

    # --- the handshake ------------------------------------------------------------------------------------------

    def _shake_hands(self) -> None:
        """Go on with the handshake. Raises BlockingIOError if it is not done then."""
        endpoint = self._endpoint
        tls = self._tls
        if not endpoint.may_step(self._poller.rounds):
            self._poller.take_turns(self, is_last=tls is None)
            raise BlockingIOError
        asked = RECORD_BYTES - len(self._first)
        count = self.socket.recv_into(endpoint.ciphertext, asked)
        if count == 0:
            raise ConnectionAbortedError(0, "ended by the peer in its TLS handshake")
        if count == asked:
            self._poller.look_again(self)
        if tls is None:
            tls = self._greet(bytes(endpoint.ciphertext[:count]))
        else:
            self._handshake_bytes += count
            assert self._incoming is not None
            self._incoming.write(endpoint.ciphertext[:count])
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
        self._opened(tls)

    def _greet(self, data: bytes) -> ssl.SSLObject:
        """Take the peer's first bytes; when its first record is whole, the TLS side that they begin. Raises
        BlockingIOError before that, and for what is not TLS."""
        first = self._first = self._first + data
        problem = greeting_problem(first)
        if problem is not None:
            self._is_broken = True
            self.connection.close(problem)
            raise BlockingIOError
        if len(first) < _HEADER_BYTES or len(first) < _HEADER_BYTES + int.from_bytes(first[3:5], "big"):
            raise BlockingIOError
        self._first = b""
        self._handshake_bytes = len(first)
        incoming = self._incoming = ssl.MemoryBIO()
        tls = self._tls = self._endpoint.secured(self, incoming)
        incoming.write(first)
        return tls

    def _opened(self, tls: ssl.SSLObject) -> None:
        """The handshake is done: the certificate says who the peer is. Raises BlockingIOError for one without a
        name."""
        self._is_open = True
        self._endpoint.ended(self)
        rules = self._endpoint.rules
        certificate = None if rules is None else tls.getpeercert(binary_form=True)
        if rules is None or certificate is None:
            return
        try:
            name = subject(certificate)
        except ValueError as error:
            self.connection.close(f"a client's certificate that cannot be read: {error}")
            raise BlockingIOError from None
        principal = rules.name(name)
        if principal is None:
            self.connection.close(f"no rule of ssl.principal.mapping.rules fits the certificate of {name}")
            raise BlockingIOError
        self.connection.session.identify(f"User:{principal}")

    def _fail(self, what: str, error: ssl.SSLError | None) -> None:
        """TLS can't go on: tell the peer, if it listens, and end the connection."""
        alert = self._endpoint.outgoing.read()
        if self._unsent is None and not self._is_broken:
            try:
                self.socket.send(alert)
            except OSError:
                pass
        self._is_broken = True
        self.connection.close(what if error is None else f"{what}: {reason(error)}")

    # --- bytes out ----------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> int:
        """Everything leaves by `flush`."""
        return 0

    def flush(self, outbox: list[Chunk]) -> int:
        """Encrypt and send what the peer takes, as `PlainTransport.flush` does. Ciphertext that the socket did not take
        stands at the front of the outbox afterwards."""
        share = FLUSH_BYTES
        from_files = 0
        while outbox:
            if self._unsent is not None:
                data: bytes | memoryview = self._unsent
                del outbox[0]
                self._unsent = None
            elif share <= 0:
                break
            else:
                plaintext, of_files = _taken(outbox)
                share -= len(plaintext)
                from_files += of_files
                data = self._encrypted(plaintext)
            if not self._sent(data, outbox):
                break
        return from_files

    def _encrypted(self, plaintext: bytes | bytearray | memoryview) -> bytes:
        tls, outgoing = self._tls, self._endpoint.outgoing
        if tls is None or not self._is_open or self._is_broken:
            raise ConnectionAbortedError(0, "nothing leaves without TLS")
        written = 0
        view = memoryview(plaintext)
        try:
            while written < len(view):
                written += tls.write(view[written:])
        except ssl.SSLError as error:
            self._is_broken = True
            raise ConnectionAbortedError(0, f"TLS failed: {reason(error)}") from None
        finally:
            data = outgoing.read()
        return data

    def _sent(self, data: bytes | memoryview, outbox: list[Chunk]) -> bool:
        """Whether the socket took all of `data`; if not, the rest stands at the front of the outbox. Raises OSError."""
        if not data:
            return True
        try:
            sent = self.socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent == len(data):
            return True
        self._unsent = memoryview(data)[sent:]
        outbox.insert(0, self._unsent)
        return False

    def _send_at_once(self, data: bytes) -> None:
        """Send ciphertext that is no data of the connection's, behind what the socket did not take before."""
        outbox = self.connection.outbox
        if self._unsent is not None and outbox:
            self._unsent = outbox[0] = memoryview(bytes(self._unsent) + data)
        elif not self._sent(data, outbox):
            self.send_soon()

    def close(self) -> None:
        """Say good-bye, if the peer can be told, and close the socket."""
        tls = self._tls
        if tls is not None and self._is_open and not self._is_broken and self._unsent is None:
            try:
                tls.unwrap()
            except (ssl.SSLError, ValueError):
                # It waits for the peer's good-bye; nobody here does.
                pass
            try:
                self.socket.send(self._endpoint.outgoing.read())
            except OSError:
                pass
        self._endpoint.ended(self)
        self._tls = self._incoming = None
        self.socket.close()

    # --- what the connection asks for ---------------------------------------------------------------------------

    def send_soon(self) -> None:
        """Look at the outbox at the end of the turn."""
        self.reactor.send_soon(self)

    def resume_soon(self) -> None:
        """Serve what the connection has kept."""
        self.reactor.resume_soon(self)


def greeting_problem(first: bytes) -> str | None:
    """Why a connection that begins with these bytes can't become a TLS one, as a sentence; None if it still can."""
    if first[0] != _HANDSHAKE_RECORD:
        if first[0] != 0 and len(first) < 4:
            return None
        for greeting, what in KNOWN_GREETINGS:
            if first.startswith(greeting):
                return f"not TLS: {what} on a listener with TLS"
        if first[0] == 0:
            return "not TLS: a request in plain text on a listener with TLS; set the client's security.protocol"
        return "not TLS: its first bytes begin no TLS handshake"
    if len(first) >= 2 and first[1] != 3:
        return "not TLS: its first bytes begin no TLS handshake"
    if len(first) >= _HEADER_BYTES and not 4 <= int.from_bytes(first[3:5], "big") <= _GREETING_BYTES:
        return "a TLS record of an impossible size"
    if len(first) > _HEADER_BYTES and first[5] != _CLIENT_HELLO:
        return "a TLS handshake that does not begin with the client's greeting"
    if len(first) >= _HEADER_BYTES + 4 and int.from_bytes(first[6:9], "big") > _GREETING_BYTES:
        return f"a TLS greeting of more than {_GREETING_BYTES} bytes"
    return None


def reason(error: ssl.SSLError) -> str:
    """OpenSSL's reason in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate is not trusted ({error.verify_message})"
    name = getattr(error, "reason", None) or str(error).partition(" (_ssl")[0]
    return _REASONS.get(name, name.replace("_", " ").lower())


def _taken(outbox: list[Chunk]) -> tuple[bytes | bytearray | memoryview, int]:
    """Take the next piece to be encrypted from the front of the outbox, with slices of files read; and how much of it
    came from files. Raises StorageFailure, and LogCut for what was cut off."""
    pieces: list[bytes | bytearray | memoryview] = []
    room = _PIECE_BYTES
    from_files = 0
    index = 0
    while index < len(outbox) and room > 0:
        chunk = outbox[index]
        size = len(chunk)
        if size > room:
            first, rest = _cut(chunk, room)
            outbox[index] = rest
        else:
            first = chunk
            index += 1
        room -= size
        if isinstance(first, FileSlice):
            from_files += len(first)
            first = first.pread()
        pieces.append(first)
    del outbox[:index]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces), from_files


def _cut(chunk: Chunk, size: int) -> tuple[Chunk, Chunk]:
    """The first `size` bytes of a chunk, and the rest."""
    if isinstance(chunk, FileSlice):
        return chunk.up_to(size), chunk.after(size)
    view = memoryview(chunk)
    return view[:size], view[size:]
