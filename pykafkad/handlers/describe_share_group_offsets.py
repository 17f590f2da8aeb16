"""DescribeShareGroupOffsets, versions 0 and 1.

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
    return messages.DescribeShareGroupOffsetsResponse(
        groups=every_group(
            messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup,
            [group.group_id for group in request.groups],
        )
    )
