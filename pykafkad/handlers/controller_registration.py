"""ControllerRegistration, version 0, on a controller's listener.

A controller that starts tells the active one its listeners and the levels of features that it supports (KIP-919). Below
metadata.version 15 (3.7-IV0), which has no record for it, it is UNSUPPORTED_VERSION.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.metadata.events import RegisterController
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.ControllerRegistrationRequest) -> object:
    """Submits the registration to the controller."""
    if not may(ctx, CLUSTER_ACTION):
        code = CLUSTER_ACTION.error
        return messages.ControllerRegistrationResponse(error_code=code, error_message=errors.message(code))
    return ctx.controller.submit(RegisterController(ctx.token, request))
