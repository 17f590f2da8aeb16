"""Reading from a connection that is muted, has kept bytes, or is in the middle of a large frame.

The reactor itself does the commonest read: some whole frames, of a connection that waits for nothing."""

from __future__ import annotations

from struct import Struct

from pykafkad.server.connection import OUTBOX_LIMIT_BYTES, OWN_BUFFER_FROM_BYTES, SCRATCH_BYTES
from pykafkad.server.poll_events import NEWS, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.platform_calls import Poller
    from pykafkad.server.transport import Transport

WIDE_SCRATCH_BYTES = 4 * SCRATCH_BYTES
"""What is read at once of frames of moderate size that a client sends ahead."""

_SIZE = Struct(">i")

_MODERATE_BYTES = 2 * SCRATCH_BYTES
# Of a larger frame the part that came with others would be copied into its buffer; that costs more than a read.


class Receiver:
    """See the module. `scratch` is what all connections are read into. `set_interest(transport, interest)` says what
    the poller looks for."""

    __slots__ = ("_poller", "_set_interest", "scratch", "wide_scratch")

    def __init__(self, poller: Poller, set_interest: Callable[[Transport, int], None]) -> None:
        self._poller = poller
        self._set_interest = set_interest
        self.wide_scratch = memoryview(bytearray(WIDE_SCRATCH_BYTES))
        self.scratch = self.wide_scratch[:SCRATCH_BYTES]

    def read(self, transport: Transport) -> int:
        """Read and serve; the bytes read."""
        connection = transport.connection
        if transport.interest == READ:
            # There may be more than there is room for.
            self._poller.modify(transport.fileno, NEWS)
        large = connection.large
        if large is not None:
            # Its buffer may be one that a larger frame had before.
            is_moderate = 4 + _SIZE.unpack_from(large, 0)[0] <= _MODERATE_BYTES
            target = connection.large_target()
            length = transport.recv_into(target)
            # The view must be gone before the buffer may grow or be emptied.
            target.release()
            if length:
                connection.receive_large(length)
                if is_moderate and connection.large is None:
                    self._read_behind(transport)
            return length
        if connection.state:
            return self._read_muted(transport)
        scratch = self.wide_scratch
        kept = len(connection.pending)
        scratch[:kept] = connection.pending
        is_moderate = kept >= 4 and OWN_BUFFER_FROM_BYTES < 4 + _SIZE.unpack_from(scratch, 0)[0] <= _MODERATE_BYTES
        room_end = WIDE_SCRATCH_BYTES if is_moderate else SCRATCH_BYTES
        if kept >= room_end:
            # Short frames behind others of moderate size: to keep more of them would be to copy all of it each turn.
            connection.receive(scratch, kept)
            return kept
        length = transport.recv_into(scratch[kept:room_end])
        if length:
            connection.receive(scratch, kept + length)
        return length

    def _read_behind(self, transport: Transport) -> None:
        """Read what stands behind a frame that is served, often some more of them: one answer leaves for all."""
        connection = transport.connection
        if connection.state or connection.outbox_bytes > OUTBOX_LIMIT_BYTES:
            return
        try:
            length = transport.recv_into(self.wide_scratch)
        except (BlockingIOError, InterruptedError):
            return
        if length:
            connection.receive(self.wide_scratch, length)
            if connection.state and len(connection.pending) >= SCRATCH_BYTES // 2:
                # It is kept until the request in service is answered.
                self._set_interest(transport, transport.interest & ~READ)
                return
        if length in (0, WIDE_SCRATCH_BYTES) and transport.interest == READ:
            # The end, or more bytes: the poller tells of them again.
            self._poller.modify(transport.fileno, NEWS)

    def _read_muted(self, transport: Transport) -> int:
        """Keep what arrives behind a request in service, at most as much as can be served at once; the bytes read.
        With half of a scratch kept nothing more is read."""
        connection = transport.connection
        room = SCRATCH_BYTES - len(connection.pending)
        if room <= 0:
            self._set_interest(transport, transport.interest & ~READ)
            raise BlockingIOError
        length = transport.recv_into(self.scratch[:room])
        if length:
            connection.receive_muted(self.scratch, length)
        if len(connection.pending) >= SCRATCH_BYTES // 2:
            self._set_interest(transport, transport.interest & ~READ)
        return length
