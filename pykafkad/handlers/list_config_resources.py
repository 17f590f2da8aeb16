"""ListConfigResources, versions 0 and 1. Version 0 was named ListClientMetricsResources and lists only those.

The names of all resources with settings. Topics (2), this broker and its loggers (4 and 8) are listed always,
client-metrics subscriptions (16) and groups (32) only if they have a setting. A request without types means all. An
unknown type fails the request with UNSUPPORTED_VERSION.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.operations import CONFIG_RESOURCES
from pykafkad.metadata.configs import TYPE_BROKER_LOGGER, TYPE_CLIENT_METRICS, TYPE_GROUP
from pykafkad.metadata.image import TYPE_BROKER, TYPE_TOPIC
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.handlers.context import Context
    from pykafkad.metadata.image import Image


(_DESCRIBE_CONFIGS,) = RULES["ListConfigResources"]


def handle(ctx: Context, request: messages.ListConfigResourcesRequest) -> object:
    """Every resource of the requested types."""
    response = messages.ListConfigResourcesResponse
    if not may(ctx, _DESCRIBE_CONFIGS):
        return response(error_code=_DESCRIBE_CONFIGS.error)
    known = (TYPE_CLIENT_METRICS,) if ctx.version == 0 else tuple(CONFIG_RESOURCES)
    asked = request.resource_types or known
    if not set(asked) <= set(known):
        return response(error_code=errors.UNSUPPORTED_VERSION)
    rows = [
        response.ConfigResource(resource_name=name, resource_type=kind)
        for kind in known
        if kind in asked
        for name in _names(ctx.metadata, kind)
    ]
    return response(config_resources=rows)


def _names(image: Image, kind: int) -> Iterable[str]:
    if kind == TYPE_TOPIC:
        return image.topics
    if kind in (TYPE_BROKER, TYPE_BROKER_LOGGER):
        return [str(broker.id) for broker in image.alive_brokers()]
    assert kind in (TYPE_CLIENT_METRICS, TYPE_GROUP)
    return [name for resource_type, name in image.all_configs() if resource_type == kind]
