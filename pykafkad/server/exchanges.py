"""A request and its answer: as a wire trace keeps them in its ring, and as it shows them."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import ProtocolError
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.connection import Connection

    Short = tuple[int, str, tuple[str, int], float, float, int, int, int, bytes, bytes]
    """A short exchange that a fast path served, as most are: connection, peer, local address, when it began and ended,
    key, version, correlation id, request, and answer with its size in front. Nothing is made quicker than a tuple."""

Exchange = namedtuple(
    "Exchange",
    (
        "connection_id",
        "peer",
        "local_address",
        "time_ms",
        "duration_ms",
        "key",
        "version",
        "correlation_id",
        "client_id",
        "request",
        "request_bytes",
        "answer",
        "answer_bytes",
    ),
)
Exchange.__doc__ = """A request and its answer, or None where there was none yet. `request` and `answer` are frames
without their size, as far as they are kept; `request_bytes` and `answer_bytes` say how long they were, without secrets.
`time_ms` is the wall clock's at the request, with its fractions. `client_id` is empty where the frame tells it."""


class OpenExchange:
    """An exchange that is being recorded, and one that no fast path served."""

    __slots__ = (
        "answer",
        "answer_bytes",
        "began",
        "client_id",
        "connection_id",
        "ended",
        "head",
        "local_address",
        "peer",
        "request",
        "request_bytes",
    )

    def __init__(self, connection: Connection, began: float, head: tuple[int, int, int], request_bytes: int) -> None:
        self.connection_id = connection.id
        self.peer = connection.peer
        self.local_address = connection.local_address
        self.began = began
        self.ended: float | None = None
        self.head = head
        self.client_id = ""
        self.request = b""
        self.request_bytes = request_bytes
        self.answer: bytes | None = None
        self.answer_bytes = 0


def as_exchange(kept: OpenExchange | Short, wall_ms: float) -> Exchange:
    """One of the ring as it is shown. `wall_ms` is the wall clock's time when the broker's clock was at 0."""
    if isinstance(kept, tuple):
        began, ended, request, answer = kept[3], kept[4], kept[8], kept[9][4:]
        times = wall_ms + began * 1000, (ended - began) * 1000
        return Exchange(*kept[:3], *times, *kept[5:8], "", request, len(request), answer, len(answer))
    return Exchange(
        kept.connection_id,
        kept.peer,
        kept.local_address,
        wall_ms + kept.began * 1000,
        None if kept.ended is None else (kept.ended - kept.began) * 1000,
        *kept.head,
        kept.client_id,
        kept.request,
        kept.request_bytes,
        kept.answer,
        kept.answer_bytes,
    )


def kept_bytes(kept: OpenExchange | Short) -> int:
    """How many bytes of an exchange the ring holds."""
    if isinstance(kept, tuple):
        return len(kept[8]) + len(kept[9]) - 4
    return len(kept.request) + len(kept.answer or b"")


def read_frame(exchange: Exchange, flexible: dict[int, int]) -> tuple[str, object | None, object | None]:
    """The client id, and the messages of request and answer; None for what is not there, not whole or not readable."""
    key, version = exchange.key, exchange.version
    client_id, request, answer = exchange.client_id, None, None
    try:
        view = memoryview(exchange.request)
        *_, client_id, position = frames.read_request_header(view, flexible)
        if len(view) == exchange.request_bytes:
            request = messages.decoder(messages.request_class(key), version)(view, position)[0]
    except (ProtocolError, ValueError):
        pass
    try:
        if exchange.answer is not None and len(exchange.answer) == exchange.answer_bytes:
            view = memoryview(exchange.answer)
            tagged = frames.response_is_tagged(key, version, flexible)
            position = frames.read_response_header(view, tagged)[1]
            answer = messages.decoder(messages.response_class(key), version)(view, position)[0]
    except (ProtocolError, ValueError):
        pass
    return client_id, request, answer
