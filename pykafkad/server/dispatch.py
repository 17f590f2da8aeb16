"""From a frame to an answer: header, API row, version gate, decode, handler, encode.

Rules (kafka-protocol 2.3): an unknown key or version closes the connection, except ApiVersions, which is answered in
version 0 with error 35 and our range; every answer leaves in the order of its request; an answer to a request that is
no longer in service is dropped here and nowhere else.

A long request is read, served and answered in slices (`incremental_tasks.py`), when there is a place for it
(`long_request_limiter.py`)."""

from __future__ import annotations

from struct import Struct, error as StructError
from types import GeneratorType

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.handlers.context import DEFERRED, Context
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.server.incremental_tasks import IncrementalTask
from pykafkad.server.long_request_limiter import LongRequestLimiter
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any

    from pykafkad.handlers.services import BrokerServices
    from pykafkad.handlers.table import Handler
    from pykafkad.server.commits import Commits
    from pykafkad.server.connection import Chunk, Connection
    from pykafkad.server.logs import Logs
    from pykafkad.server.purgatory import Purgatory
    from pykafkad.server.runtime import Runtime
    from pykafkad.settings.release import Release

    Decode = Callable[..., tuple[Any, int]]
    Encode = Callable[[Any, list[Any]], None]
    Steps = Generator[object, None, Any]

    class ServedContext(Context):
        """A context with the server's own classes where handlers see less of them."""

        connection: Connection
        route: Route
        request: messages.Struct | None

else:
    ServedContext = Context

_KEY_AND_VERSION = Struct(">hh")
_START = Struct(">Ii")  # API key and version as one number, correlation id
_NEVER = 32767
# From here on a request is read in slices; those of Produce are long for their records, which are not read here.
LONG_FRAME_BYTES = 32 * 1024
_LONGEST_TEXT = 32_767
_SHORTENED_TEXT = 1_000


class Route:
    """One API as the dispatcher needs it: its row and, filled on first use, its codec per version."""

    __slots__ = (
        "_forward",
        "carries_records",
        "decoders",
        "dispatcher",
        "encoders",
        "handler",
        "long_handler",
        "max_version",
        "min_version",
        "request",
        "response",
        "row",
        "tagged_from",
    )

    def __init__(self, row: table.Api, dispatcher: Dispatcher, forward: Handler | None) -> None:
        """With `forward`, that takes the requests instead of the API's own handler."""
        self.row = row
        self.dispatcher = dispatcher
        self.carries_records = row.carries_records
        self._forward = forward
        self.min_version = row.min_version
        self.max_version = row.max_version
        self.handler: Any = None
        """A `Handler`; None until `load` is called, as are `request` and `response`."""
        self.long_handler: Handler | None = None
        self.request: type[messages.Struct] | None = None
        self.response: type[messages.Struct] | None = None
        self.tagged_from = _NEVER
        self.decoders: list[Decode | None] = [None] * (row.max_version + 1)
        self.encoders: list[Encode | None] = [None] * (row.max_version + 1)

    def load(self) -> int:
        """Import the handler and its message classes: on the first request, so that start-up does not pay for it.

        Returns the first version whose request is flexible.
        """
        if self._forward is not None:
            self.handler = self._forward
        else:
            self.handler = table.handler(self.row)
            self.long_handler = table.long_handler(self.row)
        self.request = messages.request_class(self.row.key)
        self.response = messages.response_class(self.row.key)
        flexible_from = messages.flexible_from(self.request)
        if flexible_from is None:
            flexible_from = _NEVER
        self.tagged_from = _NEVER if self.row.has_untagged_response else flexible_from
        return flexible_from

    def decoder(self, version: int) -> Decode:
        assert self.request is not None
        decode: Decode = messages.decoder(self.request, version)
        self.decoders[version] = decode
        return decode

    def encoder(self, version: int) -> Encode:
        assert self.response is not None
        encode: Encode = messages.encoder(self.response, version)
        self.encoders[version] = encode
        return encode


class _Routes(dict[int, Route]):
    """The routes by their API's keys, each made when the first request asks for it."""

    __slots__ = ("_made", "_rows")

    def __init__(self, rows: Mapping[int, table.Api], made: Callable[[table.Api], Route]) -> None:
        self._rows = rows
        self._made = made

    def __missing__(self, key: int) -> Route:
        route = self[key] = self._made(self._rows[key])
        return route

    def find(self, key: int) -> Route | None:
        """The route; None for a key that is not answered here."""
        return self[key] if key in self._rows else None


class Dispatcher:
    """Serves frames of every connection of one node: the rows of `table.py` that its kind of listener answers.

    `forward(context, request)` takes the requests of which `forwards(row)` says so."""

    __slots__ = (
        "_commits",
        "_flexible_from",
        "_logs",
        "_purgatory",
        "_routes",
        "_runtime",
        "_services",
        "long_request_limiter",
    )

    _services: BrokerServices
    _purgatory: Purgatory
    _commits: Commits

    def __init__(
        self,
        runtime: Runtime,
        services: BrokerServices | None,
        listener: str,
        forward: Handler,
        *,
        purgatory: Purgatory | None = None,
        commits: Commits | None = None,
        logs: Logs | None = None,
        release: Release | None = None,
    ) -> None:
        """A node without `services` (a controller) forwards everything, delays nothing and covers no writes. `release`
        is another release to act as."""
        self._runtime = runtime
        # A node without services never uses them.
        self._services = services  # type: ignore[assignment]
        self._logs = logs or runtime.logs
        self._purgatory = purgatory  # type: ignore[assignment]
        self._commits = commits  # type: ignore[assignment]
        self._routes = _Routes(
            table.answered_by_key(listener, release),
            lambda row: Route(row, self, forward if row.is_forwarded or services is None else None),
        )
        self._flexible_from: dict[int, int] = {}
        self.long_request_limiter = LongRequestLimiter()

    # --- in -------------------------------------------------------------------------------------------------------

    def serve(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """Serve the frame `view[start:end]` (without its size field)."""
        runtime = self._runtime
        runtime.metrics.requests += 1
        try:
            word, correlation_id = _START.unpack_from(view, start)
            serve_fast = connection.session.fast_paths.get(word)
            if serve_fast is not None and serve_fast(connection, view, start, end, word & 0xFFFF, correlation_id):
                return
            key, version = _KEY_AND_VERSION.unpack_from(view, start)
            frame = view[start:end]
            if not self._routable(connection, frame, key, version):
                return
            route = self._routes[key]
            if route.handler is None:
                self._flexible_from[key] = route.load()
            _, _, correlation_id, client_id, position = frames.read_request_header(frame, self._flexible_from)
            is_long = end - start >= LONG_FRAME_BYTES and not route.carries_records
            if not is_long:
                request, position = (route.decoders[version] or route.decoder(version))(frame, position)
        except (errors.ProtocolError, StructError) as error:
            connection.close(f"{self._name(view, start, end)}: {error}")
            return
        services = self._services
        context = ServedContext(services, connection, route, version, correlation_id, client_id)
        connection.begin_service(context)
        if services is not None and services.quotas is not None:
            services.quotas.begin(context, end - start)
        if self._logs.threshold == 0:
            self._logs.debug(
                "server", "request", api=route.row.name, version=version, client=client_id, peer=connection.peer
            )
        if not is_long and not route.carries_records:
            context.request = request
        try:
            result = self._begin_long(context, bytes(frame), position) if is_long else route.handler(context, request)
        except Exception as error:
            self.failed(context, error, None if is_long else request)
            return
        if type(result) is GeneratorType:
            if not runtime.tasks.begin(self._job(context, result)):
                context.is_long = True
                connection.defer()
        else:
            self.conclude(context, result)
        if context.quota is not None:
            context.quota.pause()

    def _job(self, context: ServedContext, generator: Steps) -> IncrementalTask:
        return IncrementalTask(
            context.connection,
            generator,
            lambda result: self.conclude(context, result),
            lambda error: self.failed(context, error),
        )

    def _begin_long(self, context: ServedContext, frame: bytes, position: int) -> object:
        """What a handler that works in slices gives; DEFERRED if the request must wait for its place."""
        context.is_long = True
        served = self._read_long(context, frame, position)
        begin = lambda: self._runtime.tasks.add(self._job(context, served))  # noqa: E731
        return served if self.long_request_limiter.take(context.connection, len(frame), begin) else DEFERRED

    def _read_long(self, context: ServedContext, frame: bytes, position: int) -> Steps:
        route = context.route
        assert route.request is not None
        request, _ = yield from messages.incremental(route.request, context.version, "decode")(frame, position)
        context.request = request
        result: Any = (route.long_handler or route.handler)(context, request)
        if type(result) is GeneratorType:
            result = yield from result
        if result is DEFERRED and route.row.waits_for_others:
            self.long_request_limiter.leave(context.connection)
        elif hasattr(result, "attempt") and not self.long_request_limiter.park(context.connection):
            # Its wait is a maximum, and too much waits already, so it is answered at once.
            result = yield from result.expire(self._runtime.now)
        return result

    def conclude(self, context: ServedContext, result: Any) -> None:
        """What a handler gave in the end, at once or after many turns."""
        connection = context.connection
        if result is DEFERRED:
            connection.defer()
        elif result is None:
            if context.quota is not None:
                context.quota.finish(None)
            self._out_of_service(context)
        elif hasattr(result, "attempt"):
            if context.is_long:
                # Many may wait, so the request is dropped; an unexpected error then ends the connection.
                context.request = None
                # The peer may have closed meanwhile; its socket was not read while the request was served.
                connection.transport.resume_soon()
            connection.park(self._purgatory.park(context.token, result))
        else:
            self.finish(context, result)

    def _routable(self, connection: Connection, frame: memoryview, key: int, version: int) -> bool:
        stage = connection.session.stage
        if stage.api_keys is not None and key not in stage.api_keys:
            connection.close(f"API key {key} in stage {stage.name} of the login")
            return False
        route = self._routes.find(key)
        if route is not None and route.min_version <= version <= route.max_version:
            return True
        if route is not None and route.row.answers_unknown_versions:
            # The body of a version we don't know can't be read: answer in version 0, which every client can.
            correlation_id = frames.peek_request(frame)[2]
            context = ServedContext(self._services, connection, route, 0, correlation_id, "")
            if route.handler is None:
                self._flexible_from[key] = route.load()
            self.answer(connection, context, table.unsupported_answer(route.row))
        else:
            connection.close(f"API key {key} version {version} is not answered here")
        return False

    def begin_refusal(self, connection: Connection, frame: memoryview) -> ServedContext | None:
        """Read a request that is to be refused by `finish_with_error`, whatever the stage of the login; None, and the
        connection is closed, if there is nothing to answer."""
        try:
            key, version = _KEY_AND_VERSION.unpack_from(frame, 0)
            route = self._routes.find(key)
            if route is None or not route.min_version <= version <= route.max_version:
                connection.close(f"API key {key} version {version} is not answered here")
                return None
            if route.handler is None:
                self._flexible_from[key] = route.load()
            _, _, correlation_id, client_id, position = frames.read_request_header(frame, self._flexible_from)
            request, _ = (route.decoders[version] or route.decoder(version))(frame, position)
        except (errors.ProtocolError, StructError) as error:
            connection.close(f"{self._name(frame, 0, len(frame))}: {error}")
            return None
        context = ServedContext(self._services, connection, route, version, correlation_id, client_id)
        context.request = request
        connection.begin_service(context)
        connection.defer()
        return context

    def failed(self, context: ServedContext, error: Exception, request: messages.Struct | None = None) -> None:
        """A handler raised: log it once with everything needed to repeat it, and give the error answer of its API. What
        is wrong with the request itself ends the connection, and so does a bug if the request wants no answer."""
        connection, name = context.connection, context.route.row.name
        if isinstance(error, errors.ProtocolError):
            reason, answer = f"{name} version {context.version}: {error}", None
        else:
            self._runtime.unexpected(error, api=name, version=context.version, peer=connection.peer)
            if connection.in_service is not context or context.is_answered:
                # Answered already, and nobody reads a second answer.
                return
            code = error.code if isinstance(error, errors.KafkaError) else errors.UNKNOWN_SERVER_ERROR
            reason, answer = (
                f"unexpected error while serving {name}",
                self._error_answer(context, code, request or context.request),
            )
        self._finish_or_close(context, answer, reason)

    def finish_with_error(self, context: ServedContext, code: int) -> None:
        """Answer the request in service with an error for all that it asks for."""
        answer = self._error_answer(context, code, context.request)
        self._finish_or_close(context, answer, f"{context.route.row.name} could not be refused")

    def _finish_or_close(self, context: ServedContext, answer: object | None, reason: str) -> None:
        if answer is not None:
            self.finish(context, answer)
        else:
            self._out_of_service(context)
            context.connection.close(reason)

    def _error_answer(self, context: ServedContext, code: int, request: messages.Struct | None) -> object | None:
        if request is None:
            return None
        try:
            from pykafkad.handlers import unexpected

            return unexpected.answer(context.route.row, context.version, request, code)
        except Exception as another:
            self._runtime.unexpected(another, api=context.route.row.name, version=context.version)
            return None

    def _name(self, view: memoryview, start: int, end: int) -> str:
        if end - start < 4:
            return f"a request of {end - start} bytes"
        key, version = _KEY_AND_VERSION.unpack_from(view, start)
        route = self._routes.find(key)
        return f"{route.row.name if route else f'API key {key}'} version {version}"

    # --- out ------------------------------------------------------------------------------------------------------

    def finish(self, context: ServedContext, message: object) -> None:
        """Answer the request in service; its connection may go on with what it has read. A long one's answer may come
        in steps."""
        connection, runtime = context.connection, self._runtime
        if context.quota is not None and not context.is_answered and type(message) is not GeneratorType:
            context.quota.finish(message)
        if context.is_long:
            if context.is_answered:
                return
            if type(message) is GeneratorType:
                job = self._job(context, message)
            else:
                context.is_answered = True
                job = IncrementalTask(
                    connection,
                    self._write_long(context, message),
                    lambda chunks: self._written(context, message, chunks),
                    lambda error: None,
                )
            if not runtime.tasks.begin(job):
                connection.defer()
            return
        self.answer(connection, context, message)
        connection.end_service()

    def _write_long(self, context: ServedContext, message: object) -> Steps:
        route, version = context.route, context.version
        assert route.response is not None
        chunks: list[Chunk] = [frames.start_response(context.correlation_id, version >= route.tagged_from)]
        try:
            yield from messages.incremental(route.response, version, "encode")(message, chunks)
            frames.finish_frame(chunks)
        except Exception:
            return self.encode(context, message)
        return chunks

    def _written(self, context: ServedContext, message: object, chunks: list[Chunk] | None) -> None:
        self._put(context.connection, context, message, chunks)
        self._out_of_service(context)

    def _out_of_service(self, context: ServedContext) -> None:
        if context.is_long:
            self.long_request_limiter.leave(context.connection)
        context.connection.end_service()

    def connection_lost(self, connection: Connection) -> None:
        """Nobody waits for an answer any more."""
        if connection.delayed is not None:
            self._purgatory.discard(connection.delayed)
            connection.unpark()
        self.long_request_limiter.leave(connection)
        if self._services is not None and self._services.quotas is not None:
            self._services.quotas.connection_lost(connection)

    def answer(self, connection: Connection, context: ServedContext, message: object) -> None:
        """Encode `message` into the outbox."""
        self._put(connection, context, message, self.encode(context, message))

    def _put(self, connection: Connection, context: ServedContext, message: object, chunks: list[Chunk] | None) -> None:
        index = len(connection.outbox)
        if chunks is None:
            connection.close(f"the answer to {context.route.row.name} could not be encoded")
            return
        if self._runtime.trace is not None:
            self._runtime.trace.answered(connection, context, chunks)
        connection.put(chunks)
        if context.unwritten:
            self._commits.add_answer(context.unwritten, connection, index, context, message)

    def encode(self, context: ServedContext, message: object) -> list[Chunk] | None:
        """The chunks of a whole answer, size and header included; None, logged, if it can't be encoded."""
        route = context.route
        version = context.version
        chunks: list[Chunk] = [frames.start_response(context.correlation_id, version >= route.tagged_from)]
        try:
            (route.encoders[version] or route.encoder(version))(message, chunks)
            frames.finish_frame(chunks)
        except Exception as error:
            if _shorten_texts(message):
                return self.encode(context, message)
            self._runtime.unexpected(error, api=route.row.name, version=version, answer=type(message).__name__)
            return None
        return chunks


def controller_request(context: Context, message: Any) -> ControllerRequest:
    """A request as a value that the controller can decide anywhere."""
    return ControllerRequest(
        context.route.row.key,
        context.version,
        message,
        context.principal,
        context.client_host.removeprefix("/"),
        context.listener,
        context.token,
        None if context.quota is None else context.quota.mutations,
        context.may_ask_for_tokens,
        context.client_id,
    )


def _shorten_texts(message: Any) -> bool:
    """Cut what an answer says to people where it is longer than the wire carries, as it may quote what was asked.

    Returns whether there was such a text.
    """
    found = False
    for name in message._root.__slots__:
        value = getattr(message, name)
        if type(value) is list:
            for each in value:
                found |= hasattr(each, "_root") and _shorten_texts(each)
        elif type(value) is str and name.endswith("error_message") and len(value.encode()) > _LONGEST_TEXT:
            setattr(message, name, f"{value[:_SHORTENED_TEXT]}…")
            found = True
    return found
