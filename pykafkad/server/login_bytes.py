"""How many bytes those who have not logged in may have sent of requests that are not whole yet.

Until a mechanism is named, and for most tokens after that, a frame of `SMALL_FRAME_BYTES` is enough. A larger token, up
to `sasl.server.max.receive.size` as in Kafka, is taken from what all strangers of a listener have together. It counts
as announced, before any of it is here. When that is not enough, the one that came first ends, of the address that has
taken most.

Kafka has no such bound: there each stranger may hold `sasl.server.max.receive.size` bytes."""

from __future__ import annotations

from pykafkad.server.connection_limits import address_of
from pykafkad.server.frame_buffers import FrameBuffers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.connection import Connection

SMALL_FRAME_BYTES = 4 * 1024
"""The largest frame that needs nobody's leave."""

LARGE_TOKENS_BYTES = 8 * 1024 * 1024
"""What the larger frames of all strangers of a listener may have in all; one of them may always come."""


class LoginBytes:
    """The large frames that the strangers of one listener have announced, and not sent to the end."""

    __slots__ = ("_taken", "buffers", "sharers", "total")

    def __init__(self) -> None:
        self._taken: dict[str, dict[Connection, int]] = {}
        """Connection to bytes by the peer's address, oldest first."""
        self.total = 0
        """The bytes of all."""
        self.sharers = 1
        """Among so many clusters of the process `LARGE_TOKENS_BYTES` are shared out evenly."""
        self.buffers = ExactBuffers()

    def take(self, connection: Connection, size: int) -> None:
        """A frame of `size` bytes begins to come; end others if there is no room for it."""
        most_bytes = LARGE_TOKENS_BYTES // self.sharers
        while self._taken and self.total + size > most_bytes:
            most = max(self._taken.values(), key=lambda each: sum(each.values()))
            oldest = next(iter(most))
            self.give_back(oldest)
            oldest.close(f"more than {most_bytes} bytes of logins, and its address has most of them")
        self._taken.setdefault(address_of(connection), {})[connection] = size
        self.total += size

    def give_back(self, connection: Connection) -> None:
        """Its frame is whole, or does not come any more; fine if there is none."""
        address = address_of(connection)
        of_address = self._taken.get(address)
        if of_address is None or connection not in of_address:
            return
        self.total -= of_address.pop(connection)
        if not of_address:
            del self._taken[address]


class ExactBuffers(FrameBuffers):
    """Buffers as large as their frames, which nobody uses again: those of other requests may be much larger than a
    stranger's frame, and so would be more than was counted."""

    __slots__ = ()

    def borrow(self, size: int, left: int) -> bytearray:
        """A buffer for a frame of `size` bytes."""
        return bytearray(4 + size)

    def give_back(self, buffer: bytearray) -> None:
        """The frame's bytes are not needed any more; see `FrameBuffers.give_back`."""
        buffer.append(0)
