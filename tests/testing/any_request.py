"""Requests of any API and version to a broker of this process, and what it answers."""

from __future__ import annotations

from typing import Any

from pykafkad.testing import Broker
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import frames, messages


def address(broker: Broker) -> tuple[str, int]:
    """Host and port of its listener for clients."""
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def is_flexible(request: object, version: int) -> bool:
    """Whether its header and body have tagged fields."""
    first = messages.flexible_from(type(request))
    return first is not None and version >= first


def encoded(request: object, version: int, client_id: str = "test", correlation_id: int = 1) -> bytes:
    """The frame of a request."""
    flexible = is_flexible(request, version)
    chunks: list[Any] = [
        frames.start_request(messages.record_type(type(request)), version, correlation_id, client_id, flexible)
    ]
    messages.encoder(type(request), version)(request, chunks)
    frames.finish_frame(chunks)
    return b"".join(chunks)


class AnyClient(WireClient):
    """A connection on which everything can be asked."""

    def __init__(self, broker: Broker, client_id: str = "test") -> None:
        super().__init__(*address(broker), client_id=client_id)
        self._name = client_id

    def answer_bytes(self, request: object, version: int) -> bytes:
        """The answer as it came. Raises OSError if the broker closes the connection instead."""
        return bytes(self._exchange(encoded(request, version, self._name)))

    def answer(self, request: object, version: int) -> Any:
        """The answer."""
        frame = memoryview(self.answer_bytes(request, version))
        _, position = frames.read_response_header(frame, is_flexible(request, version))
        response = getattr(messages, type(request).__name__.removesuffix("Request") + "Response")
        return messages.decoder(response, version)(frame, position)[0]
