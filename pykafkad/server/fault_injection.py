"""Faults on purpose: what tests of clients set, applied where requests are dispatched.

A broker without faults does not know of this module. With the first fault its connections are served by a
`FaultDispatcher` and lose their fast paths; with the last one everything is as before. What a fault can do is a row of
`injected_fault.KINDS`. The request of a client named `EXEMPT_CLIENT_ID` (the test itself) meets no fault.

An incremental fetch (KIP-227) names only what changed, so no fault could tell its topics. While a fault on Fetch is
set, the session of such a request is unknown: the client sends a full request instead."""

from __future__ import annotations

from struct import Struct, error as StructError

from pykafkad import errors
from pykafkad.errors import ProtocolError, StorageFailure
from pykafkad.handlers import table
from pykafkad.log.file_slice import LogCut
from pykafkad.server import refused_parts
from pykafkad.server.dispatch import Dispatcher, ServedContext
from pykafkad.server.session import READY
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.handlers.table import Api
    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Chunk, Connection
    from pykafkad.server.injected_fault import Fault
    from pykafkad.server.session import FastPath
    from pykafkad.server.trace import Serve

    AnswerPlan = Callable[[Connection, ServedContext, Any, "list[Chunk] | None"], None]

EXEMPT_CLIENT_ID = "pykafkad.testing"
FETCH = 1
_START = Struct(">hhi")


class Asked:
    """A request that a fault may be for."""

    __slots__ = ("client_id", "correlation_id", "frame", "request", "row", "version")

    def __init__(
        self, row: Api, version: int, correlation_id: int, client_id: str, frame: bytearray, request: Any
    ) -> None:
        self.row = row
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.frame = frame
        self.request = request


class FaultDispatcher(Dispatcher):
    """Serves frames as `Dispatcher` does, and asks the faults first."""

    __slots__ = ("_faults", "_flexible", "_plans", "_silent", "_topic_name")

    def __init__(self, broker: Broker, faults: FaultInjection) -> None:
        super().__init__(
            broker.runtime,
            broker.services,
            table.BROKER_LISTENER,
            broker.forward,
            purgatory=broker.purgatory,
            commits=broker.commits,
            release=broker.settings.release,
        )
        self.long_request_limiter = broker.dispatcher.long_request_limiter
        self._faults = faults
        self._flexible: dict[int, int] = {}
        # By a connection's id: what becomes of the answer to its request in service.
        self._plans: dict[int, AnswerPlan] = {}
        # Connections on which nothing is said any more.
        self._silent: set[int] = set()

        def topic_name(topic_id: bytes) -> str | None:
            topic = broker.image.topic_by_id(topic_id)
            return None if topic is None else topic.name

        self._topic_name = topic_name

    def is_silent(self, connection: Connection) -> bool:
        """Whether a fault has made the connection say nothing more."""
        return connection.id in self._silent

    # --- in -----------------------------------------------------------------------------------------------------------

    def serve(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """Serve the frame `view[start:end]`, unless a fault is for it."""
        self._plans.pop(connection.id, None)
        if connection.id in self._silent:
            return
        try:
            asked = self._read(view, start, end)
            fault = None if asked is None else self._find(asked)
        except (ProtocolError, StructError):
            # The dispatcher finds the same, and closes the connection.
            asked = fault = None
        if asked is None:
            super().serve(connection, view, start, end)
        elif fault is not None:
            _APPLY[fault.kind](self, fault, connection, asked)
            self._faults.has_fired(fault)
            self._faults.tell(fault, asked.row.name, asked.client_id)
        elif self._faults.is_for(FETCH) and asked.row.key == FETCH and asked.request.session_epoch > 0:
            answer = messages.FetchResponse(error_code=errors.FETCH_SESSION_ID_NOT_FOUND)
            self._answer_now(connection, asked, answer)
        else:
            super().serve(connection, view, start, end)

    def _read(self, view: memoryview, start: int, end: int) -> Asked | None:
        """The request, if a fault is for its API and it is not the test's own. Raises ProtocolError or struct.error."""
        key, version, correlation_id = _START.unpack_from(view, start)
        if not self._faults.is_for(key):
            return None
        row = table.by_key(key)
        if row is None or not row.min_version <= version <= row.max_version:
            return None
        cls = messages.request_class(key)
        if key not in self._flexible:
            first = messages.flexible_from(cls)
            self._flexible[key] = 32767 if first is None else first
        # A copy: the request may be served when the buffer holds others.
        frame = bytearray(view[start:end])
        _, _, _, client_id, position = frames.read_request_header(memoryview(frame), self._flexible)
        if client_id == EXEMPT_CLIENT_ID:
            return None
        request, _ = messages.decoder(cls, version)(memoryview(frame), position)
        return Asked(row, version, correlation_id, client_id, frame, request)

    def _faults_for(self, asked: Asked) -> list[Fault]:
        """Those that a request may meet."""
        return self._faults.active

    def _find(self, asked: Asked) -> Fault | None:
        for fault in self._faults_for(asked):
            if (
                asked.row.key in fault.keys
                and (fault.versions is None or asked.version in fault.versions)
                and (fault.client_id is None or fault.client_id == asked.client_id)
                and (not fault.asks_for_content or self._has_content(fault, asked))
                and fault.draw()
            ):
                return fault
        return None

    def _has_content(self, fault: Fault, asked: Asked) -> bool:
        request = asked.request
        if fault.group is not None and fault.group not in refused_parts.groups(asked.row.name, request):
            return False
        if fault.transactional_id is not None:
            if fault.transactional_id not in refused_parts.transactional_ids(asked.row.name, request):
                return False
        if fault.topic is None and fault.partition is None:
            return True
        return refused_parts.names(asked.row.name, request, fault.topic, fault.partition, self._topic_name)

    # --- what the kinds do --------------------------------------------------------------------------------------------

    def refuse(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """Answer the parts that the fault is for with its error, and serve the rest."""
        code = fault.error_code
        row, request = asked.row, asked.request
        if getattr(request, "acks", None) == 0:
            # There is no answer that could carry the error; Kafka closes the connection.
            connection.close(f"a fault on {row.name}")
            return
        if row.name == "Metadata":
            self._refuse_topics(fault, connection, asked)
            return
        rows, has_rest = refused_parts.take(
            row.name, asked.version, request, fault.topic, fault.partition, code, self._topic_name
        )
        if rows is None:
            from pykafkad.handlers import unexpected

            answer = unexpected.answer(row, asked.version, request, code)
            if answer is None:
                connection.close(f"a fault on {row.name}")
            else:
                self._answer_now(connection, asked, answer)
        elif not has_rest:
            answer = messages.response_class(row.key)()
            refused_parts.merge(row.name, answer, rows)
            self._answer_now(connection, asked, answer)
        else:

            def add(connection: Connection, context: ServedContext, message: Any, chunks: list[Chunk] | None) -> None:
                refused_parts.merge(row.name, message, rows)
                Dispatcher._put(self, connection, context, message, self.encode(context, message))

            self._plans[connection.id] = add
            self._serve_frame(connection, self._encoded(asked))

    def _refuse_topics(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """An answer about the cluster that has the error in place of the topics which the fault is for."""

        def refuse(connection: Connection, context: ServedContext, message: Any, chunks: list[Chunk] | None) -> None:
            row_class = messages.MetadataResponse.MetadataResponseTopic
            # New rows: those of the handler may be part of other answers, too.
            message.topics = [
                row_class(error_code=fault.error_code, name=topic.name, topic_id=topic.topic_id)
                if fault.topic in (None, topic.name)
                else topic
                for topic in message.topics
            ]
            Dispatcher._put(self, connection, context, message, self.encode(context, message))

        self._plans[connection.id] = refuse
        self._serve_frame(connection, asked.frame)

    def _encoded(self, asked: Asked) -> bytearray:
        key, version = asked.row.key, asked.version
        tagged = version >= self._flexible[key]
        chunks: list[Any] = [frames.start_request(key, version, asked.correlation_id, asked.client_id, tagged)]
        messages.encoder(type(asked.request), version)(asked.request, chunks)
        frames.finish_frame(chunks)
        return bytearray().join(chunks)[4:]

    def _serve_frame(self, connection: Connection, frame: bytearray) -> None:
        super().serve(connection, memoryview(frame), 0, len(frame))

    def _context(self, connection: Connection, asked: Asked) -> ServedContext:
        """A request that is in service though no handler has it."""
        route = self._routes[asked.row.key]
        if route.handler is None:
            self._flexible_from[asked.row.key] = route.load()
        context = ServedContext(self._services, connection, route, asked.version, asked.correlation_id, asked.client_id)
        connection.begin_service(context)
        return context

    def _answer_now(self, connection: Connection, asked: Asked, answer: object) -> None:
        self.finish(self._context(connection, asked), answer)

    def delay(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """The request is in service, with nobody at work, until its time has come."""
        context = self._context(connection, asked)
        connection.defer()

        def serve() -> None:
            # A client that has gone in the meantime gets nothing served.
            if connection.in_service is context and self._runtime.reactor.connection(connection.id) is connection:
                connection.end_service()
                self._serve_frame(connection, asked.frame)
                connection.transport.send_soon()

        self._runtime.call_later(fault.delay_seconds, serve)

    def delay_answer(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """The answer stands in the outbox, and holds up those behind it, until its time has come."""

        def hold(connection: Connection, context: ServedContext, message: Any, chunks: list[Chunk] | None) -> None:
            Dispatcher._put(self, connection, context, message, chunks)
            connection.hold()
            self._runtime.call_later(fault.delay_seconds, connection.release)

        self._plans[connection.id] = hold
        self._serve_frame(connection, asked.frame)

    def drop_request(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """As if the request was lost on its way."""
        self._silent.add(connection.id)

    def drop_answer(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """As if the answer was lost on its way."""
        self._silent.add(connection.id)
        self._plans[connection.id] = lambda *answer: None
        self._serve_frame(connection, asked.frame)

    def close_before(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """As if the broker died when the request came."""
        connection.close(f"a fault on {asked.row.name}")

    def close_after(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """As if the broker died when the request was served."""
        reason = f"a fault on {asked.row.name}"
        self._plans[connection.id] = lambda *answer: connection.close(reason)
        self._serve_frame(connection, asked.frame)
        if getattr(asked.request, "acks", None) == 0:
            connection.close(reason)

    def cut_answer(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """As if the broker died while it sent the answer."""

        def cut(connection: Connection, context: ServedContext, message: Any, chunks: list[Chunk] | None) -> None:
            whole = b"".join(_bytes(chunk) for chunk in chunks or ())
            connection.put([whole[: fault.at_byte]])
            connection.close(f"a fault on {asked.row.name}")

        self._plans[connection.id] = cut
        self._serve_frame(connection, asked.frame)

    def corrupt_records(self, fault: Fault, connection: Connection, asked: Asked) -> None:
        """As if a byte of the records changed on its way. The last one does, which the checksum covers."""

        def change(connection: Connection, context: ServedContext, message: Any, chunks: list[Chunk] | None) -> None:
            for row in refused_parts.partitions(
                asked.row.name, message, fault.topic, fault.partition, self._topic_name
            ):
                content = _bytes(row.records) if row.records else b""
                if content:
                    row.records = content[:-1] + bytes((content[-1] ^ 0xFF,))
            Dispatcher._put(self, connection, context, message, self.encode(context, message))

        self._plans[connection.id] = change
        self._serve_frame(connection, asked.frame)

    # --- out ----------------------------------------------------------------------------------------------------------

    def _put(self, connection: Connection, context: ServedContext, message: object, chunks: list[Chunk] | None) -> None:
        plan = self._plans.pop(connection.id, None)
        if plan is None:
            super()._put(connection, context, message, chunks)
        else:
            for log, _ in context.unwritten or ():
                # Also what nobody is told of is written.
                self._commits.mark(log)
            try:
                plan(connection, context, message, chunks)
            except (StorageFailure, LogCut) as failure:
                connection.close(f"its answer could not be read: {failure}")


def _bytes(chunk: Any) -> bytes:
    """The bytes of a chunk of an answer, which may be a slice of a file."""
    return bytes(chunk.pread() if hasattr(chunk, "pread") else chunk)


_APPLY: dict[str, Callable[[FaultDispatcher, Fault, Connection, Asked], None]] = {
    "answer": FaultDispatcher.refuse,
    "delay": FaultDispatcher.delay,
    "delay_answer": FaultDispatcher.delay_answer,
    "drop_request": FaultDispatcher.drop_request,
    "drop_answer": FaultDispatcher.drop_answer,
    "close_before": FaultDispatcher.close_before,
    "close_after": FaultDispatcher.close_after,
    "cut_answer": FaultDispatcher.cut_answer,
    "corrupt_records": FaultDispatcher.corrupt_records,
}
"""By the names of `injected_fault.KINDS`."""

_NO_FAST_PATHS: dict[int, FastPath] = {}

MAX_FAULTS = 200  # At one time.


class FaultInjection:
    """The faults of one broker, in the order in which they were set; a request meets the first that is for it. All
    methods are called on the loop. `tell` hears of each request that met a fault: its API and client id."""

    __slots__ = ("_broker", "_dispatcher", "_fast_paths", "_keys", "_watched_fast_paths", "active", "tell")

    dispatcher_class = FaultDispatcher

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._dispatcher = self.dispatcher_class(broker, self)
        self._fast_paths = broker.sessions.fast_paths
        self._watched_fast_paths = broker.sessions.watched_fast_paths
        self._keys: frozenset[int] = frozenset()
        self.active: list[Fault] = []
        self.tell: Callable[[Fault, str, str], None] = lambda *_: None

    def is_for(self, key: int) -> bool:
        """Whether a fault is for the API of that key."""
        return key in self._keys

    def add(self, fault: Fault) -> None:
        """Set a fault. Raises ValueError above `MAX_FAULTS`, and for one at a broker that there is not."""
        self._check(fault, [self._broker.node_id])
        self.active = [*self.active, fault]
        self._changed()

    def _check(self, fault: Fault, brokers: list[int]) -> None:
        if len(self.active) >= MAX_FAULTS:
            raise ValueError(f"{MAX_FAULTS} faults are set already; release some")
        if fault.broker is not None and fault.broker not in brokers:
            raise ValueError(f"broker: there is no broker {fault.broker}, but {', '.join(map(str, brokers))}")

    def remove(self, fault: Fault) -> None:
        """Release a fault; fine if it is not set (any more)."""
        self.active = [each for each in self.active if each is not fault]
        self._changed()

    def clear(self) -> None:
        """Release all."""
        self.active = []
        self._changed()

    def follow(self) -> None:
        """Brokers have started or stopped: of one there is nothing to do."""

    def has_fired(self, fault: Fault) -> None:
        """A request met a fault, which ends with its last time."""
        if fault.left == 1:
            self.remove(fault)
        fault.count()

    def _changed(self) -> None:
        self._keys = frozenset().union(*(fault.keys for fault in self.active))
        broker, faulty = self._broker, self._dispatcher
        serve: Serve = faulty.serve if self.active else broker.dispatcher.serve
        fast_paths = _NO_FAST_PATHS if self.active else self._fast_paths
        trace = broker.runtime.trace
        serve = serve if trace is None else trace.around(broker, serve)
        server = broker.socket_server
        if server.serve == serve and broker.sessions.fast_paths is fast_paths:
            return
        server.serve = serve
        broker.sessions.fast_paths = fast_paths
        broker.sessions.watched_fast_paths = None if self.active else self._watched_fast_paths
        for connection in server.connections():
            # A login under way goes on. Of what a silent connection still sends nothing is served.
            if connection.session.stage is READY:
                connection.serve = faulty.serve if faulty.is_silent(connection) else serve
                connection.session.lend(_NO_FAST_PATHS if faulty.is_silent(connection) else fast_paths)
