"""RemoveRaftVoter, version 0 (KIP-853).

Refused, for the one voter of this quorum stays. In Kafka's order: another cluster's id is INCONSISTENT_CLUSTER_ID; a
voter without an id or a directory is INVALID_REQUEST; a quorum with kraft.version 0 has its voters in the settings of
its nodes, UNSUPPORTED_VERSION; whoever does not vote, and the last who does, is VOTER_NOT_FOUND.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.operations import voter_refusal
from pykafkad.uuids import to_text
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.RemoveRaftVoterRequest) -> object:
    """Says why not."""
    code, text = _refusal(ctx, request)
    return messages.RemoveRaftVoterResponse(error_code=code, error_message=text or errors.message(code))


def _refusal(ctx: ControllerContext, request: messages.RemoveRaftVoterRequest) -> tuple[int, str | None]:
    refusal = voter_refusal(ctx, request, "Remove")
    if refusal is not None:
        return refusal
    if ctx.metadata.kraft_version < 1:
        return (
            errors.UNSUPPORTED_VERSION,
            "Cluster doesn't support removing voter because the kraft.version feature is 0",
        )
    voter = f"voter {request.voter_id} with directory {to_text(request.voter_directory_id)}"
    return errors.VOTER_NOT_FOUND, f"Cannot remove {voter} from the set of voters"
