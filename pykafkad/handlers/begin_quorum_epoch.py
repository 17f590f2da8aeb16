"""BeginQuorumEpoch, versions 0 and 1, on a controller's listener.

A controller says that it leads an epoch of the quorum; from version 1 on also where it listens (KIP-853). This node
follows it, unless the epoch is older than its own (FENCED_LEADER_EPOCH).

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.BeginQuorumEpochRequest) -> object:
    """Has this node's replica of the metadata log answer."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.BeginQuorumEpochResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.ask_quorum(ctx.token, request)
