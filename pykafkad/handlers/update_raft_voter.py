"""UpdateRaftVoter, version 0, on a controller's listener.

A controller that votes tells the leader where it listens, and which levels of kraft.version it supports (KIP-853). With
kraft.version 1 the leader writes that into the log. One that is no voter is VOTER_NOT_FOUND.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.UpdateRaftVoterRequest) -> object:
    """Has this node's replica of the metadata log answer."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.UpdateRaftVoterResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.ask_quorum(ctx.token, request)
