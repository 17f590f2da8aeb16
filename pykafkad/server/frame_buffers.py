"""The buffers that large frames are received into, which are used again when the frames are served and written."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.append_rules import Writable
    from pykafkad.server.connection import Connection

GROWTH_BYTES = 1024 * 1024
"""A buffer grows by this much at a time."""

_GROWTH_FACTOR = 8

POOLED_BYTES = GROWTH_BYTES + 128 * 1024
"""Buffers of frames up to this size are used again: the system gives fresh memory page by page, which costs more than
the copy."""

POOLED_BUFFERS = 16


class FrameBuffers(list[bytearray]):
    """Idle buffers for large frames, shared by the connections of one owner.

    `served` is the buffer of the frame that is served now; None if it was lent. `is_full` says that so much was lent
    that whoever lends more is muted until `make_room`."""

    __slots__ = ("_muted", "is_full", "served")

    def __init__(self) -> None:
        super().__init__()
        self.served: bytearray | None = None
        self.is_full = False
        self._muted: list[Connection] = []

    def borrow(self, size: int, left: int) -> bytearray:
        """A buffer for a frame of `size` bytes of which `left`, with the size field, are here."""
        needed = 4 + min(size, GROWTH_BYTES)
        for index in range(len(self)):
            if len(self[index]) >= needed:
                return self.pop(index)
        needed = min(needed, _GROWTH_FACTOR * left)
        # Rounded up, so that frames of about the same size can share it.
        return bytearray(needed if needed > POOLED_BYTES - 65536 else (needed + 65535) & ~65535)

    def copy_of(self, data: Writable) -> bytearray:
        """A buffer that begins with a copy of `data`."""
        size = len(data)
        if size > GROWTH_BYTES:
            return bytearray(data)
        buffer = self.borrow(size, size)
        # Without the view Python copies twice.
        with memoryview(buffer) as view:
            view[:size] = data
        return buffer

    def lend(self, buffer: bytearray | None) -> bytearray | None:
        """Keep the buffer of the frame that is served until `give_back`. None if `buffer` is not that."""
        if buffer is None or buffer is not self.served:
            return None
        self.served = None
        return buffer

    def give_back(self, buffer: bytearray) -> None:
        """The frame's bytes are not needed any more.

        Raises BufferError while anybody still holds a view of the frame: it would show the next frame's bytes."""
        # A buffer of which there is a view can't be resized.
        buffer.append(0)
        if len(buffer) <= POOLED_BYTES and len(self) < POOLED_BUFFERS:
            self.append(buffer)

    def mute(self, connection: Connection) -> None:
        """It is served again when there is room."""
        connection.has_room(False)
        self._muted.append(connection)

    def make_room(self) -> None:
        """Enough was given back."""
        self.is_full = False
        muted, self._muted = self._muted, []
        for connection in muted:
            connection.has_room(True)
