"""ConsumerGroupHeartbeat, versions 0 and 1.

Always UNSUPPORTED_VERSION, as Kafka answers with group.version at level 0.

Gaps: the consumer group protocol of KIP-848 is not offered yet; classic groups are.
"""

from __future__ import annotations

from pykafkad.handlers.refusals import FEATURE_OFF
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    """The refusal."""
    return messages.ConsumerGroupHeartbeatResponse(error_code=FEATURE_OFF)
