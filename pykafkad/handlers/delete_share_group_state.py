"""DeleteShareGroupState, version 0.

Every partition is UNSUPPORTED_VERSION. Kafka has no switch for its share coordinator, which brokers ask and no client;
it is the code with which Kafka refuses everything of share groups while share.version is 0.

Gaps: share groups (KIP-932) are not offered yet.
"""

from __future__ import annotations

from pykafkad.handlers.refusals import every_state
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


_Answer = messages.DeleteShareGroupStateResponse


def handle(ctx: Context, request: object) -> object:
    """One refusal for each partition."""
    return _Answer(results=every_state(_Answer.DeleteStateResult, _Answer.PartitionResult, request.topics))
