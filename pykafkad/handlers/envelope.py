"""Envelope, version 0, on a controller's listener (KIP-590).

A broker forwards a client's request: the whole request with its header, the client's principal in the form of Kafka's
`DefaultKafkaPrincipalBuilder`, and the client's address. The request is decided for that principal, and the answer is
the client's answer with its header. Only who may do ClusterAction may send one.

A principal that can't be read is PRINCIPAL_DESERIALIZATION_FAILURE. An address that is none, and a request that brokers
do not forward, are INVALID_REQUEST. A request of another version, or that can't be read, is UNSUPPORTED_VERSION, upon
which the broker closes the client's connection. A controller that is not active answers NOT_CONTROLLER, outside.

Gaps: controller_mutation_rate does not count for forwarded requests.
"""

from __future__ import annotations

from struct import error as StructError
from types import GeneratorType

from pykafkad import errors
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.handlers import table
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.handlers.context import ANONYMOUS, DEFERRED
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from pykafkad.handlers.controller_context import ControllerContext

FORWARDABLE = frozenset((19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 67, 80, 81, 94))
"""The keys of the APIs that Kafka's brokers forward (`forwardable` in its `ApiKeys`)."""

_DESCRIBE_QUORUM = 55


def handle(ctx: ControllerContext, request: messages.EnvelopeRequest) -> object:
    """Opens the envelope, has the request decided, and puts its answer into another."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.EnvelopeResponse(error_code=CLUSTER_ACTION.error)
    try:
        opened, token = _open(ctx, request)
    except KafkaError as error:
        return messages.EnvelopeResponse(error_code=error.code)
    result = ctx.controller.submit(opened)
    if type(result) is GeneratorType:
        return _go_on(token, result)
    return result if result is DEFERRED else token.wrap(result)


def _go_on(token: _InnerToken, steps: Generator[object, None, object]) -> Generator[object, None, object]:
    result = yield from steps
    return result if result is DEFERRED else token.wrap(result)


class _InnerToken:
    """Stands for the request in an envelope: its answer leaves as that of the envelope (`outer`)."""

    __slots__ = ("_correlation_id", "_key", "_reply", "_version", "request_token")

    def __init__(
        self, outer: object, reply: Callable[[Any, object], None], key: int, version: int, correlation_id: int
    ) -> None:
        self.request_token = outer
        """The token of the envelope."""
        self._reply = reply
        self._key = key
        self._version = version
        self._correlation_id = correlation_id

    def deliver(self, message: object) -> None:
        """The answer to the request inside."""
        self._reply(self.request_token, self.wrap(message))

    def wrap(self, message: Any) -> messages.EnvelopeResponse:
        """The envelope with the answer."""
        elsewhere = errors.NOT_LEADER_OR_FOLLOWER if self._key == _DESCRIBE_QUORUM else errors.NOT_CONTROLLER
        if _has_error(message, elsewhere):
            return messages.EnvelopeResponse(error_code=errors.NOT_CONTROLLER)
        flexible_from = messages.flexible_from(messages.request_class(self._key))
        tagged = flexible_from is not None and self._version >= flexible_from
        chunks: list[Any] = [frames.start_response(self._correlation_id, tagged)]
        messages.encoder(type(message), self._version)(message, chunks)
        # Without the size of the frame, which the envelope has.
        return messages.EnvelopeResponse(response_data=b"".join(map(bytes, chunks))[4:])


def _has_error(message: Any, code: int) -> bool:
    """Whether an answer has an error anywhere."""
    for name in message._root.__slots__:
        value = getattr(message, name)
        if name == "error_code":
            if value == code:
                return True
        elif type(value) is list and any(hasattr(each, "_root") and _has_error(each, code) for each in value):
            return True
    return False


def _open(ctx: ControllerContext, request: messages.EnvelopeRequest) -> tuple[ControllerRequest, _InnerToken]:
    """The request inside, and its token. Raises `KafkaError`."""
    principal, by_token = _principal(request.request_principal)
    address = _address(bytes(request.client_host_address))
    frame = memoryview(bytes(request.request_data))
    try:
        key, version, correlation_id = frames.peek_request(frame)
    except ProtocolError as error:
        raise KafkaError(errors.UNSUPPORTED_VERSION, str(error)) from error
    row = table.by_key(key, ctx.settings.release)
    if row is None or key not in FORWARDABLE:
        raise KafkaError(errors.INVALID_REQUEST, f"API key {key} is not forwarded")
    if not row.min_version <= version <= row.max_version:
        raise KafkaError(errors.UNSUPPORTED_VERSION, f"{row.name} version {version} is not answered here")
    cls = messages.request_class(key)
    flexible_from = messages.flexible_from(cls)
    try:
        *_, client_id, position = frames.read_request_header(
            frame, {} if flexible_from is None else {key: flexible_from}
        )
        message, _ = messages.decoder(cls, version)(frame, position)
    except (ProtocolError, StructError) as error:
        raise KafkaError(errors.UNSUPPORTED_VERSION, str(error)) from error
    token = _InnerToken(ctx.token, ctx.reply, key, version, correlation_id)
    may_ask_for_tokens = principal != ANONYMOUS and not by_token
    asked = ControllerRequest(
        key,
        version,
        message,
        principal,
        address,
        ctx.listener,
        token,
        may_ask_for_tokens=may_ask_for_tokens,
        client_id=client_id or "",
    )
    return asked, token


def _principal(content: bytes | memoryview | None) -> tuple[str, bool]:
    """The principal, and whether it is authenticated by a delegation token. Raises `KafkaError`."""
    view = memoryview(bytes(content or b""))
    try:
        if bytes(view[:2]) != b"\0\0":
            raise ProtocolError("version 0 is the only one")
        data, _ = messages.decoder(messages.DefaultPrincipalData, 0)(view, 2)
    except (ProtocolError, StructError) as error:
        raise KafkaError(errors.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    return f"{data.type}:{data.name}", data.token_authenticated


def _address(content: bytes) -> str:
    """An address of 4 or 16 bytes as text. Raises `KafkaError`."""
    from ipaddress import ip_address

    try:
        return str(ip_address(content))
    except ValueError as error:
        raise KafkaError(errors.INVALID_REQUEST, str(error)) from error
