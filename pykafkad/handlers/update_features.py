"""UpdateFeatures, versions 0 to 2 (KIP-584, KIP-778, KIP-1022).

All features change, or none: the first impossible change is INVALID_UPDATE_VERSION for the whole request, and the
message names it. A lower level needs the upgrade type "safe downgrade" or "unsafe downgrade", which version 0 does not
have. `validate_only` (from version 1) checks and changes nothing. The metadata.version of an older cluster can go up;
it can go down only to a level with the same records. Up to version 1 a success has a row for each feature. The answer
leaves when the change is committed. In a quorum with `controller.quorum.voters`, kraft.version 1 moves the voters into
the log, once each of them has told the active controller of its directory (KIP-853).

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import UpdateFeatures
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext

(_ALTER_CLUSTER,) = RULES["UpdateFeatures"]


def handle(ctx: ControllerContext, request: messages.UpdateFeaturesRequest) -> object:
    """Submits the features to the controller."""
    response = messages.UpdateFeaturesResponse
    if not may(ctx, _ALTER_CLUSTER):
        code = _ALTER_CLUSTER.error
        return response(error_code=code, error_message=errors.message(code))

    updates = {each.feature: (each.max_version_level, each.upgrade_type) for each in request.feature_updates}
    event = UpdateFeatures(
        ctx.token,
        updates,
        names=[each.feature for each in request.feature_updates],
        voters=ctx.controller.quorum.voters,
        validate_only=request.validate_only,
    )
    return ctx.controller.submit(event)
