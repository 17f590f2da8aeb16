"""EndQuorumEpoch, versions 0 and 1, on a controller's listener.

A controller that led the quorum stops, and proposes who should lead next. Those ask for votes one after the other. An
older epoch than this node's is FENCED_LEADER_EPOCH.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.EndQuorumEpochRequest) -> object:
    """Has this node's replica of the metadata log answer."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.EndQuorumEpochResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.ask_quorum(ctx.token, request)
