"""UnregisterController, version 0 (KIP-1312), since Kafka 4.4.

Removes a controller's registration: that of a controller that is gone for good. The active controller cannot remove
its own (INVALID_REQUEST). An id that is not registered is CONTROLLER_ID_NOT_REGISTERED. It needs metadata.version 33.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import UnregisterBroker
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_ALTER_CLUSTER,) = RULES["UnregisterController"]


def handle(ctx: Context, request: messages.UnregisterControllerRequest) -> object:
    """Submits the id to the controller."""
    if not may(ctx, _ALTER_CLUSTER):
        code = _ALTER_CLUSTER.error
        return messages.UnregisterControllerResponse(error_code=code, error_message=errors.message(code))
    return ctx.controller.submit(UnregisterBroker(ctx.token, request.controller_id, is_controller=True))
