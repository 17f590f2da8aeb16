"""StreamsGroupDescribe, version 0.

Every group is UNSUPPORTED_VERSION, as Kafka answers with streams.version at level 0.

Gaps: streams groups (KIP-1071) are not offered yet.
"""

from __future__ import annotations

from pykafkad.handlers.refusals import every_group
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    """One refusal for each group."""
    return messages.StreamsGroupDescribeResponse(
        groups=every_group(messages.StreamsGroupDescribeResponse.DescribedGroup, request.group_ids)
    )
