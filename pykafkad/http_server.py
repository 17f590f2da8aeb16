"""An HTTP server for a WSGI application (PEP 3333): waitress on a thread of its own, with some more that serve one
request each.

With `http_door.py` the only module that knows the server library, which nothing imports before somebody asks for such a
server.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafkad.errors import StartFailure

if TYPE_CHECKING:
    from pykafkad.http_door import Door

MOST_CONNECTIONS = 100
MOST_HEADER_BYTES = 64 << 10
IDLE_SECONDS = 10
"""A connection on which nothing moves so long, and no request is served, is closed: it keeps others out."""

IDLE_CHECK_SECONDS = 5
STOP_SECONDS = 10.0
UNREAD_SECONDS = 0.5
"""At the end a client that has read nothing of its answer for so long does not get the rest."""

FLUSH_SECONDS = 0.002
EVERY_ADDRESS = ("0.0.0.0", "::")

Application = Callable[[dict[str, Any], Callable[[str, list[tuple[str, str]]], object]], Iterable[bytes]]


class HttpServer:
    """Serves an application: `start`, then `close`."""

    def __init__(
        self, what: str, host: str, port: int, *, threads: int, body_bytes_max: int, door: Door | None = None
    ) -> None:
        """`what` is served, in words for errors. Port 0 takes a free one. As many requests as there are `threads` are
        served at a time; one with a longer body is refused before it is read, and where there is a door, whoever has
        no key to it."""
        self.url = ""
        """`http://HOST:PORT` while it is served."""
        self._what = what
        self._address = host, port
        self._threads = threads
        self._body_bytes_max = body_bytes_max
        self._door = door
        self._server: Any = None
        self._sockets: dict[int, Any] = {}
        self._thread: threading.Thread | None = None
        self._process_id = os.getpid()

    def bind(self) -> socket.socket:
        """A socket at the address; `url` is known from now on. Raises StartFailure for one that can't be had."""
        host, port = self._address
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
        except OSError as error:
            # The number of the error is no news for people.
            reason = error.strerror.partition(" (while")[0] if error.strerror else error
            raise StartFailure(f"cannot listen on {_shown(host)}:{port} for {self._what}: {reason}") from None
        # The name that was asked for, with the port that is now known, which a restart takes again.
        self._address = host, int(listening.getsockname()[1])
        self.url = f"http://{_shown('localhost' if host in EVERY_ADDRESS else host)}:{self._address[1]}"
        return listening

    def start(self, application: Application, listening: socket.socket | None = None) -> None:
        """Serve at what `bind` has given. Raises StartFailure for an address that can't be had."""
        from pykafkad import http_door

        server = self._server = http_door.serve(
            application,
            self._door,
            [listening or self.bind()],
            self._sockets,
            threads=self._threads,
            connection_limit=MOST_CONNECTIONS,
            # So that it is seen when a client goes away in mid-answer.
            channel_request_lookahead=1,
            channel_timeout=IDLE_SECONDS,
            cleanup_interval=IDLE_CHECK_SECONDS,
            max_request_body_size=self._body_bytes_max,
            max_request_header_size=MOST_HEADER_BYTES,
            asyncore_use_poll=True,
            ident=None,
        )
        self._thread = threading.Thread(target=server.run, name=f"pykafkad {self._what} {self.url}", daemon=True)
        self._process_id = os.getpid()
        _LIVE.add(self)
        self._thread.start()

    @property
    def is_served(self) -> bool:
        """Whether it has started in this process and not been closed: a forked child has no part in it."""
        return self._thread is not None and self._process_id == os.getpid()

    def close(self) -> None:
        """Stop; the port is free afterwards, and no thread is left. Fine if it does not run. Requests that wait for
        others must have ended."""
        if not self.is_served:
            return
        thread, self._thread = self._thread, None
        assert thread is not None
        _LIVE.discard(self)
        server = self._server
        # In steps, since a thread that answers wakes the server's: that must not end before the others.
        server.trigger.pull_trigger(partial(_stop_listening, server))
        server.task_dispatcher.set_thread_count(0)
        if not _wait_until(server, lambda: not server.task_dispatcher.threads):
            server.trigger.pull_trigger(partial(_drop_connections, server))
        server.task_dispatcher.shutdown(timeout=STOP_SECONDS)
        server.trigger.pull_trigger(partial(_flush_connections, server))
        _wait_until(server, lambda: not server.active_channels)
        server.trigger.pull_trigger(partial(_end_loop, server, self._sockets))
        thread.join(STOP_SECONDS)
        if not thread.is_alive():
            server.trigger.close()
        self._server = None
        self.url = ""

    def close_copies(self) -> None:
        """In a forked child: close what it has of the server's sockets, so that the port is its parent's alone."""
        for each in list(self._sockets.values()):
            if each.socket is not None:
                each.socket.close()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _stop_listening(server: Any) -> None:
    """On the server's thread."""
    server.asyncore.dispatcher.close(server)


def _flush_connections(server: Any) -> None:
    """On the server's thread: each closes when its last answer has left."""
    for channel in list(server.active_channels.values()):
        channel.close_when_flushed = True


def _end_loop(server: Any, sockets: dict[int, Any]) -> None:
    """On the server's thread: its loop ends without sockets. The trigger stays open for the thread that pulled it,
    which may not have written to it yet."""
    server.trigger.del_channel(sockets)
    server.asyncore.close_all(sockets)


def _drop_connections(server: Any, is_unwanted: Callable[[Any], bool] = lambda _: True) -> None:
    """On the server's thread."""
    for channel in list(server.active_channels.values()):
        if is_unwanted(channel):
            channel.handle_close()


def _wait_until(server: Any, is_done: Callable[[], bool]) -> bool:
    """Wait until it is done, for `STOP_SECONDS`; whether it is. Clients that do not read their answers are not waited
    for."""
    from pykafkad import http_door

    def is_unread(channel: Any) -> bool:
        return http_door.is_unread(channel, UNREAD_SECONDS)

    pause = threading.Event()
    for _ in range(round(STOP_SECONDS / FLUSH_SECONDS)):
        if is_done():
            return True
        if any(is_unread(each) for each in list(server.active_channels.values())):
            server.trigger.pull_trigger(partial(_drop_connections, server, is_unread))
        pause.wait(FLUSH_SECONDS)
    return is_done()


_LIVE: weakref.WeakSet[HttpServer] = weakref.WeakSet()
"""Those that are served by this process: for forked children alone."""


def _close_copies() -> None:
    for each in list(_LIVE):
        each.close_copies()
    _LIVE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
