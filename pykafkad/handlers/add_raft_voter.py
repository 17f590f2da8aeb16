"""AddRaftVoter, versions 0 and 1 (KIP-853, KIP-1186).

A quorum of several voters has its replica answer (`raft/voter_changes.py`). An only voter with its broker in the same
process refuses always. The checks are in Kafka's order. Another cluster's id is
INCONSISTENT_CLUSTER_ID. A voter without an id, a directory or an endpoint of the controllers' listener is
INVALID_REQUEST. With kraft.version 0 the settings of the nodes name the voters, and the request is UNSUPPORTED_VERSION.
The id of a present voter is DUPLICATE_VOTER. Any other voter is REQUEST_TIMED_OUT, as in Kafka for a voter that it
cannot reach.

Gaps: an only voter in the process of its broker never reaches a further one.
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

_DEFAULT_LISTENER = "CONTROLLER"


def handle(ctx: ControllerContext, request: messages.AddRaftVoterRequest) -> object:
    """The refusal, with its reason."""
    if not may(ctx, RULES["AddRaftVoter"][0]):
        code = RULES["AddRaftVoter"][0].error
        return messages.AddRaftVoterResponse(error_code=code, error_message=errors.message(code))
    answered = ctx.controller.ask_quorum(ctx.token, request)
    if answered is not None:
        return answered
    code, text = _refusal(ctx, request)
    return messages.AddRaftVoterResponse(error_code=code, error_message=text or errors.message(code))


def _refusal(ctx: ControllerContext, request: messages.AddRaftVoterRequest) -> tuple[int, str | None]:
    refusal = voter_refusal(ctx, request, "Add")
    if refusal is not None:
        return refusal
    listener = next(iter(ctx.settings.controller_listener_names or ()), _DEFAULT_LISTENER)
    if listener.upper() not in {each.name.upper() for each in request.listeners}:
        return (
            errors.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint for the default listener {listener}",
        )
    if ctx.metadata.kraft_version < 1:
        return errors.UNSUPPORTED_VERSION, "Cluster doesn't support adding voter because the kraft.version feature is 0"
    if request.voter_id in {voter.id for voter in ctx.controller.quorum.voters}:
        text = (
            f"The voter {request.voter_id} with directory {to_text(request.voter_directory_id)} is already part of "
            "the set of voters."
        )
        return errors.DUPLICATE_VOTER, text
    return errors.REQUEST_TIMED_OUT, f"New voter {request.voter_id} is not ready to receive requests"
