"""A command's login, tried before a client library is asked: a library retries what was refused until a time-out, and
can't say then that it was the login."""

from __future__ import annotations

from collections import namedtuple
from struct import Struct, error as StructError

from pykafkad import errors
from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Protocol

    class Exchange(Protocol):
        """The tokens of a login: kafka-python's `SaslMechanism`."""

        def auth_bytes(self) -> bytes:
            """The next token."""

        def receive(self, auth_bytes: bytes) -> object:
            """The broker's answer to it. Raises ValueError if it is not the one that knows the password."""

        def is_done(self) -> bool:
            """Whether there is no token left."""


Login = namedtuple("Login", ("user", "mechanism", "exchange"))
Login.__doc__ = """Who logs in, by which mechanism, and the `Exchange` of its tokens."""

ANSWER_BYTES_MAX = 1 << 20
_SIZE = Struct(">i")
_REQUEST = Struct(">hhih")  # key, version, correlation id, no client id
_STRING = Struct(">h")
_HANDSHAKE_ANSWER = Struct(">ihi")  # correlation id, error, how many mechanisms
_TOKEN_ANSWER = Struct(">ihh")  # correlation id, error, length of its message
_METADATA, _SASL_HANDSHAKE, _SASL_AUTHENTICATE = 3, 17, 36


def try_login(connected: socket.socket, address: str, login: Login | None) -> None:
    """Log in on a connection to a broker at `address`, or (without a login) see whether it serves strangers. Raises
    `Failure` with what it refuses, and OSError for a connection that breaks."""
    try:
        if login is None:
            # No topics, in a version that every broker knows.
            if not _ask(connected, _METADATA, 1, _SIZE.pack(0)):
                raise Failure(f"the broker at {address} wants a login: name one with --client-config")
        else:
            _shake_hands(connected, address, login.mechanism)
            _exchange(connected, address, login)
    except StructError:
        raise Failure(f"what answers at {address} does not speak Kafka's protocol") from None


def _shake_hands(connected: socket.socket, address: str, mechanism: str) -> None:
    name = mechanism.encode()
    answer = _ask(connected, _SASL_HANDSHAKE, 1, _STRING.pack(len(name)) + name)
    if not answer:
        raise Failure(f"the broker at {address} ended the connection when it was asked for a login")
    _, error, count = _HANDSHAKE_ANSWER.unpack_from(answer)
    if error == errors.ILLEGAL_SASL_STATE:
        raise Failure(f"the broker at {address} wants no login there: set security.protocol to PLAINTEXT or SSL")
    offered: list[str] = []
    position = _HANDSHAKE_ANSWER.size
    while len(offered) < count:
        (length,) = _STRING.unpack_from(answer, position)
        position += _STRING.size + max(length, 0)
        offered.append(answer[position - max(length, 0) : position].decode("utf-8", "replace"))
    if error:
        raise Failure(f"the broker at {address} offers no login by {mechanism}, but by {', '.join(offered)}")


def _exchange(connected: socket.socket, address: str, login: Login) -> None:
    exchange: Exchange = login.exchange
    while not exchange.is_done():
        token = exchange.auth_bytes()
        answer = _ask(connected, _SASL_AUTHENTICATE, 0, _SIZE.pack(len(token)) + token)
        refused = f"the broker at {address} refuses the login of {login.user} by {login.mechanism}"
        if not answer:
            raise Failure(f"{refused}: it ended the connection")
        _, error, length = _TOKEN_ANSWER.unpack_from(answer)
        position = _TOKEN_ANSWER.size + max(length, 0)
        if error:
            message = answer[_TOKEN_ANSWER.size : position].decode("utf-8", "replace")
            raise Failure(f"{refused}: {message or errors.name(error)}")
        (size,) = _SIZE.unpack_from(answer, position)
        position += _SIZE.size
        try:
            exchange.receive(answer[position : position + max(size, 0)])
        except (ValueError, KeyError) as wrong:
            raise Failure(f"{refused}: what it says of itself is not right ({wrong})") from None


def _ask(connected: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """The answer to a request, from its correlation id on; empty if the broker ends the connection instead."""
    request = _REQUEST.pack(key, version, key, -1) + body
    try:
        connected.sendall(_SIZE.pack(len(request)) + request)
        (size,) = _SIZE.unpack(received_bytes(connected, _SIZE.size).ljust(_SIZE.size, b"\0"))
        data = received_bytes(connected, min(size, ANSWER_BYTES_MAX))
    except ConnectionError:
        # Who ends a connection with bytes that it has not read takes back what it has sent.
        return b""
    return data if len(data) == size else b""


def received_bytes(connected: socket.socket, size: int) -> bytes:
    """So many bytes; fewer if the peer ends the connection before."""
    data = b""
    while len(data) < size and (more := connected.recv(min(size - len(data), 65536))):
        data += more
    return data
