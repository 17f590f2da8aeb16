"""Sockets and the loop: accept, read, serve, write.

Only this module and `binding.py`, which opens what listens, touch the network. One turn, in this order: wait for
sockets; read and serve; take finished offloaded jobs; fire timers; retry touched waits; one gathered write per log that
got records; retry what those writes touched; flush the outboxes.
"""

from __future__ import annotations

import os
import select
import socket
from struct import Struct

from pykafkad.errors import StorageFailure
from pykafkad.server.binding import address_text, bind_all, refusal
from pykafkad.server.connection import OUTBOX_LIMIT_BYTES, SCRATCH_BYTES, Connection
from pykafkad.server.logs import logger
from pykafkad.server.sending import send_many

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.server.broker import Broker
    from pykafkad.server.runtime import Runtime

log = logger("server")

_IN = select.EPOLLIN
_OUT = select.EPOLLOUT
_ENDED = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP
_NEWS = _IN | select.EPOLLRDHUP | select.EPOLLET
"""Bytes or an end that came since: a read that finds less than there is room for took all, and the kernel need not look
again."""

_ACCEPTS_PER_TURN = 128
_RESUMES_PER_TURN = 8
"""How often in a turn connections whose parked request was answered go on with what they have read; then others are
looked at."""

_START = Struct(">iIi")
"""A frame's size, its API key and version as one number, and its correlation id."""

_BUFFERS = (bytes, bytearray)

_SHORT_WAIT_SECONDS = 50e-6
LOOKS = 100
"""How often to look for ready sockets before going to sleep: about as long as a short wait."""

_LARGE_ANSWER_BYTES = 256 * 1024
"""A peer that takes this much at once, or drains what it could not take, needs a while: looking for it would only burn
the processor."""

_IDLE_SCAN_SECONDS = 15.0
_ACCEPT_PAUSE_SECONDS = 0.2


class Reactor:
    """Owns every socket of a process. `runtime` is told of turns; `node` is handed frames and hands back answers."""

    def __init__(self, runtime: Runtime, *, max_frame_bytes: int, idle_seconds: float, max_connections: int) -> None:
        self.runtime = runtime
        self.node: Broker | None = None
        self._max_frame_bytes = max_frame_bytes
        self._idle_seconds = idle_seconds
        self._max_connections = max_connections
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._by_id: dict[int, Connection] = {}
        self._listeners: dict[int, tuple[socket.socket, object]] = {}
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._large_buffers: list[bytearray] = []
        self._next_id = 0
        self._wake_reader, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._epoll.register(self._wake_reader, _IN)
        self._last_wait_was_short = False
        self._next_idle_scan = 0.0
        self._accept_again_at: float | None = None
        self.ready: list[Connection] = []
        """Connections with something in their outbox, in the order in which they got it."""
        self._unserved: dict[Connection, None] = {}
        self.resumable: list[Connection] = []
        """Connections whose request in service was answered and which may have more to serve."""

    # --- listening ----------------------------------------------------------------------------------------------

    def listen(self, host: str, port: int, listener: object, *, send_buffer_bytes: int | None, backlog: int) -> int:
        """Bind every address of `host` (all of them when empty) to one port and return it; 0 picks a free port. For
        `send_buffer_bytes` see `bind_all`. Raises OSError with the address in its text.
        """
        for each in bind_all(host, port, send_buffer_bytes, backlog):
            self._listeners[each.fileno()] = (each, listener)
            self._epoll.register(each.fileno(), _IN)
            port = each.getsockname()[1]
        return port

    def stop_listening(self) -> None:
        """Refuse new connections from now on."""
        for each, _ in self._listeners.values():
            self._epoll.unregister(each.fileno())
            each.close()
        self._listeners.clear()

    # --- the loop -----------------------------------------------------------------------------------------------

    def turn(self, timeout: float | None) -> None:
        """Wait at most `timeout` seconds (None: until something happens) and do one turn."""
        # What resumable connections have already read is served without waiting.
        events = self._wait(0 if self.resumable else timeout)
        node = self.node
        now = self.runtime.begin_turn()
        connections = self._connections
        scratch = self._scratch
        start_of = _START.unpack_from
        served_fast = 0
        for fileno, mask in events:
            connection = connections.get(fileno)
            if connection is None:
                self._service(fileno, now)
                continue
            connection.last_active = now
            if mask != _IN:
                if mask & _OUT:
                    self._last_wait_was_short = False
                    self._flush(connection)
                elif mask & _IN and connection.interest == _IN:
                    # Behind the bytes stands the peer's end, which comes only once.
                    self._epoll.modify(fileno, _NEWS)
            if mask & _IN:
                try:
                    if connection.muted or connection.pending or connection.large is not None:
                        length = self._read(connection)
                    else:
                        length = connection.recv_into(scratch)
                        if length:
                            size, word, correlation_id = start_of(scratch)
                            serve_fast = connection.session.fast_paths.get(word)
                            # The commonest read, one frame of a common shape and nothing else, without further calls.
                            if (
                                serve_fast is not None
                                and size == length - 4
                                and 12 <= length < SCRATCH_BYTES
                                and serve_fast(connection, scratch, 4, length, word & 0xFFFF, correlation_id)
                            ):
                                served_fast += 1
                            else:
                                if length == SCRATCH_BYTES:
                                    self._epoll.modify(fileno, _NEWS)
                                connection.receive(scratch, length)
                    if not length:
                        self._ended(connection)
                    elif connection.muted or connection.pending:
                        self._received(connection)
                except (BlockingIOError, InterruptedError):
                    pass
                except OSError as error:
                    self._drop(connection, error.strerror or "connection lost")
                except Exception as error:
                    self._broken(connection, error)
            elif mask & _ENDED:
                self._drop(connection, "ended by the peer")
        node.metrics.requests += served_fast
        self.runtime.end_turn()
        if self.resumable:
            self._resume_some()
        self._send_ready()
        if self._unserved:
            self.resumable += self._unserved
            self._unserved.clear()
        if now >= self._next_idle_scan:
            self._scan_idle(now)
        if self._accept_again_at is not None and now >= self._accept_again_at:
            self._accept_again()

    def _wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """(file descriptor, events) of the sockets that are ready; looks again and again for a moment if the last wait
        was short.

        To sleep and to be woken costs some 30 us on either side, more than the whole of a small request.
        """
        poll = self._epoll.poll
        try:
            if self._last_wait_was_short and timeout != 0:
                for _ in range(LOOKS):
                    if events := poll(0, 256):
                        return events
                self._last_wait_was_short = False
            if timeout == 0:
                return poll(0, 256)
            began = self.runtime.clock.now()
            events = poll(timeout, 256)
            self._last_wait_was_short = self.runtime.clock.now() - began < _SHORT_WAIT_SECONDS
            return events
        except InterruptedError:
            return []

    def _send_ready(self) -> None:
        """Flush the outboxes that got something during the turn."""
        ready, self.ready = self.ready, []
        for connection in ready:
            connection.queued = False
            outbox = connection.outbox
            if len(outbox) == 1 and not connection.muted:
                data = outbox[0]
                if type(data) is bytes:
                    # The commonest outbox, one answer, without a call; whatever goes wrong shows again in `_flush`.
                    try:
                        sent = connection.send(data)
                    except OSError:
                        sent = 0
                    if sent < len(data):
                        outbox[0] = memoryview(data)[sent:]
                    else:
                        outbox.clear()
                        if connection.outbox_bytes <= OUTBOX_LIMIT_BYTES:
                            connection.outbox_bytes = 0
                            continue
            self._flush(connection)

    def wake(self) -> None:
        """Make the current or next wait return at once; safe from other threads and from signal handlers."""
        try:
            os.write(self._wake_writer, b"w")
        except BlockingIOError:
            pass

    def next_wake(self) -> float:
        """The next monotonic second at which the reactor itself has something to do."""
        return (
            self._next_idle_scan if self._accept_again_at is None else min(self._next_idle_scan, self._accept_again_at)
        )

    # --- what the node asks for -----------------------------------------------------------------------------------

    def connection(self, connection_id: int) -> Connection | None:
        """The living connection of that id."""
        return self._by_id.get(connection_id)

    def send_soon(self, connection: Connection) -> None:
        """The outbox of `connection` got something: flush it at the end of the turn."""
        if not connection.queued:
            connection.queued = True
            self.ready.append(connection)

    def release(self, connection: Connection) -> None:
        """The answers of a held connection may leave: flush them at the end of the turn."""
        connection.held = False
        if self._by_id.get(connection.id) is connection:
            if connection.blocked:
                self._set_interest(connection, _OUT)
            self.send_soon(connection)

    def drain(self, seconds_left: Callable[[], float]) -> None:
        """Send what the outboxes hold, reading and serving nothing more, until it is sent or `seconds_left()` is not
        above 0."""
        for connection in list(self._connections.values()):
            if connection.outbox:
                self._flush(connection)
        while any(connection.outbox for connection in self._connections.values()):
            left = seconds_left()
            if left <= 0:
                return
            for fileno, mask in self._epoll.poll(min(left, 0.1), 256):
                connection = self._connections.get(fileno)
                if connection is None:
                    self._service(fileno, 0.0)
                elif mask & _OUT:
                    self._flush(connection)
                elif mask & _ENDED:
                    self._drop(connection, "ended by the peer")
                else:
                    self._set_interest(connection, connection.interest & ~_IN)

    def hand_over(self, connection: Connection) -> socket.socket:
        """Let go of a connection without closing it; its socket, for another reactor's `adopt`."""
        del self._by_id[connection.id], self._connections[connection.fileno]
        self._epoll.unregister(connection.fileno)
        return connection.socket

    def adopt(self, handed_over: socket.socket, listener: object) -> Connection | None:
        """Take a socket that another reactor handed over; None if its peer has gone."""
        try:
            return self._take(handed_over, handed_over.getpeername(), listener, self.runtime.now)
        except OSError:
            handed_over.close()
            return None

    def close(self) -> None:
        """Close every socket."""
        self.stop_listening()
        for connection in list(self._connections.values()):
            self._drop(connection, "the broker stops")
        self._epoll.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    # --- sockets in -----------------------------------------------------------------------------------------------

    def _service(self, fileno: int, now: float) -> None:
        if fileno == self._wake_reader:
            try:
                os.read(self._wake_reader, 4096)
            except BlockingIOError:
                pass
        elif fileno in self._listeners:
            self._accept(*self._listeners[fileno], now)

    def _accept(self, server: socket.socket, listener: object, now: float) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                accepted, address = server.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if isinstance(error, ConnectionError):
                    continue
                # Out of descriptors: without a pause the listener would stay readable and the loop would spin.
                log.warning("accept-failed", reason=error.strerror)
                self._epoll.modify(server.fileno(), 0)
                self._accept_again_at = now + _ACCEPT_PAUSE_SECONDS
                return
            if (why := refusal(accepted.fileno(), len(self._connections), self._max_connections)) is not None:
                self.node.metrics.connections_refused += 1
                log.warning("connection-refused", peer=address_text(address), **why)
                accepted.close()
                continue
            accepted.setblocking(False)
            self._take(accepted, address, listener, now)

    def _take(self, accepted: socket.socket, address: tuple, listener: object, now: float) -> Connection:
        self._next_id += 1
        connection = Connection(
            self._next_id, address_text(address), self.node.serve, self._max_frame_bytes, self._large_buffers
        )
        connection.attach(accepted, listener)
        connection.session = self.node.sessions.open(listener, connection.peer)
        connection.last_active = now
        connection.interest = _IN
        self._connections[connection.fileno] = connection
        self._by_id[connection.id] = connection
        self._epoll.register(connection.fileno, _NEWS)
        self.node.metrics.connections_accepted += 1
        return connection

    def _read(self, connection: Connection) -> int:
        """Read for a connection that is muted, has kept bytes, or is in the middle of a large frame; the bytes read."""
        if connection.interest == _IN:
            # There may be more than there is room for.
            self._epoll.modify(connection.fileno, _NEWS)
        if connection.large is not None:
            target = connection.large_target()
            length = connection.recv_into(target)
            # The view must be gone before the buffer may grow or be emptied.
            target.release()
            if length:
                connection.receive_large(length)
            return length
        if connection.muted:
            return self._read_muted(connection)
        scratch = self._scratch
        kept = len(connection.pending)
        scratch[:kept] = connection.pending
        length = connection.recv_into(scratch[kept:])
        if length:
            connection.receive(scratch, kept + length)
        return length

    def _read_muted(self, connection: Connection) -> int:
        """Keep what arrives behind a request in service, at most as much as `_resume` can serve at once; the bytes
        read. There is room for some: what is in service took some of the scratch, and with half of it kept nothing more
        is read."""
        length = connection.recv_into(self._scratch[: SCRATCH_BYTES - len(connection.pending)])
        if length:
            connection.receive_muted(self._scratch, length)
        if len(connection.pending) >= SCRATCH_BYTES // 2:
            self._set_interest(connection, connection.interest & ~_IN)
        return length

    def _resume_some(self) -> None:
        for _ in range(_RESUMES_PER_TURN):
            resumable, self.resumable = self.resumable, []
            for connection in resumable:
                try:
                    self._resume(connection)
                except Exception as error:
                    self._broken(connection, error)
            self.runtime.end_turn()
            if not self.resumable:
                return

    def _resume(self, connection: Connection) -> None:
        """Serve what the connection had already read when its request in service was answered, or when its share was
        used up."""
        if connection.muted:
            if connection.close_reason is not None:
                self.send_soon(connection)
            elif (
                connection.delayed is not None
                and not connection.blocked
                and len(connection.pending) < SCRATCH_BYTES // 2
            ):
                self._set_interest(connection, _IN)
            return
        # With a full outbox it comes back when that has been flushed; until then there may be no room for more.
        if connection.outbox_bytes > OUTBOX_LIMIT_BYTES:
            return
        if not connection.interest & _IN:
            self._set_interest(connection, connection.interest | _IN)
        if kept := len(connection.pending):
            self._scratch[:kept] = connection.pending
            connection.receive(self._scratch, kept)
            self._received(connection)

    def _received(self, connection: Connection) -> None:
        """Look at what became of a connection that was just fed."""
        if connection.muted:
            if connection.close_reason is not None:
                self.send_soon(connection)
            elif connection.delayed is not None:
                # The request behind may have come in the same read as the one that was parked, or later.
                self.node.end_early(connection)
        elif connection.pending and connection.outbox_bytes <= OUTBOX_LIMIT_BYTES and connection.has_whole_frame():
            self._unserved[connection] = None

    # --- sockets out ----------------------------------------------------------------------------------------------

    def _flush(self, connection: Connection) -> None:
        """Write the outbox as far as the peer takes it, then close or resume as the connection's state asks."""
        if connection.held:
            # Its answers wait for a sync; whether the peer takes more is asked again when they may leave.
            self._set_interest(connection, connection.interest & ~_OUT)
            return
        outbox = connection.outbox
        if outbox:
            try:
                data = outbox[0]
                if len(outbox) == 1 and type(data) in _BUFFERS:
                    sent = connection.send(data)
                    if sent == len(data):
                        outbox.clear()
                    else:
                        outbox[0] = memoryview(data)[sent:]
                elif send_many(connection.socket, outbox) >= _LARGE_ANSWER_BYTES:
                    self._last_wait_was_short = False
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self._drop(connection, error.strerror or "connection lost")
                return
            except StorageFailure as failure:
                # The size of the answer is already promised: it can't become an error any more.
                log.error("read-failed", peer=connection.peer, reason=failure)
                self._drop(connection, "its answer could not be read")
                return
        if not outbox:
            limited = connection.outbox_bytes > OUTBOX_LIMIT_BYTES
            connection.outbox_bytes = 0
            if connection.close_reason is not None:
                self._drop(connection, connection.close_reason)
            elif connection.blocked:
                connection.blocked = False
                # One that has kept enough behind a request in service reads again when that is answered.
                self._set_interest(connection, 0 if len(connection.pending) >= SCRATCH_BYTES // 2 else _IN)
                if not connection.update_muted():
                    self.resumable.append(connection)
            elif limited and not connection.muted:
                self.resumable.append(connection)
        elif connection.close_reason is not None:
            self._drop(connection, connection.close_reason)
        elif not connection.blocked:
            connection.blocked = connection.muted = True
            self._set_interest(connection, _OUT)

    def _set_interest(self, connection: Connection, interest: int) -> None:
        if connection.interest != interest:
            connection.interest = interest
            self._epoll.modify(connection.fileno, _NEWS if interest == _IN else interest)

    # --- ends -----------------------------------------------------------------------------------------------------

    def _ended(self, connection: Connection) -> None:
        """The peer says nothing more: read again, and heeded, when what it said before is answered."""
        if connection.owes_answers:
            self._set_interest(connection, connection.interest & ~_IN)
        else:
            self._drop(connection, "closed by the peer")

    def _drop(self, connection: Connection, reason: str) -> None:
        if self._by_id.pop(connection.id, None) is None:
            return
        del self._connections[connection.fileno]
        self._epoll.unregister(connection.fileno)
        connection.socket.close()
        connection.outbox.clear()
        connection.muted = True
        connection.pending = b""
        if connection.close_reason is None:
            connection.close_reason = reason
            log.debug("connection-closed", peer=connection.peer, reason=reason)
        else:
            self.node.metrics.frames_refused += 1
            log.warning("connection-closed", peer=connection.peer, reason=connection.close_reason)
        self.node.metrics.connections_closed += 1
        self.node.connection_lost(connection)

    def _broken(self, connection: Connection, error: Exception) -> None:
        self.runtime.unexpected(error, peer=connection.peer)
        self._drop(connection, "unexpected error")

    def _scan_idle(self, now: float) -> None:
        self._next_idle_scan = now + min(_IDLE_SCAN_SECONDS, max(self._idle_seconds / 4, 0.05))
        if self._large_buffers:
            self._large_buffers.pop()
        for connection in [each for each in self._connections.values() if now - each.last_active > self._idle_seconds]:
            if connection.delayed is None:
                self._drop(connection, "idle longer than connections.max.idle.ms")

    def _accept_again(self) -> None:
        self._accept_again_at = None
        for each, _ in self._listeners.values():
            self._epoll.modify(each.fileno(), _IN)
