"""DeleteShareGroupState, version 0 (KIP-932).

Deletes the delivery state of share partitions. Deleting what does not exist is a success.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.coordinator.share_state_events import DeleteState
from pykafkad.handlers import share_state_requests
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.DeleteShareGroupStateRequest) -> Generator[None, None, object]:
    result_class = messages.DeleteShareGroupStateResponse.DeleteStateResult
    return (yield from share_state_requests.serve(ctx, request, DeleteState, result_class, "delete share group state"))
