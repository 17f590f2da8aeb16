"""Addresses: a host and a port become one bound socket for each address of the host, and a peer's becomes text."""

from __future__ import annotations

import socket

from pykafkad.disk import SPARE_DESCRIPTORS
from pykafkad.platform_calls import descriptor_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOOPBACK = ("127.0.0.1", "::1")
_DRAWS = 16
_SHARE_OF_FILES = 8

_SEND_BUFFER_BYTES = 256 * 1024
"""Large fetches leave a third faster than with Kafka's 100 KiB, or with a buffer that grows, where congestion control
paces."""


def bind_all(
    host: str, port: int, send_buffer_bytes: int | None, backlog: int, receive_buffer_bytes: int = -1
) -> list[socket.socket]:
    """Bind every address of `host` (all of the machine when empty) to one port; 0 picks one that is free on all of
    them.

    `send_buffer_bytes` and `receive_buffer_bytes` are what each connection gets; not above 0: the system's, which
    grows; None: what is best for the address. Raises OSError with the address in its text."""
    addresses = _addresses(host, port)
    for draw in range(_DRAWS):
        bound: list[socket.socket] = []
        chosen = port
        try:
            for family, address in addresses:
                where = (address[0], chosen, *address[2:])
                bound.append(_bind(family, where, send_buffer_bytes, backlog, receive_buffer_bytes))
                chosen = bound[0].getsockname()[1]
        except OSError as error:
            for each in bound:
                each.close()
            # With port 0 the port that the first address got may be taken on the second: draw again.
            if port != 0 or not bound or draw == _DRAWS - 1:
                raise OSError(error.errno, f"cannot listen on {host or '*'}:{port}: {error.strerror}") from None
        else:
            break
    return bound


def reserved_port(host: str) -> int:
    """A port of `host`, an address as digits, for somebody who binds it soon. For a minute the system gives it to
    nobody who asks for any port: a connection at it has just ended. Raises OSError."""
    with socket.socket() as server, socket.socket() as client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, 0))
        server.listen(1)
        client.connect(server.getsockname())
        accepted, _ = server.accept()
        # This side ends it first, so that the state that is left of the connection is that of this port.
        accepted.close()
        port: int = server.getsockname()[1]
    return port


def refusal(fd: int, connections: int) -> dict[str, object] | None:
    """Why a connection with this descriptor, accepted beside so many others, can't be kept: reason and limit, or None.

    Descriptors run out for files too: of those that this process may have, an eighth and the spare ones are no
    connection's, or clients that come and stay would keep logs from being opened. Where it is files that took the
    others, as many connections as an eighth are let in, but for half of the spare ones: who connects anew is served.
    The system gives out the lowest that is free."""
    if fd > SPARE_DESCRIPTORS:
        limit = descriptor_limit()
        share = limit // _SHARE_OF_FILES
        if fd >= limit - share - SPARE_DESCRIPTORS and (connections >= share or fd >= limit - SPARE_DESCRIPTORS // 2):
            return {"reason": "open files", "limit": limit}
    return None


def address_text(address: tuple[Any, ...]) -> str:
    """A peer's address as people write it; IPv4 as such, also where it came through an IPv6 socket."""
    return f"{host_text(address)}:{address[1]}"


def host_text(address: tuple[Any, ...]) -> str:
    """The same without the port."""
    host = str(address[0])
    if host.startswith("::ffff:"):
        host = host[7:]
    return f"[{host}]" if ":" in host else host


def _addresses(host: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
    if not host:
        family = socket.AF_INET6 if socket.has_ipv6 and _ipv6_works() else socket.AF_INET
        return [(family, ("::", port, 0, 0) if family == socket.AF_INET6 else ("0.0.0.0", port))]
    found = {}
    try:
        # As bytes: text would go through the IDNA codec, which costs 3 ms to import and a host name here never needs.
        name = host.encode() if host.isascii() else host
        answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
    for family, _, _, _, address in answers:
        if family == socket.AF_INET6 and not _ipv6_works():
            continue
        found[(family, address[0])] = (family, address)
    return sorted(found.values(), key=lambda entry: entry[0] != socket.AF_INET)


def _bind(
    family: int, address: tuple[Any, ...], send_buffer_bytes: int | None, backlog: int, receive_buffer_bytes: int
) -> socket.socket:
    server = socket.socket(family, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit all of these on Linux: no call per connection.
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        unpaced = address[0] in _LOOPBACK and _use_window_alone(server)
        if send_buffer_bytes is None:
            send_buffer_bytes = -1 if unpaced else _SEND_BUFFER_BYTES
        if send_buffer_bytes > 0:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        if receive_buffer_bytes > 0:
            # Before `listen`: the window of a connection is scaled by it when it is accepted.
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        if family == socket.AF_INET6:
            # "::" takes IPv4 as well; a named address keeps to its own family, its IPv4 twin is bound beside it.
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address[0] == "::" else 1)
        server.bind(address)
        server.listen(max(backlog, 1024))
        server.setblocking(False)
    except OSError:
        server.close()
        raise
    return server


def _use_window_alone(server: socket.socket) -> bool:
    """Have the connections of a loopback listener paced by nothing but their windows; False where the system does not
    let us.

    Nothing is lost on the way to the same machine, and a congestion control that paces by timers (BBR, the default of
    many systems) takes three times the processor for large answers there. Reno is permitted everywhere. Without pacing
    a send buffer that grows with the window takes large answers whole: a tenth less processor than with a bounded one.
    """
    try:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    except (AttributeError, OSError):
        return False
    return True


def _ipv6_works() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
