"""Looks whether a broker answers, before a client library is asked: a library retries what can't work until a time-out
and then can't say what was wrong."""

from __future__ import annotations

import socket
from struct import Struct, error as StructError

from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

TIMEOUT_S = 5.0
DEFAULT_PORT = 9092
ANSWER_BYTES_MAX = 1 << 20
_CORRELATION_ID = 0x706B6166
_HEAD = Struct(">ii")  # size, correlation id
# ApiVersions version 0 (KIP-35) without a client id, which every broker answers before anything else.
_REQUEST = Struct(">ihhih").pack(10, 18, 0, _CORRELATION_ID, -1)

_NOT_KAFKA = ((b"HTTP", "an HTTP server"), (b"SSH-", "an SSH server"), (b"\x15\x03", "a TLS listener"))


def reach(bootstrap: str, tls_rules: ssl.SSLContext | None = None) -> None:
    """Return when one of the addresses (`HOST:PORT`, with commas) answers as Kafka does, by TLS if there are rules for
    that; otherwise raise a `Failure` that says of each what was wrong with it."""
    wrong = []
    for address in bootstrap.split(","):
        reason = why_unreachable(address, tls_rules)
        if reason is None:
            return
        wrong.append(f"{address}: {reason}" if "," in bootstrap else reason)
    raise Failure(
        f"no broker answers at {bootstrap} ({'; '.join(wrong)}); start one with `pykafkad serve` or name another with "
        "--bootstrap"
    )


def why_unreachable(address: str, tls_rules: ssl.SSLContext | None = None) -> str | None:
    """What is wrong with the broker at `HOST[:PORT]`, or None if it answers."""
    host, port = address, DEFAULT_PORT
    if ":" in address and not address.endswith("]"):
        host, _, text = address.rpartition(":")
        port = int(text)
    name = host.strip("[]")
    try:
        with socket.create_connection((name, port), TIMEOUT_S) as connected:
            if tls_rules is not None:
                return _why_unreachable_by_tls(connected, name, tls_rules)
            connected.sendall(_REQUEST)
            return _unlike_kafka(_received(connected))
    except UnicodeError:
        return f"{name} is no name of a host"
    except socket.gaierror:
        return f"there is no host named {name}"
    except TimeoutError:
        return f"no answer within {TIMEOUT_S:g} s"
    except OSError as error:
        return (error.strerror or str(error)).lower()


def _why_unreachable_by_tls(connected: socket.socket, name: str, rules: ssl.SSLContext) -> str | None:
    from pykafkad.cli import tls

    try:
        with tls.encrypted(connected, name, rules) as encrypted:
            encrypted.sendall(_REQUEST)
            answer = _received(encrypted)
            return _unlike_kafka(answer) if answer else "it ended the connection without an answer"
    except OSError as error:
        if reason := tls.reason(error):
            return reason
        raise


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
    if not answer:
        return "it ended the connection without an answer; one that wants TLS does that, see --client-config"
    try:
        size, correlation_id = _HEAD.unpack(answer)
    except StructError:
        size, correlation_id = 0, 0
    if correlation_id != _CORRELATION_ID or not 0 < size <= ANSWER_BYTES_MAX:
        return "what answers there does not speak Kafka's protocol"
    return None
