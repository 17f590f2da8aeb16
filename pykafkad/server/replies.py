"""Answers to requests that did not get theirs at once: a token stands for the request, wherever its connection is.

An answer to a request that is no longer in service is dropped here and nowhere else."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.context import ReplyToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.server.connection import Connection
    from pykafkad.server.runtime import Runtime


class Replies:
    """Finds the request of a token and answers it."""

    __slots__ = ("_runtime",)

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def reply(self, token: Any, message: object) -> None:
        """Answer a delayed request. A token whose connection is gone, or was answered, is dropped.

        A token that is not a connection's (one part of several, a start) takes its message itself; None wants no
        answer."""
        if type(token) is not ReplyToken:
            if token is not None:
                token.deliver(message)
            return
        connection = self._runtime.reactor.connection(token.connection_id)
        if connection is None or connection.sequence != token.sequence or connection.in_service is None:
            return
        connection.unpark()
        connection.in_service.route.dispatcher.finish(connection.in_service, message)

    def resume(self, token: Any, serve: Callable[[], object]) -> None:
        """Go on with a delayed request: `serve()` gives what a handler gives, also DEFERRED once more."""
        try:
            result = serve()
        except Exception as problem:
            self.fail(token, problem)
            return
        connection = self.connection_of(token)
        if connection is not None and connection.in_service is not None:
            connection.unpark()
            connection.in_service.route.dispatcher.conclude(connection.in_service, result)

    def fail(self, token: Any, error: Exception) -> None:
        """Something raised on behalf of a delayed request, or of nobody (a token that is None, or whose connection is
        gone). A token of this process that has `abandon` is told."""
        if hasattr(token, "abandon"):
            self._runtime.unexpected(error)
            token.abandon("an unexpected error")
            return
        connection = self.connection_of(token)
        if connection is None or connection.in_service is None:
            self._runtime.unexpected(error)
            return
        connection.unpark()
        connection.in_service.route.dispatcher.failed(connection.in_service, error)

    def refuse(self, token: Any, code: int) -> None:
        """Answer a request with an error for all that it asks for. A token of this process that has `abandon` is
        told."""
        connection = self.connection_of(token)
        if hasattr(token, "abandon"):
            token.abandon(f"it was refused: {errors.name(code)}")
        elif connection is not None and connection.in_service is not None:
            connection.unpark()
            connection.in_service.route.dispatcher.finish_with_error(connection.in_service, code)

    def abandon(self, token: Any, reason: str) -> None:
        """A request that can't be answered truthfully: its connection is closed, and the client asks again. A token of
        this process that has `abandon` is told."""
        if hasattr(token, "abandon"):
            token.abandon(reason)
            return
        connection = self.connection_of(token)
        if connection is not None:
            connection.close(reason)

    def compute(self, token: Any, job: Callable[[], object], answer: Callable[[object], object]) -> None:
        """Run `job()` beside the loop and reply with `answer(result)`."""

        def then(result: object) -> None:
            try:
                if isinstance(result, Exception):
                    raise result
                message = answer(result)
            except Exception as error:
                self.fail(token, error)
            else:
                self.reply(token, message)

        self._runtime.cpu_offload.submit(job, then)

    def connection_of(self, token: Any) -> Connection | None:
        """The living connection whose last request `token` stands for, or is a part of."""
        token = getattr(token, "request_token", token)
        if not hasattr(token, "connection_id"):
            return None
        connection = self._runtime.reactor.connection(token.connection_id)
        return connection if connection is not None and connection.sequence == token.sequence else None
