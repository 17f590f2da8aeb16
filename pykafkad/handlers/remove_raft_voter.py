"""RemoveRaftVoter, version 0 (KIP-853).

A quorum of several voters has its replica answer (`raft/voter_changes.py`). An only voter with its broker in the same
process stays, and always refuses. The checks are in Kafka's order. Another cluster's id is
INCONSISTENT_CLUSTER_ID. A voter without an id or a directory is INVALID_REQUEST. With kraft.version 0 the settings of
the nodes name the voters, and the request is UNSUPPORTED_VERSION. An id that is no voter, and the last voter, are
VOTER_NOT_FOUND.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.operations import voter_refusal
from pykafkad.uuids import to_text
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.RemoveRaftVoterRequest) -> object:
    """The refusal, with its reason."""
    if not may(ctx, RULES["RemoveRaftVoter"][0]):
        code = RULES["RemoveRaftVoter"][0].error
        return messages.RemoveRaftVoterResponse(error_code=code, error_message=errors.message(code))
    answered = ctx.controller.ask_quorum(ctx.token, request)
    if answered is not None:
        return answered
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
