"""Vote, versions 0 to 2, on a controller's listener.

A controller asks for a vote in an epoch, or, from version 2 on, whether it would get one (KIP-996). Version 1 has the
ids of directories (KIP-853). Its log must not end before this node's. A request of an older epoch is
FENCED_LEADER_EPOCH, one for another voter INVALID_VOTER_KEY, and another cluster's id is INCONSISTENT_CLUSTER_ID.
Answers from version 1 on name the leader's address.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.VoteRequest) -> object:
    """Has this node's replica of the metadata log answer."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.VoteResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.ask_quorum(ctx.token, request)
