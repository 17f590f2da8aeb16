"""Gets what stands at an address by HTTP or HTTPS, beside the loop, within a time that counts for all of it: the
timeout of Python's library counts for each read alone."""

from __future__ import annotations

import http.client
import io
import urllib.error
import urllib.request as request

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

_LEAST_SECONDS = 0.001
"""A socket with a timeout of 0 would not wait at all."""


class _Deadline:
    """When all must be done."""

    def __init__(self, now: Callable[[], float], seconds: float) -> None:
        self._now = now
        self._seconds = seconds
        self._end = now() + seconds

    def left(self) -> float:
        """The seconds that are left. Raises TimeoutError where none are."""
        left = self._end - self._now()
        if left <= 0:
            raise _too_late(self._seconds)
        return max(left, _LEAST_SECONDS)


class _Reader(io.RawIOBase):
    """The bytes of a socket as long as there is time."""

    def __init__(self, source: socket.socket, raw: io.RawIOBase, deadline: _Deadline) -> None:
        """`raw` reads `source`, and keeps it open as long as it is."""
        self._source = source
        self._raw = raw
        self._deadline = deadline

    def readable(self) -> bool:
        """See io.RawIOBase."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """See io.RawIOBase. Raises TimeoutError."""
        self._source.settimeout(self._deadline.left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """See io.RawIOBase."""
        self._raw.close()
        super().close()


def get(url: str, trust_path: str | None, bytes_max: int, seconds: float, now: Callable[[], float]) -> bytes:
    """What stands at the address: a little more than `bytes_max` of what is longer. `trust_path` are the certificates
    that are trusted (None: the system's). Raises OSError (of which URLError is one) or ValueError."""
    deadline = _Deadline(now, seconds)
    opener = request.OpenerDirector()
    for each in (
        _handler(url, trust_path, deadline),
        request.HTTPRedirectHandler(),
        request.HTTPErrorProcessor(),
        request.HTTPDefaultErrorHandler(),
        request.UnknownHandler(),
    ):
        opener.add_handler(each)
    data = b""
    try:
        with opener.open(url, timeout=deadline.left()) as response:
            while len(data) <= bytes_max and (more := response.read1(bytes_max)):
                data += more
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"its answer is {error.code}") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _too_late(seconds) from None
        raise
    except TimeoutError:
        raise _too_late(seconds) from None
    except http.client.HTTPException as error:
        raise ValueError(f"it does not speak HTTP: {error!r}") from None
    return data


def _too_late(seconds: float) -> TimeoutError:
    """Why a fetch was given up."""
    return TimeoutError(f"it took more than {seconds:g} s")


def _handler(url: str, trust_path: str | None, deadline: _Deadline) -> request.BaseHandler:
    """Opens the connections to servers: by HTTPS only if the address is one, so that none leads from there to HTTP."""

    def make(kind: type[http.client.HTTPConnection], host: str, **more: Any) -> http.client.HTTPConnection:
        connection = kind(host, **{**more, "timeout": deadline.left()})
        connection.response_class = _response_class(deadline)
        return connection

    if url.lower().startswith("https:"):
        import ssl

        context = ssl.create_default_context(cafile=trust_path)

        class Https(request.HTTPSHandler):
            def https_open(self, req: request.Request) -> http.client.HTTPResponse:
                kind = http.client.HTTPSConnection
                return self.do_open(lambda host, **more: make(kind, host, context=context, **more), req)

        return Https(context=context)

    class Http(request.HTTPHandler):
        def http_open(self, req: request.Request) -> http.client.HTTPResponse:
            return self.do_open(lambda host, **more: make(http.client.HTTPConnection, host, **more), req)

    return Http()


def _response_class(deadline: _Deadline) -> type[http.client.HTTPResponse]:
    class Response(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *arguments: Any, **more: Any) -> None:
            super().__init__(sock, *arguments, **more)
            self.fp = io.BufferedReader(_Reader(sock, self.fp.detach(), deadline))

    return Response
