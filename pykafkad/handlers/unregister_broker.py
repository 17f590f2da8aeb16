"""UnregisterBroker, version 0.

The cluster forgets a broker; it leaves ISRs and ELRs, and others lead where they can. A live one is not spared, as in
Kafka: its partitions have no leader until it starts again. An id that nobody has is BROKER_ID_NOT_REGISTERED.

Gaps: the only broker, told to forget itself, is shown to nobody and written by no client until it starts again, but
goes on coordinating the groups of who knows it."""

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
    """Hands the id to the controller."""
    if not may(ctx, _ALTER_CLUSTER):
        code = _ALTER_CLUSTER.error
        return messages.UnregisterBrokerResponse(error_code=code, error_message=errors.message(code))
    return ctx.controller.submit(UnregisterBroker(ctx.token, request.broker_id))
