"""FetchSnapshot, versions 0 and 1, on a controller's listener.

A part of a snapshot of the metadata (KIP-630), for a replica whose log ends before the leader's begins. Only the leader
answers with content. A snapshot that was let go, or is not the newest, is SNAPSHOT_NOT_FOUND, a position outside of it
POSITION_OUT_OF_RANGE. A part has at most 8 MB.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.FetchSnapshotRequest) -> object:
    """Has this node's replica of the metadata log answer."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.FetchSnapshotResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.ask_quorum(ctx.token, request)
