"""A connection to a broker for what a test asks: one request after another, without any client library."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pykafkad import errors
from pykafkad.server.fault_injection import EXEMPT_CLIENT_ID
from pykafkad.wire import frames, messages

VERSIONS = {
    "Produce": 9,
    "Fetch": 12,
    "ListOffsets": 7,
    "Metadata": 9,
    "OffsetCommit": 8,
    "OffsetFetch": 8,
    "FindCoordinator": 4,
    "DescribeGroups": 5,
    "ListGroups": 5,
    "CreateTopics": 4,
    "DeleteTopics": 5,
    "IncrementalAlterConfigs": 1,
    "DescribeConfigs": 4,
    "ConsumerGroupDescribe": 1,
    "ShareGroupDescribe": 1,
    "DescribeTransactions": 0,
    "ListTransactions": 0,
    "DescribeTopicPartitions": 0,
    "ApiVersions": 0,
}
"""The version of each request that is sent here: the last that names topics where a later one has their ids."""

_SINCE_KAFKA_3_8 = ("ListGroups", "ConsumerGroupDescribe")
"""Of these, those whose version an older broker (`pykafkad.act.as`) refuses; it is then asked for its own."""

TIMEOUT_SECONDS = 30.0
"""A connection or an answer takes no longer."""


def connected(address: str) -> socket.socket:
    """A connection to `host:port`. Raises OSError, and RuntimeError where there is no address yet."""
    if not address:
        raise RuntimeError("the broker is not started; use `with Broker() as broker:` or `start()`")
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_SECONDS)


def connected_to(addresses: str, place: int | None) -> socket.socket:
    """A connection to the broker at that place, from 0 on, of several whose addresses have commas between them; without
    a place to the first that serves. Raises as `connected`."""
    every = addresses.split(",")
    if place is not None:
        return connected(every[place])
    for address in every[:-1]:
        try:
            return connected(address)
        except OSError:
            continue
    return connected(every[-1])


class Refused(Exception):
    """A broker has answered with an error. `code` is Kafka's, such as 3 for UNKNOWN_TOPIC_OR_PARTITION."""

    def __init__(self, what: str, code: int, text: str | None = None) -> None:
        self.what, self.code, self.text = what, code, text
        super().__init__(f"{what}: {errors.name(code)}: {text or errors.message(code)}")


class WireClient:
    """One connection, made with the first request and again after it was lost. Threads take turns on it; after a fork
    the child makes its own."""

    def __init__(
        self, host: str, port: int, timeout_seconds: float = TIMEOUT_SECONDS, client_id: str = EXEMPT_CLIENT_ID
    ) -> None:
        """Of the usual client id requests meet no fault."""
        self._address = host, port
        self._timeout_seconds = timeout_seconds
        self._client_id = client_id
        self._socket: socket.socket | None = None
        self._process_id = os.getpid()
        self._turn = threading.Lock()
        self._correlation_id = 0
        self._lowered: dict[str, int] = {}

    def close(self) -> None:
        """Close the connection, if there is one."""
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """While requests wait: one that is under way is answered before, and the next one makes a new connection."""
        self._check_process()
        with self._turn:
            self.close()
            yield

    def ask(self, api: str, **fields: object) -> Any:
        """The answer to the request of an API of `VERSIONS`, with these fields. Raises OSError."""
        version = self._lowered.get(api, VERSIONS[api])
        try:
            return self._ask(api, version, fields)
        except ConnectionResetError:
            # A broker closes the connection on a version that it does not have.
            if api not in _SINCE_KAFKA_3_8 or api in self._lowered:
                raise
        key = messages.schema(getattr(messages, f"{api}Request")).key
        rows = self._ask("ApiVersions", VERSIONS["ApiVersions"], {}).api_keys
        self._lowered[api] = min([version, *(row.max_version for row in rows if row.api_key == key)])
        return self._ask(api, self._lowered[api], fields)

    def _ask(self, api: str, version: int, fields: dict[str, object]) -> Any:
        request_class, response_class = getattr(messages, f"{api}Request"), getattr(messages, f"{api}Response")
        first_flexible = messages.flexible_from(request_class)
        tagged = first_flexible is not None and version >= first_flexible
        key = messages.schema(request_class).key
        assert key is not None
        self._check_process()
        with self._turn:
            self._correlation_id += 1
            asked = self._correlation_id
            chunks: list[Any] = [frames.start_request(key, version, asked, self._client_id, tagged)]
            messages.encoder(request_class, version)(request_class(**fields), chunks)
            frames.finish_frame(chunks)
            frame = memoryview(self._exchange(b"".join(chunks)))
            answered, position = frames.read_response_header(frame, tagged)
            if answered != asked:
                self.close()
                raise OSError(f"an answer to request {answered} came for request {asked}")
        answer, _ = messages.decoder(response_class, version)(frame, position)
        return answer

    def _check_process(self) -> None:
        if self._process_id != os.getpid():
            # The parent goes on with its socket, and the lock may have been taken when this process was forked.
            self._process_id, self._turn = os.getpid(), threading.Lock()
            self.close()

    def _exchange(self, request: bytes) -> bytes:
        if self._socket is not None and self._was_closed():
            self.close()
        if self._socket is None:
            self._socket = self._connected()
            self._socket.settimeout(self._timeout_seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.sendall(request)
            return self._receive(int.from_bytes(self._receive(4), "big"))
        except OSError:
            self.close()
            raise

    def _connected(self) -> socket.socket:
        return socket.create_connection(self._address, self._timeout_seconds)

    def _was_closed(self) -> bool:
        """Whether the broker has closed the connection meanwhile, as it does with idle ones."""
        assert self._socket is not None
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self._socket.settimeout(self._timeout_seconds)

    def _receive(self, size_bytes: int) -> bytes:
        assert self._socket is not None
        parts = []
        while size_bytes:
            part = self._socket.recv(min(size_bytes, 1 << 20))
            if not part:
                raise ConnectionResetError("the broker has closed the connection")
            parts.append(part)
            size_bytes -= len(part)
        return b"".join(parts)


class OwnWireClient(WireClient):
    """One whose connections somebody else makes: for a broker's own calls."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        """`connect` makes a connection to the broker."""
        super().__init__("", 0)
        self._connected = connect  # type: ignore[method-assign]
