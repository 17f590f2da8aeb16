"""AssignReplicasToDirs, version 0, on a controller's listener.

A broker with several directories tells which of them its replicas are in (KIP-858). Each replica has its own result:
UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER where the broker has no replica. A replica in a
directory that has failed leads no more and leaves the ISR. Another epoch than that of the broker's registration is
STALE_BROKER_EPOCH.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.metadata.events import AssignReplicas
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.AssignReplicasToDirsRequest) -> object:
    """Submits the request to the controller."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.AssignReplicasToDirsResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.submit(AssignReplicas(ctx.token, request))
