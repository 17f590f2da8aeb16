"""One peer's bytes, without a socket: frames in, an outbox out, and whether a request is in service.

Kafka serves one request per connection at a time and answers in order. A connection with a request in service is
*muted*: it goes on reading, up to a bound, but serves nothing until the answer is in the outbox. It is also muted while
its outbox waits for a peer that does not read. Nothing is allocated for an idle connection.

A `Transport` (`transport.py`) stands between the connection and its socket: it feeds the connection and empties its
outbox. The states and their transitions are rows in `TRANSITIONS`; only the methods of `Connection` change them.
"""

from __future__ import annotations

from struct import Struct

from pykafkad.server.frame_buffers import GROWTH_BYTES
from pykafkad.server.greetings import KNOWN_GREETINGS, TLS_GREETING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.log.file_slice import FileSlice
    from pykafkad.server.dispatch import ServedContext
    from pykafkad.server.frame_buffers import FrameBuffers
    from pykafkad.server.listeners import Listener
    from pykafkad.server.purgatory import PurgatoryEntry
    from pykafkad.server.session import FastPath, Session

    Chunk = bytes | bytearray | memoryview | FileSlice

    class ConnectionOwner(Protocol):
        """Whose connections they are: a `SocketServer` or a `Peer`."""

        @property
        def serve(self) -> Callable[[Connection, memoryview, int, int], None]:
            """Takes each whole frame: the bytes of the view from a start to an end."""

        def connected(self, connection: Connection) -> None:
            """An outgoing connection is there."""

        def overtaken(self, connection: Connection) -> None:
            """A frame came in while a request of the connection waits for news."""

        def lost(self, connection: Connection, was_closed_here: bool) -> None:
            """The connection's transport is gone; `connection.close_reason` says why."""

        def served_fast(self, count: int) -> None:
            """So many frames were served by fast paths of its connections' sessions."""

    class TransportOfConnection(Protocol):
        """What a connection asks of its transport."""

        last_active: float

        def send_soon(self) -> None:
            """The outbox got something, or the connection drains: look at it at the end of the turn."""

        def resume_soon(self) -> None:
            """What was kept may be served."""


_SIZE = Struct(">i")

OPEN, MUTED, DRAINING, CLOSED = range(4)
STATE_NAMES = ("open", "muted", "draining", "closed")
TRANSITIONS = {
    OPEN: (MUTED, DRAINING, CLOSED),
    MUTED: (OPEN, DRAINING, CLOSED),
    DRAINING: (CLOSED,),
    CLOSED: (),
}
"""State to the states that may follow. Open: frames are served as they come. Muted: what comes is kept, up to a bound,
and nothing is served. Draining: nothing more is read; what is in the outbox is offered to the peer once. Closed: the
transport is gone. `OPEN` is 0, so that the commonest question is `if connection.state`."""

IN_SERVICE, BLOCKED, NO_ROOM, THROTTLED, REFUSED = 1, 2, 4, 8, 16
CAUSES = {
    IN_SERVICE: "a request is in service",
    BLOCKED: "the peer does not read its answers",
    NO_ROOM: "its large batches are not written yet",
    THROTTLED: "its client is over a quota",
    REFUSED: "its login was refused",
}
"""Why a connection is muted: one bit each. It is open again when none is left."""

SCRATCH_BYTES = 128 * 1024
"""The size of the buffer that all connections are read into, but for `receiving.WIDE_SCRATCH_BYTES`."""

OUTBOX_LIMIT_BYTES = 64 * 1024
"""A connection whose outbox holds more than this (slices of files are not counted) serves no further frame before it
has been flushed: with `FRAMES_PER_TURN` the share of a turn that one peer can have."""

FRAMES_PER_TURN = 32
"""A connection with more whole frames than this gets the rest served in later turns, after everybody else's."""

LARGE_FROM_BYTES = 32 * 1024
"""A large frame gets a buffer of its own when this much of it is here: what a peer only announces takes no memory."""

OWN_BUFFER_FROM_BYTES = 48 * 1024
"""A frame from this size on that came in part goes on in a buffer of its own: to keep its part and to put it before the
next read would be two copies."""

_SLICE_BYTES = 100
"""What a slice of a file counts in the outbox of a held connection, for its own memory."""


class _Detached:
    """The transport of a connection that has none: nobody sends and nobody serves."""

    __slots__ = ("last_active",)

    def __init__(self) -> None:
        self.last_active = 0.0

    def send_soon(self) -> None:
        """Nobody sends."""

    def resume_soon(self) -> None:
        """Nobody serves."""


_DETACHED = _Detached()


class _NoSession:
    """The session of a connection that nobody asks anything on, as a `Peer`'s."""

    __slots__ = ("fast_paths",)

    def __init__(self) -> None:
        self.fast_paths: dict[int, FastPath] = {}


# A connection that no listener accepted has a session without fast paths, which the reactor reads, and no listener.
_NO_SESSION: Any = _NoSession()
_NO_LISTENER: Any = None


class Connection:
    """The state of one peer. `owner.serve(connection, view, start, end)` is called with each whole frame's payload.

    Everybody may read the attributes. A fast path may append its answer to `outbox`, as whoever fed the connection
    looks there afterwards, and keep its `preamble_length`. The reactor sets `transport`. Everything else that a peer's
    bytes depend on is changed by the methods."""

    __slots__ = (
        "_causes",
        "_counted_chunks",
        "close_reason",
        "delayed",
        "held",
        "id",
        "in_service",
        "large",
        "large_filled",
        "listener",
        "local_address",
        "max_frame_bytes",
        "outbox",
        "outbox_bytes",
        "owner",
        "peer",
        "pending",
        "pool",
        "preamble_length",
        "sequence",
        "serve",
        "session",
        "software",
        "state",
        "transport",
    )

    software: tuple[str, str] | None
    """Name and version of the client's software; not set before the client has told them."""

    def __init__(
        self, connection_id: int, peer: str, owner: ConnectionOwner, max_frame_bytes: int, pool: FrameBuffers
    ) -> None:
        """`pool` holds buffers for large frames, shared by the connections of one owner."""
        self.id = connection_id
        self.peer = peer
        self.owner = owner
        self.serve = owner.serve
        self.session: Session = _NO_SESSION
        self.max_frame_bytes = max_frame_bytes
        self.pool = pool
        self.transport: TransportOfConnection = _DETACHED
        self.state = OPEN
        self._causes = 0
        self.held = 0
        """How many commits must be made before anything in the outbox may leave."""
        self.outbox: list[Chunk] = []
        """What is to leave, in order: buffers and slices of files. The transport takes from its front."""
        self.outbox_bytes = 0
        self._counted_chunks = 0
        self.pending: bytes | bytearray = b""
        self.large: bytearray | None = None
        self.large_filled = 0
        self.in_service: ServedContext | None = None
        self.delayed: PurgatoryEntry | None = None
        self.preamble_length = 8
        self.sequence = 0
        self.close_reason: str | None = None
        self.listener: Listener = _NO_LISTENER
        self.local_address: tuple[str, int] = ("", 0)

    def accepted(self, listener: Listener, local_address: tuple[str, int], session: Session) -> None:
        """Say whose listener the peer came to, at which of its addresses, and who the peer is."""
        self.listener = listener
        self.local_address = local_address
        self.session = session

    def guard(
        self, serve: Callable[[Connection, memoryview, int, int], None], max_frame_bytes: int, pool: FrameBuffers
    ) -> None:
        """Hand whole frames to `serve` from now on, and refuse larger ones than that: for the time of a login."""
        self.serve, self.max_frame_bytes, self.pool = serve, max_frame_bytes, pool

    def __repr__(self) -> str:
        why = ", ".join(text for cause, text in CAUSES.items() if self._causes & cause)
        return f"Connection({self.id}, {self.peer}, {STATE_NAMES[self.state]}{why and ': '}{why})"

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
            if (size < 0 or size > self.max_frame_bytes) and self._refuse(bytes(view[position : position + 4]), size):
                return
            end = position + 4 + size
            if end > length:
                break
            serve(self, view, position + 4, end)
            position = end
            served += 1
            if size > OWN_BUFFER_FROM_BYTES and self.pool.is_full:
                self.pool.mute(self)
            if self.state or self.outbox_bytes > OUTBOX_LIMIT_BYTES or served == FRAMES_PER_TURN:
                break
        if position == length:
            if self.pending:
                self.pending = b""
        else:
            self._keep(view, position, length)

    def receive_muted(self, view: memoryview, length: int) -> None:
        """Keep bytes that arrived while a request is in service, if any frame is to be taken after it."""
        if self.max_frame_bytes:
            self.pending = b"".join((self.pending, view[:length]))

    def large_target(self) -> memoryview:
        """Where the next bytes of a frame that is larger than the scratch go."""
        large = self.large
        assert large is not None
        size = _SIZE.unpack_from(large, 0)[0]
        if self.large_filled == len(large) - 4:
            # The buffer grows as bytes arrive: a size field alone must not make us allocate.
            large.extend(bytes(min(size - self.large_filled, GROWTH_BYTES)))
        return memoryview(large)[4 + self.large_filled : 4 + size]

    def receive_large(self, length: int) -> None:
        """`length` bytes were written to `large_target()`: serve the frame when it is whole."""
        self.large_filled += length
        large = self.large
        assert large is not None
        size = _SIZE.unpack_from(large, 0)[0]
        if self.large_filled < size:
            return
        self.large = None
        pool = self.pool
        pool.served = large
        view = memoryview(large)
        self.serve(self, view, 4, 4 + size)
        view.release()
        if pool.served is large:
            pool.give_back(large)
        elif pool.is_full:
            pool.mute(self)

    @property
    def owes_answers(self) -> bool:
        """Whether something is at work for the peer, is to be soon, or is done and held. What waits for news, or for
        others, is not: nearly every peer that ends while it waits is not there any more."""
        if self.held:
            return True
        context = self.in_service
        if context is None:
            return self.has_whole_frame()
        return self.delayed is None and not context.route.row.waits_for_others

    def has_whole_frame(self) -> bool:
        """Whether a request waits behind the one in service."""
        pending = self.pending
        return len(pending) >= 4 and len(pending) - 4 >= _SIZE.unpack_from(pending, 0)[0]

    def has_more_to_serve(self) -> bool:
        """After a read: whether a frame that is here may be served now. A request that waits for news hears of a frame
        behind it: that may have come in the same read, or later."""
        if self.state:
            if self.delayed is not None:
                self.owner.overtaken(self)
            return False
        return self.outbox_bytes <= OUTBOX_LIMIT_BYTES and self.has_whole_frame()

    def _keep(self, view: memoryview, position: int, length: int) -> None:
        left = length - position
        if left >= LARGE_FROM_BYTES and not self.state:
            size = _SIZE.unpack_from(view, position)[0]
            # A whole one waits for its turn, behind as many frames as one peer may have in a turn.
            if size + 4 > max(OWN_BUFFER_FROM_BYTES, left) and size <= self.max_frame_bytes:
                self.large = self.pool.borrow(size, left)
                self.large[:left] = view[position:length]
                self.large_filled = left - 4
                self.pending = b""
                return
        if self.state < DRAINING:
            self.pending = bytes(view[position:length]) if self.max_frame_bytes else b""

    def _refuse(self, first: bytes, size: int) -> bool:
        """End the connection because of the frame that begins so; not if its login takes one of that size."""
        login = None if self.serve == self.owner.serve else self.session.login
        limit = f"socket.request.max.bytes {self.max_frame_bytes}" if login is None else login.refuse_frame(self, size)
        if limit is None:
            return False
        for greeting, what in (TLS_GREETING, *KNOWN_GREETINGS):
            if first.startswith(greeting):
                self.close(f"not Kafka's protocol: {what}")
                return True
        self.close(f"a frame of negative size {size}" if size < 0 else f"a frame of {size} bytes, above {limit}")
        return True

    # --- the request in service ---------------------------------------------------------------------------------

    def begin_service(self, context: ServedContext) -> None:
        """The request of `context` is in service. The connection is muted only if it stays so (`defer`, `park`)."""
        self.sequence += 1
        self.in_service = context

    def defer(self) -> None:
        """The answer to the request in service comes later: nothing else is served meanwhile."""
        if self.in_service is not None:
            self._mute(IN_SERVICE)

    def park(self, delayed: PurgatoryEntry) -> None:
        """The request in service waits for news, as `delayed`."""
        self.delayed = delayed
        self._mute(IN_SERVICE)

    def unpark(self) -> None:
        """The request in service waits for news no more; it is being answered."""
        self.delayed = None

    def end_service(self) -> None:
        """The request in service is answered, or needs no answer: what was read behind it is served soon."""
        self.in_service = None
        self._unmute(IN_SERVICE)

    def throttle(self, is_over_quota: bool) -> None:
        """As long as its client is over a quota, answers leave and nothing more is served."""
        (self._mute if is_over_quota else self._unmute)(THROTTLED)

    def end_reading(self) -> None:
        """The login was refused: until the connection ends, nothing is served, and nothing that comes is kept."""
        self.max_frame_bytes = 0
        self._mute(REFUSED)

    # --- bytes out ----------------------------------------------------------------------------------------------

    def put(self, chunks: list[Chunk]) -> None:
        """Add chunks to the outbox; they leave at the end of the turn. Nothing leaves after what a close has left
        there: an answer before this one may be gone (`abort`)."""
        if self.state >= DRAINING:
            return
        self.outbox.extend(chunks)
        if not self.held:
            # A slice of a file holds no memory: only buffers count against the outbox's limit.
            self.outbox_bytes += sum(len(chunk) for chunk in chunks if not hasattr(chunk, "chunk_size"))
        self.transport.send_soon()

    def hold(self) -> None:
        """Nothing of the outbox leaves before one more `release()`; with a full outbox nothing is served either."""
        self.held += 1
        self.count_held()

    def count_held(self) -> None:
        """At the end of a turn, of a held connection: how much its outbox holds, fast paths' answers included."""
        outbox = self.outbox
        if self._counted_chunks == 0:
            self.outbox_bytes = 0
        for chunk in outbox[self._counted_chunks :]:
            self.outbox_bytes += _SLICE_BYTES if hasattr(chunk, "chunk_size") else len(chunk)
        self._counted_chunks = len(outbox)
        if self.outbox_bytes > OUTBOX_LIMIT_BYTES:
            self._mute(BLOCKED)

    def release(self) -> None:
        """One `hold()` is over; after the last, what is in the outbox leaves at the end of the turn."""
        self.held -= 1
        if self.held == 0:
            self._counted_chunks = 0
            self.transport.send_soon()

    def block(self) -> bool:
        """The peer does not take what is in the outbox. Returns whether nothing is read until it does. Answers to
        requests from here go on being read, because the peer may take nothing before its answers are read."""
        is_served = self.session is not _NO_SESSION
        if is_served:
            self._mute(BLOCKED)
        return is_served

    def peer_ended(self) -> None:
        """The peer says nothing more and has answers to come. If they are held, it is read again when they have
        left."""
        if self.held:
            self._mute(BLOCKED)

    def has_room(self, is_there: bool) -> None:
        """Whether enough of the large batches is written that another one may come."""
        (self._unmute if is_there else self._mute)(NO_ROOM)

    @property
    def is_blocked(self) -> bool:
        """Whether the outbox waits for the peer, or was full while it was held."""
        return self._causes & BLOCKED != 0

    def sent_all(self) -> None:
        """The outbox is empty: a connection that served nothing because of it goes on."""
        was_limited = self.outbox_bytes > OUTBOX_LIMIT_BYTES
        self.outbox_bytes = 0
        if self._causes & BLOCKED:
            self._unmute(BLOCKED)
        elif was_limited and not self.state:
            self.transport.resume_soon()

    # --- state --------------------------------------------------------------------------------------------------

    @property
    def muted(self) -> bool:
        """Whether nothing is served: muted, draining or closed."""
        return self.state != OPEN

    def close(self, reason: str) -> None:
        """End the connection after what is in the outbox has been offered to the peer once."""
        if self.close_reason is None:
            self.close_reason = reason
        self.pending = b""
        self.large = None
        if self.state < DRAINING:
            self._become(DRAINING)
            self.transport.send_soon()

    def abort(self, reason: str) -> None:
        """End the connection; what is in the outbox does not leave."""
        self.outbox.clear()
        self.close(reason)

    def lost(self, reason: str) -> None:
        """The transport is gone; `reason` is why, unless the connection was closed from here."""
        was_closed_here = self.close_reason is not None
        self.close_reason = self.close_reason if was_closed_here else reason
        self.outbox.clear()
        self.pending = b""
        self.large = None
        self.transport = _DETACHED
        self._become(CLOSED)
        self.owner.lost(self, was_closed_here)

    def carry_on(self, outbox: list[Chunk], pending: bytes) -> None:
        """Take the place of a connection to the same peer: what it had not sent, and what it had not served."""
        self.outbox[:0] = outbox
        self.pending = pending
        self.transport.send_soon()
        self.transport.resume_soon()

    def _mute(self, cause: int) -> None:
        self._causes |= cause
        if self.state == OPEN:
            self.state = MUTED

    def _unmute(self, cause: int) -> None:
        if self._causes & cause:
            self._causes &= ~cause
            if self._causes == 0 and self.state == MUTED:
                self.state = OPEN
                self.transport.resume_soon()

    def _become(self, state: int) -> None:
        assert state in TRANSITIONS[self.state], f"{self} can't become {STATE_NAMES[state]}"
        self.state = state
