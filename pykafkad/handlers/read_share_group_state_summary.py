"""ReadShareGroupStateSummary, versions 0 to 1 (KIP-932).

Where share partitions stand: start offset and epochs, from version 1 also the number of records behind the start offset
that are done with (KIP-1226). A share partition without state has the start offset -1 and no error.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.coordinator.share_state_events import ReadSummary
from pykafkad.handlers import share_state_requests
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.ReadShareGroupStateSummaryRequest) -> Generator[None, None, object]:
    result_class = messages.ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
    return (
        yield from share_state_requests.serve(ctx, request, ReadSummary, result_class, "read share group state summary")
    )
