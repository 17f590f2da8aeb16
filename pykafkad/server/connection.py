"""One peer's bytes, without a socket: frames in, an outbox out, and whether a request is in service.

Kafka serves one request per connection at a time and answers in order. A connection with a request in service is
*muted*: it goes on reading, up to a bound, but serves nothing until the answer is in the outbox. It is also muted while
its outbox waits for a peer that does not read. Nothing is allocated for an idle connection.
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.server.session import Session

_SIZE = Struct(">i")

SCRATCH_BYTES = 128 * 1024
"""The size of the buffer that all connections are read into; also the most that a connection keeps unserved."""

OUTBOX_LIMIT_BYTES = 64 * 1024
"""A connection whose outbox holds more than this (slices of files are not counted) serves no further frame before it
has been flushed: with `FRAMES_PER_TURN` the share of a turn that one peer can have."""

FRAMES_PER_TURN = 32
"""A connection with more whole frames than this gets the rest served in later turns, after everybody else's."""

_GROWTH_BYTES = 1024 * 1024

LARGE_FROM_BYTES = 32 * 1024
"""A large frame gets a buffer of its own when this much of it is here: what a peer only announces takes no memory."""

_GROWTH_FACTOR = 8

POOLED_BYTES = _GROWTH_BYTES + 128 * 1024
"""Buffers of frames up to this size are used again: the system gives fresh memory page by page, which costs more than
the copy."""

POOLED_BUFFERS = 6

_KNOWN_GREETINGS = (
    (b"\x16\x03", "a TLS handshake on a PLAINTEXT listener"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"PRI ", "an HTTP/2 preface"),
    (b"SSH-", "an SSH greeting"),
)


class Connection:
    """The state of one peer. `serve(connection, view, start, end)` is called with each whole frame's payload."""

    __slots__ = (
        "blocked",
        "close_reason",
        "delayed",
        "fileno",
        "held",
        "id",
        "in_service",
        "interest",
        "large",
        "large_filled",
        "last_active",
        "listener",
        "local_address",
        "max_frame_bytes",
        "muted",
        "outbox",
        "outbox_bytes",
        "peer",
        "pending",
        "pool",
        "preamble_length",
        "queued",
        "recv_into",
        "send",
        "sequence",
        "serve",
        "session",
        "socket",
        "software",
    )

    def __init__(
        self,
        connection_id: int,
        peer: str,
        serve: Callable[[Connection, memoryview, int, int], None],
        max_frame_bytes: int,
        pool: list[bytearray],
    ) -> None:
        """`pool` holds buffers for large frames, shared by all connections of a reactor."""
        self.id = connection_id
        self.peer = peer
        self.serve = serve
        self.max_frame_bytes = max_frame_bytes
        self.pool = pool
        self.outbox: list[object] = []
        self.outbox_bytes = 0
        self.pending: bytes | bytearray = b""
        self.large: bytearray | None = None
        self.large_filled = 0
        self.in_service: object = None
        self.delayed: object = None
        self.preamble_length = 8
        self.sequence = 0
        self.muted = False
        self.held = False
        self.blocked = False
        self.queued = False
        self.close_reason: str | None = None
        self.last_active = 0.0
        self.listener: object = None
        self.session: Session | None = None
        self.local_address: tuple[str, int] = ("", 0)
        self.socket: object = None
        self.recv_into: object = None
        self.send: object = None
        self.fileno = -1
        self.interest = 0

    def __repr__(self) -> str:
        return f"Connection({self.id}, {self.peer})"

    def attach(self, accepted: object, listener: object) -> None:
        """Keep the socket that `listener` accepted, and the calls of it that every request needs."""
        self.socket = accepted
        self.recv_into = accepted.recv_into
        self.send = accepted.send
        self.fileno = accepted.fileno()
        self.local_address = accepted.getsockname()[:2]
        self.listener = listener

    # --- bytes in -----------------------------------------------------------------------------------------------

    def receive(self, view: memoryview, length: int) -> None:
        """Serve the whole frames in `view[:length]` and keep the rest. Not to be called while muted."""
        if 4 <= length <= self.max_frame_bytes and _SIZE.unpack_from(view, 0)[0] == length - 4:
            # The commonest read: one frame and nothing else.
            self.serve(self, view, 4, length)
            if self.pending:
                self.pending = b""
            return
        position = served = 0
        serve = self.serve
        while length - position >= 4:
            size = _SIZE.unpack_from(view, position)[0]
            if size < 0 or size > self.max_frame_bytes:
                self._refuse(bytes(view[position : position + 4]), size)
                return
            end = position + 4 + size
            if end > length:
                break
            serve(self, view, position + 4, end)
            position = end
            served += 1
            if self.muted or self.outbox_bytes > OUTBOX_LIMIT_BYTES or served == FRAMES_PER_TURN:
                break
        if position == length:
            if self.pending:
                self.pending = b""
        else:
            self._keep(view, position, length)

    def receive_muted(self, view: memoryview, length: int) -> None:
        """Keep bytes that arrived while a request is in service."""
        pending = self.pending
        self.pending = bytes(pending) + bytes(view[:length]) if pending else bytes(view[:length])

    def large_target(self) -> memoryview:
        """Where the next bytes of a frame that is larger than the scratch go."""
        large = self.large
        size = _SIZE.unpack_from(large, 0)[0]
        if self.large_filled == len(large) - 4:
            # The buffer grows as bytes arrive: a size field alone must not make us allocate.
            large.extend(bytes(min(size - self.large_filled, _GROWTH_BYTES)))
        return memoryview(large)[4 + self.large_filled : 4 + size]

    def receive_large(self, length: int) -> None:
        """`length` bytes were written to `large_target()`: serve the frame when it is whole."""
        self.large_filled += length
        large = self.large
        size = _SIZE.unpack_from(large, 0)[0]
        if self.large_filled < size:
            return
        self.large = None
        view = memoryview(large)
        self.serve(self, view, 4, 4 + size)
        view.release()
        # Resizing raises BufferError while anybody still holds a view of a frame that has been served: such a view
        # would show the next frame's bytes.
        large.append(0)
        if len(large) <= POOLED_BYTES and len(self.pool) < POOLED_BUFFERS:
            self.pool.append(large)

    def _large_buffer(self, size: int, left: int) -> bytearray:
        """A buffer for a frame of `size` bytes of which `left`, with the size field, are here."""
        needed = 4 + min(size, _GROWTH_BYTES)
        pool = self.pool
        for index in range(len(pool)):
            if len(pool[index]) >= needed:
                return pool.pop(index)
        needed = min(needed, _GROWTH_FACTOR * left)
        # Rounded up, so that frames of about the same size can share it.
        return bytearray(needed if needed > POOLED_BYTES - 65536 else (needed + 65535) & ~65535)

    @property
    def owes_answers(self) -> bool:
        """Whether something is at work for the peer, or is to be soon. What waits for news is not: nearly every peer
        that ends while it waits is not there any more."""
        context = self.in_service
        return self.has_whole_frame() if context is None else context.is_long and self.delayed is None

    def has_whole_frame(self) -> bool:
        """Whether a request waits behind the one in service."""
        pending = self.pending
        return len(pending) >= 4 and len(pending) - 4 >= _SIZE.unpack_from(pending, 0)[0]

    def _keep(self, view: memoryview, position: int, length: int) -> None:
        left = length - position
        if left >= LARGE_FROM_BYTES and not self.muted:
            size = _SIZE.unpack_from(view, position)[0]
            if size + 4 > SCRATCH_BYTES and size <= self.max_frame_bytes:
                self.large = self._large_buffer(size, left)
                self.large[:left] = view[position:length]
                self.large_filled = left - 4
                self.pending = b""
                return
        self.pending = bytes(view[position:length])

    def _refuse(self, first: bytes, size: int) -> None:
        for greeting, what in _KNOWN_GREETINGS:
            if first.startswith(greeting):
                self.close(f"not Kafka's protocol: {what}")
                return
        if size < 0:
            self.close(f"a frame of negative size {size}")
        else:
            self.close(f"a frame of {size} bytes, above socket.request.max.bytes {self.max_frame_bytes}")

    # --- state --------------------------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """End the connection after what is in the outbox has been offered to the peer once."""
        if self.close_reason is None:
            self.close_reason = reason
        self.pending = b""
        self.large = None
        self.muted = True

    def update_muted(self) -> bool:
        """Recompute and return `muted` after one of its causes changed."""
        self.muted = self.in_service is not None or self.blocked or self.close_reason is not None
        return self.muted
