"""AllocateProducerIds, version 0, on a controller's listener.

A broker gets the next block of 1000 producer ids of the cluster. Another epoch than that of its registration is
STALE_BROKER_EPOCH.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.metadata.events import AllocateProducerIds
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.AllocateProducerIdsRequest) -> object:
    """Submits the request to the controller."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.AllocateProducerIdsResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.submit(AllocateProducerIds(ctx.token, request.broker_id, request.broker_epoch))
