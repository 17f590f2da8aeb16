"""What stands in for `epoll` and its pipe where the system has neither: the `selectors` module and a pair of sockets.

`PortablePoller` has the methods and event masks of `select.epoll` that the reactor uses. It is always level-triggered:
the reactor reads until there is nothing, or stops to ask, so that nothing is told twice for long."""

from __future__ import annotations

import selectors
import socket

_READ = 0x1
_WRITE = 0x4


class PortablePoller:
    """Ready descriptors by the best that `selectors` has here."""

    __slots__ = ("_masks", "_selector")

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._masks: dict[int, int] = {}

    def register(self, fd: int, eventmask: int) -> None:
        """Wait for the events of `eventmask` (EPOLLIN, EPOLLOUT; others are ignored)."""
        wanted = eventmask & (_READ | _WRITE)
        self._masks[fd] = wanted
        if wanted:
            self._selector.register(fd, _events(wanted))

    def modify(self, fd: int, eventmask: int) -> None:
        """Wait for other events; for none, the descriptor is not looked at."""
        wanted = eventmask & (_READ | _WRITE)
        before = self._masks[fd]
        if wanted == before:
            return
        self._masks[fd] = wanted
        if not wanted:
            self._selector.unregister(fd)
        elif before:
            self._selector.modify(fd, _events(wanted))
        else:
            self._selector.register(fd, _events(wanted))

    def unregister(self, fd: int) -> None:
        """Forget a descriptor."""
        if self._masks.pop(fd):
            self._selector.unregister(fd)

    def poll(self, timeout: float | None, maxevents: int) -> list[tuple[int, int]]:
        """(descriptor, events) of those that are ready: all of them, so that none is forgotten for others."""
        return [
            (
                key.fd,
                (_READ if events & selectors.EVENT_READ else 0) | (_WRITE if events & selectors.EVENT_WRITE else 0),
            )
            for key, events in self._selector.select(timeout)
        ]

    def close(self) -> None:
        self._selector.close()


def _events(wanted: int) -> int:
    return (selectors.EVENT_READ if wanted & _READ else 0) | (selectors.EVENT_WRITE if wanted & _WRITE else 0)


class SocketWaker:
    """A pair of sockets: what every system can wait for."""

    __slots__ = ("_reader", "_writer")

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def fileno(self) -> int:
        """What becomes readable."""
        return self._reader.fileno()

    def wake(self) -> None:
        """Safe from other threads and from signal handlers."""
        try:
            self._writer.send(b"w")
        except OSError:
            # So many have asked already that the buffer is full; or nobody waits any more.
            pass

    def clear(self) -> None:
        """It is heard: not readable any more."""
        try:
            self._reader.recv(65536)
        except BlockingIOError:
            pass

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def __del__(self) -> None:
        self.close()
