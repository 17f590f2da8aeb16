"""BrokerHeartbeat, versions 0 to 2, on a controller's listener.

A broker says every `broker.heartbeat.interval.ms` that it lives. One that is silent for `broker.session.timeout.ms` is
fenced. It is unfenced when it wants no fence and has read its own registration in the metadata log (`is_caught_up`).
When it wants to shut down, others lead its partitions first; `should_shut_down` is answered when it leads none and
every other broker has read of that. Another epoch than that of its registration is STALE_BROKER_EPOCH.

Version 1 names directories that have failed (KIP-858): their replicas lead no more and leave the ISR. Version 2 names
the cordoned ones (KIP-1066).

A broker that may shut down loses its session at once. With Kafka its next life waits until that session is overdue.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.metadata.events import BrokerHeartbeat
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.BrokerHeartbeatRequest) -> object:
    """Submits the heartbeat to the controller."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.BrokerHeartbeatResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.submit(BrokerHeartbeat(ctx.token, request, ctx.now))
