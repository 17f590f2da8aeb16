"""ListPartitionReassignments, version 0 (KIP-455).

The partitions whose replicas are being changed, of those asked for or, with null, of all topics. Others, unknown ones
too, are left out. On a cluster of one broker a reassignment is over as soon as it is asked for.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.metadata import reassignments
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_Response = messages.ListPartitionReassignmentsResponse


def handle(ctx: Context, request: object) -> object:
    """Reads the image."""
    if not ctx.allowed("Describe", "Cluster", "kafka-cluster"):
        code = errors.CLUSTER_AUTHORIZATION_FAILED
        return _Response(error_code=code, error_message=errors.message(code))
    return reassignments.ongoing(ctx.metadata, request.topics)
