"""What a reactor asks of the operating system, in one place that the simulator replaces: descriptors that are ready,
sockets that listen and that connect, and files that leave through them."""

from __future__ import annotations

import errno
import socket

from pykafkad.platform_calls import new_poller, new_waker, send_slice
from pykafkad.server.binding import bind_all, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from pykafkad.log.file_slice import FileSlice
    from pykafkad.platform_calls import Poller, Waker

    class Network(Protocol):
        """What the operating system gives."""

        def new_poller(self) -> Poller: ...
        def new_waker(self) -> Waker: ...
        def bind_all(
            self,
            host: str,
            port: int,
            send_buffer_bytes: int | None,
            backlog: int,
            receive_buffer_bytes: int = -1,
        ) -> list[socket.socket]: ...
        def refusal(self, fd: int, connections: int) -> dict[str, object] | None: ...
        def send_slice(self, connected: socket.socket, chunk: FileSlice, size: int) -> int: ...
        def connect(self, host: str, port: int) -> socket.socket: ...
        def pair(self) -> tuple[socket.socket, socket.socket]: ...
        def connect_error(self, connecting: socket.socket) -> int: ...
        def addresses(self, host: str, port: int) -> list[str]: ...


_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR)


class SystemNetwork:
    """The network of this machine."""

    __slots__ = ()

    new_poller = staticmethod(new_poller)
    new_waker = staticmethod(new_waker)
    bind_all = staticmethod(bind_all)
    refusal = staticmethod(refusal)
    send_slice = staticmethod(send_slice)

    @staticmethod
    def connect(host: str, port: int) -> socket.socket:
        """A socket that does not block and is on its way to `host`, an address as digits: writable when the attempt is
        over (`connect_error`). Raises OSError where it can't even begin."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        connecting = socket.socket(family, socket.SOCK_STREAM)
        try:
            connecting.setblocking(False)
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = connecting.connect_ex((host, port))
            if code not in _IN_PROGRESS:
                raise OSError(code, errno.errorcode.get(code, str(code)))
        except OSError:
            connecting.close()
            raise
        return connecting

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Two sockets that are connected to each other and do not block. Raises OSError."""
        one, other = socket.socketpair()
        one.setblocking(False)
        other.setblocking(False)
        return one, other

    @staticmethod
    def connect_error(connecting: socket.socket) -> int:
        """The outcome of `connect`: 0, or an errno."""
        return connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    @staticmethod
    def addresses(host: str, port: int) -> list[str]:
        """The addresses of `host`, as digits. It may block while a name server is asked. Raises OSError."""
        found = socket.getaddrinfo(host.encode() if host.isascii() else host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(row[4][0]) for row in found))
