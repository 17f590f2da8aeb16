"""InitializeShareGroupState, version 0 (KIP-932).

Begins the delivery state of share partitions anew, with a start offset or, for -1, without one. The group coordinator
sends it when a group first reads a partition, and when its offsets are altered. FENCED_STATE_EPOCH refuses a state
epoch below the one that is known.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.coordinator.share_state_events import InitializeState
from pykafkad.handlers import share_state_requests
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.InitializeShareGroupStateRequest) -> Generator[None, None, object]:
    result_class = messages.InitializeShareGroupStateResponse.InitializeStateResult
    return (
        yield from share_state_requests.serve(
            ctx, request, InitializeState, result_class, "initialize share group state", allows_empty_topics=True
        )
    )
