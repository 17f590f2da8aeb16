"""A poller that also knows of bytes which the kernel has told of already: those that a transport has taken from its
socket and still keeps, because there was no room for them, and those of handshakes that wait for their turn."""

from __future__ import annotations

from pykafkad.server.poll_events import NEWS, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.platform_calls import Poller
    from pykafkad.server.transport import Transport

HANDSHAKES_PER_TURN = 4
"""A step of a handshake may take a millisecond of arithmetic."""


class BufferedPoller:
    """Around another poller: a descriptor whose transport is in `keepers` is readable, if anybody reads it."""

    __slots__ = ("_first", "_inner", "_keepers", "_last", "close", "modify", "register", "rounds")

    def __init__(self, inner: Poller) -> None:
        self._inner = inner
        self._keepers: dict[int, Transport] = {}
        self._first: dict[int, None] = {}
        """Descriptors that wait for their turn, longest first: handshakes that have begun, which hold memory."""
        self._last: dict[int, None] = {}
        """And those that have not begun."""
        self.rounds = 0
        """How often anybody has polled: what happens in one turn of the loop happens in one round."""
        self.register = inner.register
        self.modify = inner.modify
        self.close = inner.close

    def unregister(self, fd: int) -> None:
        """The descriptor is another's business from now on."""
        self._keepers.pop(fd, None)
        self._first.pop(fd, None)
        self._last.pop(fd, None)
        self._inner.unregister(fd)

    def poll(self, timeout: float | None, maxevents: int) -> list[tuple[int, int]]:
        """(descriptor, events) of those that are ready; waits for nothing while somebody keeps bytes that are to be
        read. Who waits for a turn comes before those of whom there is news."""
        self.rounds += 1
        if not (self._keepers or self._first or self._last):
            return self._inner.poll(timeout, maxevents)
        events: dict[int, int] = {}
        # Peers that send their part byte by byte must not keep all others from beginning.
        share = HANDSHAKES_PER_TURN - bool(self._last)
        for waiting, most in ((self._first, share), (self._last, HANDSHAKES_PER_TURN)):
            while waiting and len(events) < most:
                fd = next(iter(waiting))
                del waiting[fd]
                events[fd] = READ
        events.update((fd, READ) for fd, transport in self._keepers.items() if transport.interest & READ)
        if not events:
            return self._inner.poll(timeout, maxevents)
        for fd, mask in self._inner.poll(0, maxevents):
            events[fd] = events.get(fd, 0) | mask
        return list(events.items())

    @property
    def is_behind(self) -> bool:
        """Whether the next `poll` waits for nothing."""
        return bool(self._first or self._last) or any(each.interest & READ for each in self._keepers.values())

    def keeps(self, transport: Transport) -> None:
        """The transport has something to read which its descriptor does not show."""
        self._keepers[transport.fileno] = transport

    def keeps_nothing(self, transport: Transport) -> None:
        """The transport's descriptor shows everything there is."""
        self._keepers.pop(transport.fileno, None)

    def take_turns(self, transport: Transport, *, is_last: bool) -> None:
        """The transport has something to read, and does so when those that wait longer have had their turn; if it
        `is_last`, after all others that are not."""
        (self._last if is_last else self._first)[transport.fileno] = None

    def look_again(self, transport: Transport) -> None:
        """There may be more at the transport's socket than was taken: tell of it although it is not new."""
        if transport.interest == READ:
            self._inner.modify(transport.fileno, NEWS)
