"""A wire trace: the last requests of clients of the brokers of a process, with their answers, as bytes in a bounded
ring.

A broker without a trace does not know of this module: its connections, its fast paths and its dispatcher are as ever,
but for one look at `Runtime.trace` with each answer that no fast path gives. `start` puts itself in front of what
serves; `stop` takes itself away. What several brokers of one process ask of each other is left out. Secrets never enter
the ring (`trace_secrets.py`); `trace_formats.py` and `pcap.py` show what is in it."""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import islice
from struct import Struct

from pykafkad.errors import StorageFailure
from pykafkad.handlers import table
from pykafkad.log.file_slice import LogCut
from pykafkad.server import trace_secrets
from pykafkad.server.exchanges import Exchange, OpenExchange, as_exchange, kept_bytes
from pykafkad.server.fault_injection import EXEMPT_CLIENT_ID
from pykafkad.server.node_names import names_of_node
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Chunk, Connection
    from pykafkad.server.dispatch import ServedContext
    from pykafkad.server.exchanges import Short
    from pykafkad.server.runtime import Runtime
    from pykafkad.server.session import FastPath, FastPathsOf

    Serve = Callable[[Connection, memoryview, int, int], None]

EXCHANGES = 10_000
RING_BYTES = 16 * 1024 * 1024
"""The most that is kept: of exchanges, and of their bytes. The oldest ones go first, a hundredth of them at a time."""
FRAME_BYTES = 32 * 1024
"""The most that is kept of one request or answer."""

_START = Struct(">hhi")
_CORRELATION_ID = Struct(">i")
_INT16 = Struct(">h")


def _as_client_id(name: str) -> bytes:
    """A client id as a request has it."""
    encoded = name.encode()
    return _INT16.pack(len(encoded)) + encoded


_EXEMPT = _as_client_id(EXEMPT_CLIENT_ID)
_EXEMPT_LENGTH = len(EXEMPT_CLIENT_ID)
_CLIENT_ID_POSITION = 8


class _Tap:
    """Stands in front of what serves the connections of one broker while there is a trace."""

    __slots__ = ("_fast_paths", "_trace", "broker", "inner")

    def __init__(self, trace: WireTrace, broker: Broker) -> None:
        self._trace = trace
        self.broker = broker
        self.inner: Serve = broker.socket_server.serve
        # Those for which recording ones were made last, and these.
        self._fast_paths: tuple[dict[int, FastPath], dict[int, FastPath]] = ({}, {})

    def begin(self) -> None:
        """Record what its clients ask from now on."""
        self.inner = self.broker.socket_server.serve
        self._reroute(self.serve, self._traced_fast_paths)

    def end(self) -> None:
        """Record no more."""
        self._reroute(self.inner, None)

    def serve(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """Record a request, and have it served."""
        self._trace.serve(self.inner, connection, view, start, end)

    def _traced_fast_paths(self, fast_paths: dict[int, FastPath]) -> dict[int, FastPath]:
        """These, recorded. Most connections have the same ones, for which they are made once."""
        if fast_paths is not self._fast_paths[0]:
            self._fast_paths = fast_paths, {word: self._trace.traced(word, each) for word, each in fast_paths.items()}
        return self._fast_paths[1]

    def _reroute(self, serve: Serve, traced: FastPathsOf | None) -> None:
        """Have the connections of the broker, those of now and later ones, served by this. One whose login is under
        way goes on with that, and one that a fault has silenced stays silent. Each keeps its fast paths, if any."""
        server, sessions = self.broker.socket_server, self.broker.sessions
        before, server.serve = server.serve, serve
        sessions.traced = traced
        for connection in server.connections():
            if connection.serve == before:
                connection.serve = serve
            connection.session.lend_again()


class WireTrace:
    """The trace of a broker, or of several of one process. All methods are called on the loop."""

    def __init__(self, runtime: Runtime, brokers: Sequence[Broker], before: WireTrace | None = None) -> None:
        """`before` is that of the brokers whose place these take: what it has recorded stays. `brokers` are those that
        serve; there may be none at the moment."""
        self._runtime = runtime
        self._clock = self._runtime.clock
        self._wall_ms = self._clock.now_ms() - self._clock.now() * 1000
        self._ring: deque[OpenExchange | Short] = deque() if before is None else before._ring
        self._ring_bytes = sum(map(kept_bytes, self._ring))
        self.first: int = 1 if before is None else before.first
        """The number of the oldest exchange that is kept: they are counted from 1 on."""
        # By a connection's id: the exchange of its request in service.
        self._in_service: dict[int, OpenExchange] = {}
        self.is_on = False
        self._is_serving = False
        self._taps: list[_Tap] = []
        # Whose requests are not recorded, as a request begins with them.
        self._left_out: frozenset[bytes] = frozenset()
        self.follow(brokers)
        self._flexible = frames.flexible_versions()
        self._max_versions = {row.key: row.max_version for row in table.ROWS if row.max_version is not None}
        self.frame_bytes: int = FRAME_BYTES if before is None else before.frame_bytes
        """The most that is kept of one request or answer."""
        self.dropped = 0
        """How many exchanges the ring has lost to newer ones."""

    def follow(self, brokers: Sequence[Broker]) -> None:
        """These are the brokers from now on: one that has started is recorded too, if the trace is on."""
        known = {each.broker: each for each in self._taps}
        self._taps = [known.get(each) or _Tap(self, each) for each in brokers]
        if len(brokers) > 1:
            # One that is down now was among them, and the others may still be asked by it: all stay.
            names = (name for each in brokers for name in names_of_node(each.node_id))
            self._left_out |= frozenset(map(_as_client_id, names))
        if self.is_on:
            for each in self._taps:
                if each.broker not in known:
                    each.begin()

    # --- on and off ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Record from now on; fine if that is so already."""
        if self.is_on:
            return
        self.is_on = True
        self._runtime.trace = self
        for each in self._taps:
            each.begin()

    def stop(self) -> None:
        """Record no more; what was recorded stays."""
        if not self.is_on:
            return
        self.is_on = False
        self._runtime.trace = None
        for each in self._taps:
            each.end()
        self._in_service.clear()

    def around(self, broker: Broker, serve: Serve) -> Serve:
        """What serves the connections of a broker in place of this, and records."""
        for each in self._taps:
            if each.broker is broker:
                each.inner = serve
                return each.serve
        return serve

    # --- recording ----------------------------------------------------------------------------------------------------

    def serve(self, inner: Serve, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """Record a request, and have it served by `inner`."""
        self._in_service.pop(connection.id, None)
        exchange = self._begin(connection, view, start, end)
        if exchange is not None:
            self._keep(exchange)
            servers = [each.broker.socket_server for each in self._taps]
            if len(self._in_service) > 2 * sum(map(len, servers)) + 100:
                alive = {each.id for server in servers for each in server.connections()}
                self._in_service = {each: kept for each, kept in self._in_service.items() if each in alive}
            self._in_service[connection.id] = exchange
        self._is_serving = True
        try:
            inner(connection, view, start, end)
        finally:
            self._is_serving = False

    def traced(self, word: int, fast_path: FastPath) -> FastPath:
        """A fast path that records what it serves. `word` is what its frames begin with.

        Most frames are short and answered in one buffer: those are recorded in few steps, as every step counts where
        a request takes some microseconds."""
        key = word >> 16
        if key in trace_secrets.KEYS:
            return partial(self._serve_fast, fast_path)
        ring, now = self._ring, self._clock.now

        def serve(
            connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
        ) -> bool:
            size_bytes = end - start
            # Where the dispatcher asks a fast path, the request is recorded already.
            if self._is_serving or self._left_out or size_bytes > self.frame_bytes or size_bytes < 10:
                return self._serve_fast(fast_path, connection, view, start, end, version, correlation_id)
            request = view[start:end].tobytes()
            # Most client ids have another length.
            if request[9] == _EXEMPT_LENGTH and request.startswith(_EXEMPT, _CLIENT_ID_POSITION):
                return fast_path(connection, view, start, end, version, correlation_id)
            before = len(connection.outbox)
            if not fast_path(connection, view, start, end, version, correlation_id):
                return False
            outbox = connection.outbox
            # The time of the turn that has read it: to ask for the time once costs as much as the copy.
            began = connection.transport.last_active
            if len(outbox) == before + 1:
                answer: Any = outbox[before]
                if type(answer) is bytearray:
                    # It may change, as when a write fails (`rewritten`).
                    answer = bytes(answer)
                if type(answer) is bytes and len(answer) - 4 <= self.frame_bytes:
                    source, local, number = connection.peer, connection.local_address, connection.id
                    short = (number, source, local, began, now(), key, version, correlation_id, request, answer)
                    ring.append(short)
                    self._ring_bytes += size_bytes + len(answer) - 4
                    if self._ring_bytes > RING_BYTES or len(ring) > EXCHANGES:
                        self._make_room()
                    return True
            exchange = OpenExchange(connection, began, (key, version, correlation_id), size_bytes)
            exchange.request = request
            self._keep(exchange)
            self._end(exchange, outbox[before:])
            return True

        return serve

    def _serve_fast(
        self,
        fast_path: FastPath,
        connection: Connection,
        view: memoryview,
        start: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> bool:
        """Record a request of any kind that a fast path serves."""
        is_known = self._is_serving
        exchange = None if is_known else self._begin(connection, view, start, end)
        before = len(connection.outbox)
        if not fast_path(connection, view, start, end, version, correlation_id):
            return False
        if is_known:
            exchange = self._in_service.pop(connection.id, None)
        elif exchange is not None:
            self._keep(exchange)
        if exchange is not None:
            self._end(exchange, connection.outbox[before:])
        return True

    def _begin(self, connection: Connection, view: memoryview, start: int, end: int) -> OpenExchange | None:
        """The record of a request, but for the test's own and for what is no request. It is not in the ring yet."""
        name = start + _CLIENT_ID_POSITION
        if end - name < 2 or view[name : name + len(_EXEMPT)] == _EXEMPT:
            return None
        if (
            self._left_out
            and bytes(view[name : name + 2 + max(0, _INT16.unpack_from(view, name)[0])]) in self._left_out
        ):
            return None
        head = _START.unpack_from(view, start)
        key, version, _ = head
        if not version <= self._max_versions.get(key, -1):
            return None
        exchange = OpenExchange(connection, self._clock.now(), head, end - start)
        if key in trace_secrets.KEYS:
            self._keep_request(exchange, bytes(view[start:end]))
        else:
            exchange.request = bytes(view[start : min(end, start + self.frame_bytes)])
        return exchange

    def answered(self, connection: Connection, context: ServedContext, chunks: list[Chunk]) -> None:
        """An answer goes into the outbox of a connection."""
        exchange = self._in_service.pop(connection.id, None)
        if exchange is None or exchange.head[2] != context.correlation_id:
            if context.client_id == EXEMPT_CLIENT_ID or _as_client_id(context.client_id) in self._left_out:
                return
            if not any(each.broker.socket_server.connection(connection.id) is connection for each in self._taps):
                # Other nodes ask a controller of this process.
                return
            # The requests of a login do not come by `serve`, and some came before the trace.
            exchange = self._of_context(connection, context)
            self._keep(exchange)
        self._end(exchange, chunks)

    def _of_context(self, connection: Connection, context: ServedContext) -> OpenExchange:
        key, version = context.route.row.key, context.version
        exchange = OpenExchange(connection, self._clock.now(), (key, version, context.correlation_id), 0)
        exchange.client_id = context.client_id
        if context.request is not None:
            tagged = version >= self._flexible.get(key, 32767)
            chunks: list[Any] = [frames.start_request(key, version, context.correlation_id, context.client_id, tagged)]
            try:
                messages.encoder(type(context.request), version)(context.request, chunks)
            except Exception:
                # A handler may have changed it so that it fits its version no more, which must not cost the answer.
                return exchange
            self._keep_request(exchange, b"".join(chunks)[4:])
        return exchange

    def _keep_request(self, exchange: OpenExchange, whole: bytes) -> None:
        key, version, _ = exchange.head
        if key in trace_secrets.KEYS:
            whole = trace_secrets.without(whole, key, version, False, self._flexible)
        exchange.request_bytes = len(whole)
        exchange.request = whole[: self.frame_bytes]

    def _end(self, exchange: OpenExchange, chunks: list[Chunk]) -> None:
        exchange.ended = self._clock.now()
        key, version, _ = exchange.head
        # Secrets are found in a whole answer only.
        may_have_secrets = key in trace_secrets.KEYS
        most = self.frame_bytes
        whole, size = _start_of(chunks, None if may_have_secrets else most + 4)
        answer = whole[4:]
        exchange.answer_bytes = size - 4
        if may_have_secrets:
            answer = trace_secrets.without(answer, key, version, True, self._flexible)
            exchange.answer_bytes = len(answer)
        exchange.answer = answer[:most]
        self._ring_bytes += len(exchange.answer)
        if self._ring_bytes > RING_BYTES:
            self._make_room()

    def rewritten(self, connection: Connection, answer: bytes | bytearray) -> None:
        """An answer that was told of already is replaced before it leaves: what it promised has failed."""
        (correlation_id,) = _CORRELATION_ID.unpack_from(answer, 4)
        which = (connection.id, connection.peer, correlation_id)
        for back, kept in enumerate(reversed(self._ring), 1):
            shown = as_exchange(kept, self._wall_ms)
            if (shown.connection_id, shown.peer, shown.correlation_id) == which and shown.answer is not None:
                self._ring_bytes -= len(shown.answer)
                self._end(self._opened(connection, back), [answer])
                break

    def _opened(self, connection: Connection, back: int) -> OpenExchange:
        """The exchange at that place from the end of the ring, from now on as one that can be changed."""
        kept = self._ring[-back]
        if not isinstance(kept, tuple):
            return kept
        exchange = OpenExchange(connection, kept[3], kept[5:8], len(kept[8]))
        exchange.request = kept[8]
        self._ring[-back] = exchange
        return exchange

    def _keep(self, exchange: OpenExchange) -> None:
        self._ring.append(exchange)
        self._ring_bytes += len(exchange.request)
        if len(self._ring) > EXCHANGES or self._ring_bytes > RING_BYTES:
            self._make_room()

    def _make_room(self) -> None:
        """Forget the oldest, some more than need be, so that this is seldom called."""
        ring = self._ring
        before = left = len(ring)
        ring_bytes = self._ring_bytes
        most, most_bytes = EXCHANGES - EXCHANGES // 100, RING_BYTES - RING_BYTES // 100
        while left > most or (ring_bytes > most_bytes and left > 1):
            gone = ring.popleft()
            left -= 1
            if isinstance(gone, tuple):
                ring_bytes -= len(gone[8]) + len(gone[9]) - 4
                continue
            ring_bytes -= kept_bytes(gone)
            # An answer that comes late for it is not counted.
            if gone.answer is None and self._in_service.get(gone.connection_id) is gone:
                del self._in_service[gone.connection_id]
        self.first += before - left
        self.dropped += before - left
        self._ring_bytes = ring_bytes

    # --- what was recorded --------------------------------------------------------------------------------------------

    def exchanges(self, limit: int | None = None, after: int = 0) -> list[Exchange]:
        """What the ring holds, oldest first; with a limit the last ones, and those alone whose number is larger."""
        older = max(0, after + 1 - self.first, 0 if limit is None else len(self._ring) - limit)
        return [as_exchange(each, self._wall_ms) for each in islice(self._ring, older, None)]

    @property
    def size(self) -> int:
        """How many exchanges the ring holds."""
        return len(self._ring)

    def clear(self) -> None:
        """Forget what was recorded."""
        self.first += len(self._ring)
        self._ring.clear()
        self._in_service.clear()
        self._ring_bytes = 0


def _start_of(chunks: list[Chunk], limit: int | None) -> tuple[bytes, int]:
    """The first bytes of an answer, all without a limit, and the size of all of it."""
    parts: list[bytes] = []
    size = 0
    if limit is None:
        limit = sum(len(each) for each in chunks)
    for chunk in chunks:
        each: Any = chunk
        length = getattr(each, "chunk_size", None)
        left = limit - size
        size += len(each) if length is None else length
        if left <= 0:
            continue
        if length is None:
            parts.append(bytes(each[:left]))
            continue
        try:
            parts.append(each.up_to(left).pread())
        except (StorageFailure, LogCut):
            limit = 0
    return b"".join(parts), size
