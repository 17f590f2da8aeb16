"""ShareGroupHeartbeat, version 1.

Always UNSUPPORTED_VERSION, as Kafka answers with share.version at level 0.

Gaps: share groups (KIP-932) are not offered yet.
"""

from __future__ import annotations

from pykafkad.handlers.refusals import FEATURE_OFF
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    """The refusal."""
    return messages.ShareGroupHeartbeatResponse(error_code=FEATURE_OFF)
