"""What differs between systems, chosen once when this module is imported.

Linux has calls that others lack. Each of them has a stand-in here that does the same with what every system has; the
names of this module are one or the other. Nobody else asks which system this is."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Protocol

    from pykafkad.log.file_slice import FileSlice

    class Poller(Protocol):
        """The methods of `select.epoll` that the reactor uses."""

        def register(self, fd: int, eventmask: int) -> None: ...
        def modify(self, fd: int, eventmask: int) -> None: ...
        def unregister(self, fd: int) -> None: ...
        def poll(self, timeout: float | None, maxevents: int) -> list[tuple[int, int]]: ...
        def close(self) -> None: ...

    class Waker(Protocol):
        """A descriptor that becomes readable when any thread asks for it."""

        def fileno(self) -> int: ...
        def wake(self) -> None: ...
        def clear(self) -> None: ...
        def close(self) -> None: ...


# --- the network ------------------------------------------------------------------------------------------------------


class PipeWaker:
    """A pipe that does not block."""

    __slots__ = ("_reader", "_writer")

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """What becomes readable."""
        return self._reader

    def wake(self) -> None:
        """Safe from other threads and from signal handlers."""
        try:
            os.write(self._writer, b"w")
        except BlockingIOError:
            # So many have asked already that the pipe is full.
            pass

    def clear(self) -> None:
        """It is heard: not readable any more."""
        try:
            os.read(self._reader, 65536)
        except BlockingIOError:
            pass

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


def new_poller() -> Poller:
    """What tells which descriptors are ready."""
    if hasattr(select, "epoll"):
        return select.epoll()
    from pykafkad.portable_poller import PortablePoller

    return PortablePoller()


def new_waker() -> Waker:
    """What ends a wait from another thread."""
    if hasattr(os, "pipe2"):
        return PipeWaker()
    from pykafkad.portable_poller import SocketWaker

    return SocketWaker()


def send_slice_by_sendfile(connected: socket, chunk: FileSlice, size: int) -> int:
    """Send up to `size` bytes of a file through a socket; how many it took. Raises as `socket.send` does."""
    sent = os.sendfile(connected.fileno(), chunk.fileno(), chunk.position, size)
    if sent == 0:
        # The file is shorter than the slice: the answer's framing is already promised and can't be kept.
        raise OSError(5, f"log file cut short under a reader: {chunk!r}")
    return sent


def send_slice_by_reading(connected: socket, chunk: FileSlice, size: int) -> int:
    """The same where files can't be sent straight."""
    data = chunk.file.pread(min(size, _PIECE_BYTES), chunk.position)
    if not data:
        raise OSError(5, f"log file cut short under a reader: {chunk!r}")
    return connected.send(data)


_PIECE_BYTES = 256 * 1024
send_slice = send_slice_by_sendfile if hasattr(os, "sendfile") else send_slice_by_reading
