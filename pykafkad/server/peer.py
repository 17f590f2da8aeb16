"""An outgoing connection: requests go to another node, and each comes back as its answer or as a failure.

A `Peer` connects when it has something to send. It begins each connection with a greeting (`peer_greeting.py`), which
asks for the versions of the other side's APIs; each request then goes in the newest version that both sides know. It
numbers the requests, has at most so many of them on the wire and in its queue, and gives up those that are not answered
in time. After a connection that failed it waits before it tries again, longer each time and never for exactly as long
as others do. It is deterministic: sockets, time and chance are its runtime's."""

from __future__ import annotations

from collections import deque, namedtuple
from struct import Struct, error as StructError

from pykafkad.errors import ProtocolError
from pykafkad.handlers import table
from pykafkad.server import peer_greeting
from pykafkad.server.connection import Connection
from pykafkad.server.frame_buffers import FrameBuffers
from pykafkad.server.peer_greeting import Greeting, LoginRefused
from pykafkad.server.peer_types import DISCONNECTED, PLAIN_TEXT, REFUSED, TIMED_OUT, Failure, Security
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.handlers.table import Api
    from pykafkad.server.connection import Chunk
    from pykafkad.server.connector import Connector
    from pykafkad.server.local_links import LocalLinks
    from pykafkad.server.runtime import Runtime

    Then = Callable[[object], object]

_CORRELATION_ID = Struct(">i")
_DEADLINE = "deadline"
_LOGIN = "login"
_LOGIN_SHARE = 0.85
"""After this share of its time a login is renewed, as Kafka's clients do at the earliest."""
_TRY_AGAIN = "try again"
_CONNECT = "connect"
_DELIVER = "deliver"
_REFUSE = "refuse"
_JITTER = 0.2

Limits = namedtuple(
    "Limits",
    (
        "max_in_flight",
        "max_queued",
        "request_timeout_ms",
        "connect_timeout_ms",
        "backoff_ms",
        "backoff_max_ms",
        "max_frame_bytes",
        "waits_for_connection",
    ),
    defaults=(5, 1000, 30_000, 10_000, 50, 1_000, 100 * 1024 * 1024, True),
)
Limits.__doc__ = """What a peer may take: requests on the wire, requests that wait behind them, the time of one request
from `send` to its answer, that of a connection attempt, the pause after a first failed connection and the longest one,
and the size of an answer; and whether a request waits while connections fail, or fails with the next one, for those who
can ask somebody else. The defaults are those of Kafka's clients."""


class _Request:
    """One request on its way. `then` is None for those of the greeting."""

    __slots__ = ("correlation_id", "deadline", "message", "row", "tagged", "then", "version")

    def __init__(self, row: Api, message: messages.Struct, deadline: float, then: Then | None) -> None:
        self.row = row
        self.message: messages.Struct | None = message
        """None when it has left."""
        self.deadline = deadline
        self.then = then
        self.correlation_id = 0
        self.version = 0
        self.tagged = False
        """Whether the answer's header has tagged fields."""


class Peer:
    """Requests to one address. `then` of each `send` is called once, in a later turn, with an answer or a `Failure`."""

    def __init__(
        self,
        runtime: Runtime,
        host: str,
        port: int,
        *,
        client_id: str,
        limits: Limits = Limits(),  # noqa: B008
        security: Security = PLAIN_TEXT,
        host_name: str | None = None,
        connector: Connector | LocalLinks | None = None,
    ) -> None:
        """`host` is an address as digits, or a name that the reactor's network knows; `host_name` is the name that the
        other side's certificate must have, `host` by default. `connector` is the reactor's by default."""
        self._connector = runtime.reactor.connector if connector is None else connector
        self.host = host
        self.port = port
        self._security = security
        self._host_name = host_name or host
        self._runtime = runtime
        self._client_id = client_id
        self._limits = limits
        self._connection: Connection | None = None
        self._greeting: Greeting | None = None
        """That of the connection; None before it is connected."""
        self._is_ready = False
        """Whether the greeting is over."""
        self._is_closed = False
        self._failures = 0
        """How many connections have failed since one was connected."""
        self._last_correlation_id = 0
        self._queued: deque[_Request] = deque()
        self._in_flight: deque[_Request] = deque()
        self._pool = FrameBuffers()
        self._ended: list[tuple[Then, object]] = []

    def __repr__(self) -> str:
        return f"Peer({self.host}:{self.port}, {len(self._in_flight)} in flight, {len(self._queued)} queued)"

    def send(self, request: messages.Struct, then: Then) -> None:
        """Send a request, in the newest version of its API that both sides have."""
        if self._is_closed or len(self._queued) >= self._limits.max_queued:
            self._end(then, REFUSED)
            return
        self._queued.append(self._request(request, then))
        self._plan_deadline()
        if self._is_ready:
            self._send_queued()
        elif self._connection is None and not self._failures:
            self._connect()

    def _request(self, message: messages.Struct, then: Then | None) -> _Request:
        row = table.by_key(messages.record_type(type(message)))
        assert row is not None and row.max_version is not None, f"{type(message).__name__} is no request of this broker"
        return _Request(row, message, self._runtime.now + self._limits.request_timeout_ms / 1000, then)

    def close(self) -> None:
        """Send nothing more; what is on its way is disconnected."""
        self._is_closed = True
        for key in (_DEADLINE, _TRY_AGAIN, _CONNECT, _LOGIN):
            self._runtime.timers.cancel((self, key))
        self._disconnect("closed")
        self._fail_queued(REFUSED)

    # --- the connection -------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        runtime = self._runtime
        connection = self._connection = Connection(
            runtime.reactor.next_connection_id(),
            f"{self.host}:{self.port}",
            self,
            self._limits.max_frame_bytes,
            self._pool,
        )
        runtime.timers.set((self, _CONNECT), runtime.now + self._limits.connect_timeout_ms / 1000)
        tls = self._security.tls
        secured = None if tls is None else tls.transport(self._host_name, self._runtime.logs)
        self._connector.connect(self.host, self.port, connection, secured)

    def connected(self, connection: Connection) -> None:
        """The connection attempt came through."""
        self._runtime.timers.cancel((self, _CONNECT))
        self._greeting = Greeting(self._security.credentials)
        self._greet()

    def _greet(self) -> None:
        """Go on with the greeting. What a login computes is computed beside the loop."""
        greeting = self._greeting
        assert greeting is not None
        job = greeting.job
        if job is None:
            self._greet_with(None)
        else:
            self._runtime.cpu_offload.submit(job, lambda result: self._computed(greeting, result))

    def _computed(self, greeting: Greeting, result: object) -> None:
        if greeting is not self._greeting:
            # The connection has ended meanwhile.
            return
        try:
            if not isinstance(result, bytes):
                raise ProtocolError(f"its login is not right: {result}")
            greeting.computed(result)
            self._greet_with(result)
        except ProtocolError as error:
            connection = self._connection
            assert connection is not None
            connection.close(str(error))

    def _greet_with(self, token: bytes | None) -> None:
        """Send the next request of the greeting, or what is queued when it is over."""
        greeting = self._greeting
        assert greeting is not None
        asked = greeting.next(token)
        if asked is None:
            self._failures = 0
            self._is_ready = True
            if greeting.lifetime_ms:
                at = self._runtime.now + greeting.lifetime_ms / 1000 * _LOGIN_SHARE
                self._runtime.timers.set((self, _LOGIN), at)
            self._send_queued()
            return
        message, version = asked
        self._write(self._request(message, None), version)
        self._plan_deadline()

    def lost(self, connection: Connection, was_closed_here: bool) -> None:
        """The connection, or the attempt, ended."""
        if connection is not self._connection:
            return
        self._connection = self._greeting = None
        self._is_ready = False
        timers, now = self._runtime.timers, self._runtime.now
        timers.cancel((self, _CONNECT))
        timers.cancel((self, _LOGIN))
        self._tell_lost(connection, is_unfit=was_closed_here)
        while self._in_flight:
            self._end(self._in_flight.popleft().then, DISCONNECTED)
        if not self._limits.waits_for_connection:
            self._fail_queued(DISCONNECTED)
        self._plan_deadline()
        if not self._is_closed:
            timers.set((self, _TRY_AGAIN), now + self._pause_seconds())
            self._failures += 1

    def _tell_lost(self, connection: Connection, *, is_unfit: bool) -> None:
        """Say so of one that does not speak as it should, or is not whom it should be."""
        runtime, reason = self._runtime, connection.close_reason
        if is_unfit:
            runtime.peer_lines.refused(runtime.now, "peer-unfit", f"{self._host_name}:{self.port}", reason)
        else:
            runtime.logs.debug("server", "peer-disconnected", peer=connection.peer, reason=reason)

    def _log_in_again(self) -> None:
        """The login is about to expire; what is on the wire is answered before a new one."""
        self._is_ready = False
        if self._greeting is not None and not self._in_flight:
            self._greeting.begin_again()
            self._greet()

    def _pause_seconds(self) -> float:
        """The pause before the next attempt: it doubles with each failure, up to a limit, and differs by a fifth either
        way, so that many peers do not connect at once."""
        limits = self._limits
        pause_ms: int = min(limits.backoff_max_ms, limits.backoff_ms * (1 << min(self._failures, 30)))
        return pause_ms / 1000 * (1 - _JITTER + 2 * _JITTER * self._runtime.random.random())

    def _disconnect(self, reason: str) -> None:
        if self._connection is not None:
            self._connector.disconnect(self._connection, reason)

    @property
    def api_ranges(self) -> Mapping[int, tuple[int, int]]:
        """API key to the versions that the other side has; nothing without a connection."""
        return {} if self._greeting is None else self._greeting.ranges

    # --- requests and answers -------------------------------------------------------------------------------------

    def _send_queued(self) -> None:
        greeting = self._greeting
        assert greeting is not None
        while self._queued and len(self._in_flight) < self._limits.max_in_flight:
            request = self._queued.popleft()
            version = greeting.version(request.row)
            if version is None:
                self._end(request.then, self._lacks(request.row, greeting))
                continue
            try:
                self._write(request, version)
            except ProtocolError as error:
                # It says something for which the version of the other side has no field.
                runtime, peer = self._runtime, f"{self.host}:{self.port}"
                reason = f"{peer} has no version of {request.row.name} for this request: {error}"
                runtime.peer_lines.refused(runtime.now, "request-not-sent", peer, reason)
                self._end(request.then, Failure(reason, True))
        self._plan_deadline()

    def _lacks(self, row: Api, greeting: Greeting) -> Failure:
        runtime, peer = self._runtime, f"{self._host_name}:{self.port}"
        failure = Failure(f"{peer} {greeting.lack(row)}", True)
        runtime.peer_lines.refused(runtime.now, "peer-lacks-api", peer, failure.reason)
        return failure

    def _write(self, request: _Request, version: int) -> None:
        """Put a request on the wire. Raises ProtocolError for one that cannot be said in that version."""
        connection, message, row = self._connection, request.message, request.row
        assert connection is not None and message is not None
        flexible_from = messages.flexible_from(type(message))
        flexible = flexible_from is not None and version >= flexible_from
        correlation_id = self._last_correlation_id % 0x7FFFFFFF + 1
        chunks: list[Chunk] = [frames.start_request(row.key, version, correlation_id, self._client_id, flexible)]
        messages.encoder(type(message), version)(message, chunks)
        frames.finish_frame(chunks)
        self._last_correlation_id = request.correlation_id = correlation_id
        request.version = version
        request.tagged = flexible and not row.has_untagged_response
        request.message = None
        self._in_flight.append(request)
        connection.put(chunks)

    def serve(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """A frame came: the answer to the oldest request on the wire."""
        frame = view[start:end]
        try:
            if not self._in_flight:
                raise ProtocolError("an answer that nobody waits for")
            request = self._in_flight[0]
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 0)
            if correlation_id != request.correlation_id:
                raise ProtocolError(f"an answer to {correlation_id}, where {request.correlation_id} was next")
            _, position = frames.read_response_header(frame, request.tagged)
            # A copy: what the answer holds of the frame must outlive the buffer.
            data = memoryview(bytes(frame))
            version = request.version
            if request.then is None:
                version = peer_greeting.answer_version(request.row.key, version, data[position:])
            answer, _ = messages.decoder(messages.response_class(request.row.key), version)(data, position)
            self._in_flight.popleft()
            if request.then is None:
                assert self._greeting is not None
                self._greeting.answered(answer)
                self._greet()
        except (ProtocolError, StructError) as error:
            connection.close(str(error) if isinstance(error, LoginRefused) else f"not understood: {error}")
            return
        self._plan_deadline()
        if request.then is not None:
            self._end(request.then, answer)
            if self._is_ready:
                self._send_queued()
            elif not self._in_flight:
                self._log_in_again()

    def overtaken(self, connection: Connection) -> None:
        """Nothing waits on this side of a connection."""

    def served_fast(self, count: int) -> None:
        """Nothing is served fast here."""

    # --- time -----------------------------------------------------------------------------------------------------

    def fired(self, key: str) -> None:
        """A timer is due."""
        if key == _CONNECT:
            self._disconnect("the connection attempt took too long")
        elif key == _TRY_AGAIN:
            if self._connection is None:
                if self._queued:
                    self._connect()
                else:
                    # Nobody waits: the next request connects at once.
                    self._failures = 0
        elif key == _DEADLINE:
            self._time_out()
        elif key == _LOGIN:
            self._log_in_again()
        else:
            self._deliver()

    def _time_out(self) -> None:
        now = self._runtime.now
        while self._queued and self._queued[0].deadline <= now:
            self._end(self._queued.popleft().then, TIMED_OUT)
        if self._in_flight and self._in_flight[0].deadline <= now:
            while self._in_flight and self._in_flight[0].deadline <= now:
                self._end(self._in_flight.popleft().then, TIMED_OUT)
            # Its answer may still come, and would be taken for another's.
            self._disconnect("a request was not answered in time")
        self._plan_deadline()

    def _plan_deadline(self) -> None:
        """Requests have their deadlines in the order of their sending; those of a greeting come before older ones."""
        oldest = [each[0].deadline for each in (self._in_flight, self._queued) if each]
        if oldest:
            self._runtime.timers.set((self, _DEADLINE), min(oldest))
        else:
            self._runtime.timers.cancel((self, _DEADLINE))

    def _fail_queued(self, failure: Failure) -> None:
        while self._queued:
            self._end(self._queued.popleft().then, failure)

    def _end(self, then: Then | None, outcome: object) -> None:
        """Tell it at the end of the turn, never inside the call of whoever sends. Nobody waits for a greeting."""
        if then is None:
            return
        if not self._ended:
            self._runtime.timers.set((self, _DELIVER), self._runtime.now)
        self._ended.append((then, outcome))

    def _deliver(self) -> None:
        ended, self._ended = self._ended, []
        for then, outcome in ended:
            try:
                then(outcome)
            except Exception as error:
                # A bug of one who asked is none of the others'.
                self._runtime.unexpected(error, peer=f"{self.host}:{self.port}")


class Peers:
    """The peers of one node, by node id: what performs `effects.Send`."""

    __slots__ = ("_by_id", "_client_id", "_connector", "_limits", "_refused", "_runtime", "_security")

    def __init__(
        self,
        runtime: Runtime,
        client_id: str,
        limits: Limits = Limits(),  # noqa: B008
        security: Security = PLAIN_TEXT,
        connector: Connector | LocalLinks | None = None,
    ) -> None:
        self._security = security
        self._connector = connector
        self._refused: deque[Then] = deque()
        self._runtime = runtime
        self._client_id = client_id
        self._limits = limits
        self._by_id: dict[int, Peer] = {}

    def set_address(self, node_id: int, host: str, port: int, host_name: str | None = None) -> None:
        """Where a node is found. One that has moved is connected to anew; what was on its way is disconnected. For
        `host_name` see `Peer`."""
        known = self._by_id.get(node_id)
        if known is None or (known.host, known.port) != (host, port):
            if known is not None:
                known.close()
            self._by_id[node_id] = Peer(
                self._runtime,
                host,
                port,
                client_id=self._client_id,
                limits=self._limits,
                security=self._security,
                host_name=host_name,
                connector=self._connector,
            )

    def forget(self, node_id: int) -> None:
        """A node is gone; fine if it was not known."""
        known = self._by_id.pop(node_id, None)
        if known is not None:
            known.close()

    def send(self, node_id: int, request: Any, then: Then) -> None:
        """Send a request to a node; `then(REFUSED)` at the end of the turn if its address is not known."""
        known = self._by_id.get(node_id)
        if known is not None:
            known.send(request, then)
            return
        self._refused.append(then)
        self._runtime.timers.set((self, _REFUSE), self._runtime.now)

    def fired(self, _key: str) -> None:
        """Tell those whose node is not known."""
        for _ in range(len(self._refused)):
            then = self._refused.popleft()
            try:
                then(REFUSED)
            except Exception as error:
                self._runtime.unexpected(error)

    def close(self) -> None:
        """Close all of them."""
        for node_id in list(self._by_id):
            self.forget(node_id)
