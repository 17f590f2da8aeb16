"""AlterPartitionReassignments, versions 0 and 1 (KIP-455).

Gives partitions other replicas. Each partition has its own error. Null replicas cancel a reassignment; without one
under way they are NO_REASSIGNMENT_IN_PROGRESS. Unknown, repeated or no brokers are INVALID_REPLICA_ASSIGNMENT. Version
1 can forbid a change of the number of replicas (INVALID_REPLICATION_FACTOR, KIP-860). The present replicas are a
success that changes nothing. The answer leaves when the change is committed. With a `timeout_ms` of zero or less
nothing changes and every partition is REQUEST_TIMED_OUT.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import AlterPartitionReassignments
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

(_ALTER_CLUSTER,) = RULES["AlterPartitionReassignments"]
_Response = messages.AlterPartitionReassignmentsResponse


def handle(ctx: Context, request: messages.AlterPartitionReassignmentsRequest) -> object:
    """Submits the request to the controller."""
    if not may(ctx, _ALTER_CLUSTER):
        return _refused(request, _ALTER_CLUSTER.error, errors.message(_ALTER_CLUSTER.error))
    if not request.topics:
        return _Response(error_message="")
    if request.timeout_ms <= 0:
        return _refused(request, errors.REQUEST_TIMED_OUT, None)
    return ctx.controller.submit(AlterPartitionReassignments(ctx.token, request))


def _refused(request: messages.AlterPartitionReassignmentsRequest, code: int, text: str | None) -> object:
    return _Response(
        error_code=code,
        error_message=text,
        responses=[
            _Response.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _Response.ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=code, error_message=text
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
