"""ListPartitionReassignments, version 0 (KIP-455).

The partitions of the request, or with null of all topics, whose replicas are being changed. Other partitions, also
unknown ones, are left out. On a cluster of one broker a reassignment ends as soon as it is requested.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata import reassignments
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

(_DESCRIBE_CLUSTER,) = RULES["ListPartitionReassignments"]
_Response = messages.ListPartitionReassignmentsResponse


def handle(ctx: Context, request: messages.ListPartitionReassignmentsRequest) -> object:
    """Reads the image."""
    if not may(ctx, _DESCRIBE_CLUSTER):
        code = _DESCRIBE_CLUSTER.error
        return _Response(error_code=code, error_message=errors.message(code))
    return reassignments.ongoing(ctx.metadata, request.topics)
