"""The loop: file descriptors that are ready, transports that read and send, and what becomes of them.

One reactor serves every node of a process: whatever a `SocketServer` accepted, and whatever it connected to for a
`Peer`. It knows nothing of Kafka, but for the functions that a connection lends it for whole small frames
(its session's `fast_paths`). What the operating system gives comes from `network.py`: the simulator has another one.

One turn, in this order: wait for descriptors; read and serve; what the runtime does at the end of a turn (offloaded
results, timers, waits, writes); flush the outboxes."""

from __future__ import annotations

from struct import Struct

from pykafkad.errors import StorageFailure
from pykafkad.server.binding import address_text
from pykafkad.server.connection import DRAINING, OUTBOX_LIMIT_BYTES, SCRATCH_BYTES
from pykafkad.server.connector import Connector
from pykafkad.server.network import SystemNetwork
from pykafkad.server.poll_events import ENDED, NEWS, READ, WRITE
from pykafkad.server.receiving import Receiver
from pykafkad.server.transport import PlainTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from pykafkad.server.buffered_poller import BufferedPoller
    from pykafkad.server.connection import Connection, ConnectionOwner
    from pykafkad.server.network import Network
    from pykafkad.server.runtime import Runtime
    from pykafkad.server.session import FastPath
    from pykafkad.server.socket_server import SocketServer
    from pykafkad.server.tls_endpoint import TlsEndpoint
    from pykafkad.server.transport import NewTransport, Transport

_RESUMES_PER_TURN = 8
"""How often in a turn connections whose parked request was answered go on with what they have read."""

_START = Struct(">iIi")
"""A frame's size, its API key and version as one number, and its correlation id."""

_SHORT_WAIT_SECONDS = 50e-6
LOOKS = 100
"""How often to look for ready sockets before going to sleep: about as long as a short wait."""

_LARGE_ANSWER_BYTES = 256 * 1024
"""A peer that takes this much at once, or drains what it could not take, needs a while: looking for it would only burn
the processor."""

EVENTS_PER_TURN = 256
_NEVER = float("inf")
_NO_LIMIT = 1 << 62


class Reactor:
    """Owns the descriptors of a process's network. Its lists are its own: others ask by its methods."""

    def __init__(self, runtime: Runtime, network: Network | None = None) -> None:
        """`network` is the system's, or the simulator's."""
        self.runtime = runtime
        self.network: Network = network or SystemNetwork()
        self._poller = self.network.new_poller()
        self._keeps: BufferedPoller | None = None
        self._waker = self.network.new_waker()
        self._transports: dict[int, Transport] = {}
        self.connector = Connector(self)
        self._by_id: dict[int, Transport] = {}
        self._last_id = 0
        self._watched: dict[int, Callable[[float], None]] = {}
        self._receiver = Receiver(self._poller, self._set_interest)
        self._scratch = self._receiver.scratch
        self._last_wait_was_short = False
        self.connections_per_turn, self.resumes_per_turn = EVENTS_PER_TURN, _NO_LIMIT
        """Of so many connections news is taken in a turn, and so many are served what they have sent before."""
        self.may_look = True
        """Whether a wait may look again and again for a moment: not while it may wait for the work of a thread."""
        self._ready: list[Transport] = []
        """Those with something in their outbox, in the order in which they got it."""
        self._unserved: dict[Transport, None] = {}
        self._resumable: list[Transport] = []
        """Those whose request in service was answered and which may have more to serve."""
        self._ticking: list[SocketServer | TlsEndpoint] = []
        self._next_tick = _NEVER
        self.watch(self._waker.fileno(), lambda now: self._waker.clear())

    # --- the loop -----------------------------------------------------------------------------------------------

    def turn(self, timeout: float | None) -> None:
        """Wait at most `timeout` seconds (None: until something happens) and do one turn."""
        # What resumable connections have already read is served without waiting.
        events = self._wait(0 if self._resumable else timeout)
        now = self.runtime.begin_turn()
        transports, scratch, ready = self._transports, self._scratch, self._ready
        start_of = _START.unpack_from
        fast_paths: dict[int, FastPath] = {}
        served_fast = 0
        owner: ConnectionOwner | None = None
        for fileno, mask in events:
            transport = transports.get(fileno)
            if transport is None:
                if fileno in self._watched:
                    self._watched[fileno](now)
                continue
            transport.last_active = now
            connection = transport.connection
            if mask != READ:
                self._other_events(transport, mask)
            if mask & READ:
                try:
                    if connection.state or connection.pending or connection.large is not None:
                        length = self._receiver.read(transport)
                    else:
                        length = transport.recv_into(scratch)
                        if length:
                            if connection.session.fast_paths is not fast_paths:
                                # Another node's connection, or another caller that an authorizer watches.
                                if served_fast and owner is not None:
                                    owner.served_fast(served_fast)
                                    served_fast = 0
                                owner = connection.owner
                                fast_paths = connection.session.fast_paths
                            size, word, correlation_id = start_of(scratch)
                            serve_fast = fast_paths.get(word)
                            # The commonest read, one frame of a common shape and nothing else, without further calls.
                            if (
                                serve_fast is not None
                                and size == length - 4
                                and 12 <= length < SCRATCH_BYTES
                                and serve_fast(connection, scratch, 4, length, word & 0xFFFF, correlation_id)
                            ):
                                served_fast += 1
                                if not transport.queued:
                                    transport.queued = True
                                    ready.append(transport)
                                continue
                            if length == SCRATCH_BYTES and transport.interest == READ:
                                self._poller.modify(fileno, NEWS)
                            connection.receive(scratch, length)
                    if length:
                        self._received(transport)
                    else:
                        self._ended(transport)
                except Exception as error:
                    self._not_read(transport, error)
            elif mask & ENDED:
                self.drop(transport, "ended by the peer")
        if served_fast and owner is not None:
            owner.served_fast(served_fast)
        self.runtime.end_turn()
        if self._resumable:
            self._resume_some()
        self._send_ready()
        if self._unserved:
            self._resumable += self._unserved
            self._unserved.clear()
        if now >= self._next_tick:
            self._tick(now)

    def _wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """(file descriptor, events) of the sockets that are ready; looks again and again for a moment if the last wait
        was short: to sleep and to be woken costs some 30 us on either side, more than the whole of a small request."""
        poll = self._poller.poll
        try:
            if self._last_wait_was_short and self.may_look and timeout != 0:
                for _ in range(LOOKS):
                    if events := poll(0, self.connections_per_turn):
                        return events
                self._last_wait_was_short = False
            if timeout == 0:
                return poll(0, self.connections_per_turn)
            clock = self.runtime.clock
            began = clock.now()
            events = poll(timeout, self.connections_per_turn)
            self._last_wait_was_short = clock.now() - began < _SHORT_WAIT_SECONDS
            return events
        except InterruptedError:
            return []

    def _send_ready(self) -> None:
        """Flush the outboxes that got something during the turn."""
        ready, self._ready = self._ready, []
        for transport in ready:
            transport.queued = False
            connection = transport.connection
            outbox = connection.outbox
            if len(outbox) == 1 and not connection.state and not connection.held:
                data = outbox[0]
                if type(data) is bytes:
                    # The commonest outbox, one answer, without a call; whatever goes wrong shows again in `_flush`.
                    try:
                        sent = transport.send(data)
                    except OSError:
                        sent = 0
                    if sent < len(data):
                        outbox[0] = memoryview(data)[sent:]
                    else:
                        outbox.clear()
                        if connection.outbox_bytes:
                            connection.sent_all()
                        continue
            self._flush(transport)

    def wake(self) -> None:
        """Make the current or next wait return at once; safe from other threads and from signal handlers."""
        self._waker.wake()

    @property
    def is_behind(self) -> bool:
        """Whether the next turn has something to do without any event."""
        return bool(self._ready or self._resumable or (self._keeps and self._keeps.is_behind))

    def next_wake(self) -> float:
        """The next monotonic second at which the reactor itself has something to do."""
        return self._next_tick

    # --- what transports and their owners ask for -----------------------------------------------------------------

    def send_soon(self, transport: Transport) -> None:
        """The outbox of `transport` got something: flush it at the end of the turn."""
        if not transport.queued:
            transport.queued = True
            self._ready.append(transport)

    def resume_soon(self, transport: Transport) -> None:
        """Serve what the connection of `transport` has kept."""
        self._resumable.append(transport)

    def next_connection_id(self) -> int:
        """An id that no other connection of this reactor has had."""
        self._last_id += 1
        return self._last_id

    def connection(self, connection_id: int) -> Connection | None:
        """The living connection of that id, whosever it is."""
        transport = self._by_id.get(connection_id)
        return None if transport is None else transport.connection

    def buffered_poller(self) -> BufferedPoller:
        """The poller from now on: one that knows of bytes which transports keep."""
        from pykafkad.server.buffered_poller import BufferedPoller

        if self._keeps is None:
            self._poller = self._keeps = BufferedPoller(self._poller)
        return self._keeps

    def add(self, connected: socket, connection: Connection, new: NewTransport = PlainTransport) -> Transport:
        """Serve `connection` through a socket that is connected and does not block."""
        transport = new(self, connected, connection, self.runtime.now)
        transport.interest = READ
        connection.transport = transport
        self._poller.register(transport.fileno, NEWS)
        self._transports[transport.fileno] = transport
        self._by_id[connection.id] = transport
        return transport

    def remove(self, transport: Transport) -> socket:
        """Let go of a transport without closing its socket, for another reactor's `add`."""
        del self._transports[transport.fileno], self._by_id[transport.connection.id]
        self._poller.unregister(transport.fileno)
        return transport.socket

    def remove_connection(self, connection: Connection) -> socket:
        """Let go of a connection's transport without closing its socket."""
        return self.remove(self._by_id[connection.id])

    def drop(self, transport: Transport, reason: str) -> None:
        """Close a transport; its connection is lost, for `reason` unless it was closed from here."""
        if self._transports.get(transport.fileno) is not transport:
            return
        self.remove(transport)
        transport.close()
        transport.connection.lost(reason)

    def drop_connection(self, connection: Connection, reason: str) -> None:
        """Close the transport of a connection, if it lives."""
        transport = self._by_id.get(connection.id)
        if transport is not None:
            self.drop(transport, reason)

    def local_addresses(self) -> set[str]:
        """The addresses of this side of all connections. A connection from one of them begins here, too."""
        names = (each.socket.getsockname() for each in self._transports.values())
        # Those of a pair have no names.
        return {address_text(name) for name in names if isinstance(name, tuple)}

    def watch(self, fileno: int, ready: Callable[[float], None], events: int = READ) -> None:
        """Call `ready(now)` in every turn in which `fileno` has one of `events`."""
        self._poller.register(fileno, events)
        self._watched[fileno] = ready

    def unwatch(self, fileno: int) -> None:
        """End that. Fine if a drain has ended it before."""
        if self._watched.pop(fileno, None) is not None:
            self._poller.unregister(fileno)

    def pause(self, fileno: int, paused: bool) -> None:
        """Look away from a watched descriptor, or look again."""
        self._poller.modify(fileno, 0 if paused else READ)

    def begin_ticking(self, each: SocketServer | TlsEndpoint) -> None:
        """Call `each.tick(now)` when its `next_tick` has passed; `plan_tick` tells of an earlier one."""
        self._ticking.append(each)
        self.plan_tick(each.next_tick)

    def end_ticking(self, each: SocketServer | TlsEndpoint) -> None:
        """Fine if it does not tick."""
        if each in self._ticking:
            self._ticking.remove(each)

    def plan_tick(self, at: float) -> None:
        """Somebody's `next_tick` is now `at`."""
        self._next_tick = min(self._next_tick, at)

    def drain(self, seconds_left: Callable[[], float]) -> None:
        """Send what the outboxes hold, reading and serving nothing more, until it is sent or
        `seconds_left()` is not above 0."""
        for transport in list(self._transports.values()):
            if transport.connection.outbox:
                self._flush(transport)
        # Answers that are still held at the end wait for followers: nobody can say when they come.
        while any(each.connection.outbox and not each.connection.held for each in self._transports.values()):
            left = seconds_left()
            if left <= 0:
                return
            for fileno, mask in self._poller.poll(min(left, 0.1), EVENTS_PER_TURN):
                ready = self._transports.get(fileno)
                if ready is None:
                    if fileno == self._waker.fileno():
                        self._waker.clear()
                    else:
                        # A connection attempt has ended: the poller would tell of it again and again, without a wait.
                        self.unwatch(fileno)
                elif mask & WRITE:
                    self._flush(ready)
                elif mask & ENDED:
                    self.drop(ready, "ended by the peer")
                else:
                    self._set_interest(ready, ready.interest & ~READ)

    def close(self) -> None:
        """Close every socket."""
        self.connector.close()
        for transport in list(self._transports.values()):
            self.drop(transport, "the broker stops")
        self._poller.close()
        self._waker.close()

    # --- bytes in -------------------------------------------------------------------------------------------------

    def _other_events(self, transport: Transport, mask: int) -> None:
        """Not only that bytes are here."""
        if mask & WRITE:
            self._last_wait_was_short = False
            self._flush(transport)
        elif mask & READ and transport.interest == READ:
            # Behind the bytes stands the peer's end, which comes only once.
            self._poller.modify(transport.fileno, NEWS)

    def _resume_some(self) -> None:
        left = self.resumes_per_turn
        for _ in range(_RESUMES_PER_TURN):
            resumable, self._resumable = self._resumable[:left], self._resumable[left:]
            left -= len(resumable)
            for transport in resumable:
                try:
                    self._resume(transport)
                except Exception as error:
                    self._broken(transport, error)
            self.runtime.end_turn()
            if not self._resumable or not left:
                return

    def _resume(self, transport: Transport) -> None:
        """Serve what the connection had already read when its request in service was answered, or when its share was
        used up."""
        connection = transport.connection
        if connection.state:
            if (
                connection.delayed is not None
                and not connection.is_blocked
                and len(connection.pending) < SCRATCH_BYTES // 2
                and self._transports.get(transport.fileno) is transport
            ):
                self._set_interest(transport, READ)
            return
        # With a full outbox it comes back when that has been flushed; until then there may be no room for more.
        if connection.outbox_bytes > OUTBOX_LIMIT_BYTES:
            return
        if not transport.interest & READ:
            self._set_interest(transport, transport.interest | READ)
        if kept := len(connection.pending):
            scratch = self._receiver.wide_scratch
            scratch[:kept] = connection.pending
            connection.receive(scratch, kept)
            self._received(transport)

    def _received(self, transport: Transport) -> None:
        """Look at what became of a connection that was just fed."""
        connection = transport.connection
        if connection.outbox and not transport.queued:
            transport.queued = True
            self._ready.append(transport)
        if (connection.state or connection.pending) and connection.has_more_to_serve():
            self._unserved[transport] = None

    # --- bytes out ------------------------------------------------------------------------------------------------

    def _flush(self, transport: Transport) -> None:
        """Write the outbox as far as the peer takes it, then close or resume as the connection's state asks."""
        if self._transports.get(transport.fileno) is not transport:
            return
        connection = transport.connection
        if connection.held:
            # Its answers wait for a sync; whether the peer takes more is asked again when they may leave.
            connection.count_held()
            self._set_interest(transport, transport.interest & ~WRITE)
            return
        outbox = connection.outbox
        if outbox:
            try:
                if transport.flush(outbox) >= _LARGE_ANSWER_BYTES:
                    self._last_wait_was_short = False
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self.drop(transport, error.strerror or "connection lost")
                return
            except StorageFailure as failure:
                # The size of the answer is already promised: it can't become an error any more.
                self.runtime.logs.error("server", "read-failed", peer=connection.peer, reason=failure)
                self.drop(transport, "its answer could not be read")
                return
        if connection.state == DRAINING:
            self.drop(transport, "closed")
        elif outbox:
            self._set_interest(transport, WRITE if connection.block() else READ | WRITE)
        elif connection.state or connection.outbox_bytes or transport.interest != READ:
            if connection.is_blocked or transport.interest & WRITE:
                # One that has kept enough behind a request in service reads again when that is answered.
                self._set_interest(transport, 0 if len(connection.pending) >= SCRATCH_BYTES // 2 else READ)
            connection.sent_all()

    def _set_interest(self, transport: Transport, interest: int) -> None:
        if transport.interest != interest:
            transport.interest = interest
            self._poller.modify(transport.fileno, NEWS if interest == READ else interest)

    # --- ends -----------------------------------------------------------------------------------------------------

    def _ended(self, transport: Transport) -> None:
        """The peer says nothing more: read again, and heeded, when what it said before is answered."""
        if transport.connection.owes_answers:
            transport.connection.peer_ended()
            self._set_interest(transport, transport.interest & ~READ)
        else:
            self.drop(transport, "closed by the peer")

    def _not_read(self, transport: Transport, error: Exception) -> None:
        """Reading, or serving what was read, raised."""
        if isinstance(error, (BlockingIOError, InterruptedError)):
            return
        if isinstance(error, OSError):
            self.drop(transport, error.strerror or "connection lost")
        else:
            self._broken(transport, error)

    def _broken(self, transport: Transport, error: Exception) -> None:
        self.runtime.unexpected(error, peer=transport.connection.peer)
        self.drop(transport, "unexpected error")

    def _tick(self, now: float) -> None:
        for each in list(self._ticking):
            if now >= each.next_tick:
                each.tick(now)
        self._next_tick = min((each.next_tick for each in self._ticking), default=_NEVER)
