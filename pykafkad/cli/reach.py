"""Looks whether a broker answers, before a client library is asked: a library retries what can't work until a time-out
and then can't say what was wrong."""

from __future__ import annotations

import socket
from struct import Struct, error as StructError

from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from pykafkad.cli.login import Login

TIMEOUT_S = 5.0
DEFAULT_PORT = 9092
ANSWER_BYTES_MAX = 1 << 20
_CORRELATION_ID = 0x706B6166
_HEAD = Struct(">ii")  # size, correlation id
# ApiVersions version 0 (KIP-35) without a client id, which every broker answers before anything else.
_REQUEST = Struct(">ihhih").pack(10, 18, 0, _CORRELATION_ID, -1)

_NO_KAFKA = "what answers there does not speak Kafka's protocol"
_NOT_KAFKA = ((b"HTTP", "an HTTP server"), (b"SSH-", "an SSH server"), (b"\x15\x03", "a TLS listener"))


def reach(
    bootstrap: str, tls_rules: ssl.SSLContext | None = None, login_at: Callable[[str], Login] | None = None
) -> None:
    """Return when one of the addresses (`HOST:PORT`, with commas) answers as Kafka does, by TLS if there are rules for
    that, and lets us in; `login_at(host)` is how we log in. Otherwise raise a `Failure` that says of each what was
    wrong with it, or of the first that answers why it does not let us in."""
    wrong = []
    for address in bootstrap.split(","):
        reason = why_unreachable(address, tls_rules, login_at)
        if reason is None:
            return
        wrong.append(f"{address}: {reason}" if "," in bootstrap else reason)
    raise Failure(
        f"no broker answers at {bootstrap} ({'; '.join(wrong)}); start one with `pykafkad serve` or name another with "
        "--bootstrap"
    )


def why_unreachable(
    address: str, tls_rules: ssl.SSLContext | None = None, login_at: Callable[[str], Login] | None = None
) -> str | None:
    """What is wrong with the broker at `HOST[:PORT]`, or None if it answers. Raises `Failure` for one that does not let
    us in."""
    host, port = address, DEFAULT_PORT
    if ":" in address and not address.endswith("]"):
        host, _, text = address.rpartition(":")
        port = int(text)
    name = host.strip("[]")
    try:
        with socket.create_connection((name, port), TIMEOUT_S) as connected:
            login = None if login_at is None else login_at(name)
            if tls_rules is not None:
                return _why_unreachable_by_tls(connected, name, tls_rules, address, login)
            ended = "it ended the connection without an answer; one that wants TLS does that, see --client-config"
            return _why_not_served(connected, ended, address, login)
    except UnicodeError:
        return f"{name} is no name of a host"
    except socket.gaierror:
        return f"there is no host named {name}"
    except TimeoutError:
        return f"no answer within {TIMEOUT_S:g} s"
    except OSError as error:
        return (error.strerror or str(error)).lower()


def _why_unreachable_by_tls(
    connected: socket.socket, name: str, rules: ssl.SSLContext, address: str, login: Login | None
) -> str | None:
    from pykafkad.cli import tls

    try:
        with tls.encrypted(connected, name, rules) as encrypted:
            return _why_not_served(encrypted, "it ended the connection without an answer", address, login)
    except OSError as error:
        if reason := tls.reason(error):
            return reason
        raise


def _why_not_served(connected: socket.socket, ended: str, address: str, login: Login | None) -> str | None:
    """As `why_unreachable`, on a connection; `ended` is the reason if that ends without an answer."""
    from pykafkad.cli import login as logins

    connected.sendall(_REQUEST)
    head = _received(connected)
    if not head:
        return ended
    if reason := _unlike_kafka(head):
        return reason
    left = _HEAD.unpack(head)[0] - 4
    if len(logins.received_bytes(connected, left)) < left:
        return _NO_KAFKA
    logins.try_login(connected, address, login)
    return None


def _received(connected: socket.socket) -> bytes:
    """The first bytes of the answer; fewer than a head if the peer ends the connection before."""
    data = b""
    while len(data) < _HEAD.size and (more := connected.recv(_HEAD.size - len(data))):
        data += more
    return data


def _unlike_kafka(answer: bytes) -> str | None:
    for start, what in _NOT_KAFKA:
        if answer.startswith(start):
            return f"{what} answers there"
    try:
        size, correlation_id = _HEAD.unpack(answer)
    except StructError:
        size, correlation_id = 0, 0
    if correlation_id != _CORRELATION_ID or not 4 <= size <= ANSWER_BYTES_MAX:
        return _NO_KAFKA
    return None
