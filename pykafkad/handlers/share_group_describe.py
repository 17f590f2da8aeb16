"""ShareGroupDescribe, version 1.

Every group is UNSUPPORTED_VERSION, as Kafka answers with share.version at level 0.

Gaps: share groups (KIP-932) are not offered yet.
"""

from __future__ import annotations

from pykafkad.handlers.refusals import every_group
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    """One refusal for each group."""
    return messages.ShareGroupDescribeResponse(
        groups=every_group(messages.ShareGroupDescribeResponse.DescribedGroup, request.group_ids)
    )
