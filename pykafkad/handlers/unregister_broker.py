"""UnregisterBroker, version 0.

Removes a broker's registration. The broker leaves all ISRs and ELRs, and its partitions get other leaders where
possible. A live broker can be unregistered too, as in Kafka; its partitions have no leader until it starts again. An
unknown id is BROKER_ID_NOT_REGISTERED.

Gaps: if the only broker is unregistered, no client sees it or writes to it until it starts again, but it goes on
coordinating the groups of clients that know its address.
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


(_ALTER_CLUSTER,) = RULES["UnregisterBroker"]


def handle(ctx: Context, request: messages.UnregisterBrokerRequest) -> object:
    """Submits the id to the controller."""
    if not may(ctx, _ALTER_CLUSTER):
        code = _ALTER_CLUSTER.error
        return messages.UnregisterBrokerResponse(error_code=code, error_message=errors.message(code))
    return ctx.controller.submit(UnregisterBroker(ctx.token, request.broker_id))
