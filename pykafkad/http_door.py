"""The server library, waitress, with a door: who has no key is refused by the header of his request, of whose body
nothing is kept, and what the library itself refuses is answered in the application's form."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from waitress import channel, parser, task
from waitress.server import create_server
from waitress.utilities import Error

UNAUTHORIZED = 401
MOST_DISCARDED_BYTES = 64 << 10


class Door(NamedTuple):
    """Who is served, by the header Authorization of a request with a body, and the answer to whom is not or whose
    request is none: its headers and body, of a status and of what the library says is wrong."""

    has_key: Callable[[str], bool]
    refusal: Callable[[int, str], tuple[list[tuple[str, str]], bytes]]


class _NoKey(Error):  # type: ignore[misc]
    """An error of ours among the library's."""

    code, reason = UNAUTHORIZED, "Unauthorized"


class _Discarded:
    """Takes the body of a stranger in the library's place, and keeps nothing of it."""

    error = None

    def __init__(self, size_bytes: int) -> None:
        self._left = size_bytes

    @property
    def completed(self) -> bool:
        """Whether all of it has come."""
        return not self._left

    def received(self, data: bytes) -> int:
        """How many bytes belong to it."""
        taken = min(len(data), self._left)
        self._left -= taken
        return taken

    def getbuf(self) -> _Discarded:
        """What is to be closed."""
        return self

    def close(self) -> None:
        """There is nothing."""


def serve(
    application: Callable[..., Any], door: Door | None, sockets: list[Any], known: dict[int, Any], **more: Any
) -> Any:
    """A server of the library's, not running yet, with a door or without. `known` is filled with its sockets; `more`
    are settings of the library's."""
    server = create_server(application, map=known, sockets=sockets, **more)
    if door is not None:
        server.channel_class = _channel_class(door)
    return server


def _channel_class(door: Door) -> type:
    class Parser(parser.HTTPRequestParser):  # type: ignore[misc]
        """Keeps nothing of a stranger's body, and does not even read a large one."""

        content_length: int
        expect_continue: bool

        def parse_header(self, header_plus: bytes) -> None:
            """The library's, and what becomes of the body."""
            super().parse_header(header_plus)
            if (self.content_length or self.chunked) and not door.has_key(self.headers.get("AUTHORIZATION", "")):
                self.error = _NoKey("")
                is_small = not self.chunked and self.content_length <= MOST_DISCARDED_BYTES
                # Who has sent a small one is answered after it: a connection that ends before may lose the answer.
                self.body_rcv = _Discarded(self.content_length) if is_small and not self.expect_continue else None
                self.content_length = 0
                self.expect_continue = False

    class ErrorTask(task.ErrorTask):  # type: ignore[misc]
        """Answers what the library refuses."""

        def execute(self) -> None:
            """One answer, after which the connection is closed."""
            error = self.request.error
            headers, body = door.refusal(error.code, error.body)
            self.status = f"{error.code} {error.reason}"
            self.response_headers.extend(headers)
            self.set_close_on_finish()
            self.content_length = len(body)
            self.write(body)

    class Channel(channel.HTTPChannel):  # type: ignore[misc]
        """A connection."""

        parser_class = Parser
        error_task_class = ErrorTask

    return Channel


def is_unread(channel: Any, seconds: float) -> bool:
    """Whether something waits for the client of a connection, who has read nothing for so long."""
    return bool(channel.total_outbufs_len) and bool(time.time() - channel.last_activity > seconds)
