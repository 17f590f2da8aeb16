"""ReadShareGroupState, version 0 (KIP-932).

The delivery state of share partitions, for the leaders of their partitions. It also fences older leaders: what they
write or read later is FENCED_LEADER_EPOCH.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.coordinator.share_state_events import ReadState
from pykafkad.handlers import share_state_requests
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.ReadShareGroupStateRequest) -> Generator[None, None, object]:
    result_class = messages.ReadShareGroupStateResponse.ReadStateResult
    return (yield from share_state_requests.serve(ctx, request, ReadState, result_class, "read share group state"))
