"""WriteShareGroupState, versions 0 to 1 (KIP-932).

Stores which records of share partitions have changed their state. Version 1 adds the number of records behind the start
offset that are done with (KIP-1226). A share partition must have been initialized.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.coordinator.share_state_events import WriteState
from pykafkad.handlers import share_state_requests
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.WriteShareGroupStateRequest) -> Generator[None, None, object]:
    result_class = messages.WriteShareGroupStateResponse.WriteStateResult
    return (yield from share_state_requests.serve(ctx, request, WriteState, result_class, "write share group state"))
