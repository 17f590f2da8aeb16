"""The control API's server: waitress on a thread of its own, with some more that serve one request each.

Calls are carried to the broker's loop as those of a test are (`pykafkad/testing/broker_loop.py`)."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import traceback
import weakref
from functools import partial
from typing import Any

from pykafkad.cli import extras
from pykafkad.control.application import MOST_BODY_BYTES, Application
from pykafkad.control.route import MOST_WAITS, Control
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server.logs import Logs, process_logs
from pykafkad.testing.operations import Operations

HOST = "127.0.0.1"
THREADS = MOST_WAITS + 4
"""Of which `MOST_WAITS` may wait, so that others are always answered."""

MOST_CONNECTIONS = 100
MOST_HEADER_BYTES = 64 << 10
TOKEN_BYTES = 24
IDLE_SECONDS = 10
"""A connection on which nothing moves so long, and no request is served, is closed: it keeps others out."""

IDLE_CHECK_SECONDS = 5
STOP_SECONDS = 10.0
FLUSH_SECONDS = 0.002


class ControlServer:
    """The control API of one broker: `start`, then `close`."""

    def __init__(
        self,
        operations: Operations,
        *,
        host: str = HOST,
        port: int = 0,
        token: str | None = None,
        logs: Logs | None = None,
    ) -> None:
        """Port 0 takes a free one. Without a token one is made. Raises ConfigError without the library."""
        if sentence := extras.missing("waitress"):
            raise ConfigError(f"control: {sentence}")
        self.token = token or secrets.token_urlsafe(TOKEN_BYTES)
        self.url = ""
        """`http://HOST:PORT` while it is served."""
        self.control = Control(operations)
        self._address = host or HOST, port
        self._logs = logs or process_logs()
        self._server: Any = None
        self._sockets: dict[int, Any] = {}
        self._thread: threading.Thread | None = None
        self._process_id = os.getpid()

    def start(self) -> None:
        """Serve. Raises StartFailure for an address that can't be had."""
        import waitress.server

        host, port = self._address
        shown = f"[{host}]" if ":" in host else host
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
        except OSError as error:
            # The number of the error is no news for people.
            reason = error.strerror.partition(" (while")[0] if error.strerror else error
            raise StartFailure(f"cannot listen on {shown}:{port} for the control API: {reason}") from None
        self.control.is_closing = False
        server = self._server = waitress.server.create_server(
            Application(self.control, self.token, self._tell),
            map=self._sockets,
            sockets=[listening],
            threads=THREADS,
            connection_limit=MOST_CONNECTIONS,
            channel_timeout=IDLE_SECONDS,
            cleanup_interval=IDLE_CHECK_SECONDS,
            # A larger body is refused before it is read; the application says so in JSON up to twice its limit.
            max_request_body_size=2 * MOST_BODY_BYTES,
            max_request_header_size=MOST_HEADER_BYTES,
            asyncore_use_poll=True,
            ident=None,
        )
        # The name that was asked for, with the port that is now known, which a restart takes again.
        self._address = host, int(server.effective_port)
        self.url = f"http://{shown}:{server.effective_port}"
        self._thread = threading.Thread(target=server.run, name=f"pykafkad control {self.url}", daemon=True)
        self._process_id = os.getpid()
        _LIVE.add(self)
        self._thread.start()

    def close(self) -> None:
        """Stop; the port is free afterwards, and no thread is left. Fine if it does not run. The broker must have ended
        before, so that requests that wait end."""
        thread, self._thread = self._thread, None
        if thread is None or self._process_id != os.getpid():
            return
        _LIVE.discard(self)
        self.control.is_closing = True
        server = self._server
        # In steps, since a thread that answers wakes the server's: that must not end before the others.
        server.trigger.pull_trigger(partial(_stop_listening, server))
        server.task_dispatcher.shutdown(timeout=STOP_SECONDS)
        if server.task_dispatcher.threads:
            # Somebody does not read his answer.
            server.trigger.pull_trigger(partial(_drop_connections, server))
            server.task_dispatcher.shutdown(timeout=STOP_SECONDS)
        server.trigger.pull_trigger(partial(_flush_connections, server))
        pause = threading.Event()
        for _ in range(round(STOP_SECONDS / FLUSH_SECONDS)):
            if not server.active_channels:
                break
            pause.wait(FLUSH_SECONDS)
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

    def _tell(self, error: Exception, request: str) -> None:
        shown = "".join(traceback.format_exception(error))
        self._logs.error("control", "unexpected-error", request=request, error=error, traceback=shown)


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


def _drop_connections(server: Any) -> None:
    """On the server's thread."""
    for channel in list(server.active_channels.values()):
        channel.handle_close()


_LIVE: weakref.WeakSet[ControlServer] = weakref.WeakSet()
"""Those that are served by this process: for forked children alone."""


def _close_copies() -> None:
    for each in list(_LIVE):
        each.close_copies()
    _LIVE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
