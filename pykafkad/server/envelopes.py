"""The requests by which a broker asks a controller of another process: envelopes around those of clients, and the
broker's own, made of the events that a controller of the same process would take."""

from __future__ import annotations

from ipaddress import ip_address
from struct import Struct, error as StructError

from pykafkad.errors import ProtocolError
from pykafkad.handlers.context import ANONYMOUS
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.server.dispatch import controller_request
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.metadata.events import AlterConfigs, AssignReplicasToDirs
    from pykafkad.server.dispatch import ServedContext

_PRINCIPAL_VERSION = Struct(">h").pack(0)
_NO_ADDRESS = bytes(4)


def of_client(context: ServedContext, message: Any) -> ControllerRequest:
    """A request of the client in service, as one that the controller decides."""
    return controller_request(context, message)


def sealed(request: ControllerRequest) -> messages.EnvelopeRequest:
    """A client's request with who the client is. Its correlation id is 0: nobody but the envelope needs one."""
    cls = messages.request_class(request.key)
    chunks: list[Any] = [
        frames.start_request(request.key, request.version, 0, request.client_id, _is_flexible(request))
    ]
    messages.encoder(cls, request.version)(request.message, chunks)
    kind, _, name = request.principal.partition(":")
    by_token = request.principal != ANONYMOUS and not request.may_ask_for_tokens
    principal: list[Any] = [bytearray(_PRINCIPAL_VERSION)]
    data = messages.DefaultPrincipalData(type=kind, name=name, token_authenticated=by_token)
    messages.encoder(messages.DefaultPrincipalData, 0)(data, principal)
    return messages.EnvelopeRequest(
        # Without the size of the frame.
        request_data=b"".join(map(bytes, chunks))[4:],
        request_principal=bytes(principal[0]),
        client_host_address=_address(request.client_address),
    )


def _is_flexible(request: ControllerRequest) -> bool:
    flexible_from = messages.flexible_from(messages.request_class(request.key))
    return flexible_from is not None and request.version >= flexible_from


def _address(text: str) -> bytes:
    try:
        return ip_address(text.partition("%")[0]).packed
    except ValueError:
        return _NO_ADDRESS


def opened(envelope: messages.EnvelopeResponse, key: int, version: int) -> Any:
    """The answer inside; None if it can't be read."""
    cls = messages.response_class(key)
    flexible_from = messages.flexible_from(messages.request_class(key))
    view = memoryview(bytes(envelope.response_data or b""))
    try:
        _, position = frames.read_response_header(view, flexible_from is not None and version >= flexible_from)
        return messages.decoder(cls, version)(view, position)[0]
    except (ProtocolError, StructError):
        return None


def alter_configs(event: AlterConfigs) -> Any:
    """The request for changes of settings that the broker has checked."""
    if event.incremental:
        incremental = messages.IncrementalAlterConfigsRequest
        return incremental(
            validate_only=event.validate_only,
            resources=[
                incremental.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=resource,
                    configs=[
                        incremental.AlterableConfig(name=name, config_operation=operation, value=value)
                        for name, operation, value in operations
                    ],
                )
                for kind, resource, operations in event.changes
            ],
        )
    whole = messages.AlterConfigsRequest
    return whole(
        validate_only=event.validate_only,
        resources=[
            whole.AlterConfigsResource(
                resource_type=kind,
                resource_name=resource,
                configs=[whole.AlterableConfig(name=name, value=value) for name, value in operations.items()],
            )
            for kind, resource, operations in event.changes
        ],
    )


def assignment(event: AssignReplicasToDirs, broker_epoch: int) -> messages.AssignReplicasToDirsRequest:
    """The request that names the directories of replicas."""
    request = messages.AssignReplicasToDirsRequest
    placed: dict[bytes, dict[bytes, list[int]]] = {}
    for (topic_id, index), directory_id in event.replicas.items():
        placed.setdefault(directory_id, {}).setdefault(topic_id, []).append(index)
    return request(
        broker_id=event.broker_id,
        broker_epoch=broker_epoch,
        directories=[
            request.DirectoryData(
                id=directory_id,
                topics=[
                    request.TopicData(
                        topic_id=topic_id,
                        partitions=[request.PartitionData(partition_index=index) for index in indexes],
                    )
                    for topic_id, indexes in topics.items()
                ],
            )
            for directory_id, topics in placed.items()
        ],
    )
