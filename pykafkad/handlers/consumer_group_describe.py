"""ConsumerGroupDescribe, versions 0 and 1.

Every group is UNSUPPORTED_VERSION, as Kafka answers with group.version at level 0.

Gaps: the consumer group protocol of KIP-848 is not offered yet; classic groups are.
"""

from __future__ import annotations

from pykafkad.handlers.refusals import every_group
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    """One refusal for each group."""
    return messages.ConsumerGroupDescribeResponse(
        groups=every_group(messages.ConsumerGroupDescribeResponse.DescribedGroup, request.group_ids)
    )
