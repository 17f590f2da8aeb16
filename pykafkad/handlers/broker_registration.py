"""BrokerRegistration, versions 0 to 4, on a controller's listener.

A broker that starts registers its listeners, its directories and the levels of features that it supports, and is told
its epoch. It stays fenced until a heartbeat unfences it (`broker_heartbeat.py`). The same incarnation may register
again and keeps its epoch. Another cluster's id is INCONSISTENT_CLUSTER_ID. Another incarnation is
DUPLICATE_BROKER_REGISTRATION as long as the known one has a session. A broker that does not support a level of the
cluster's features is UNSUPPORTED_VERSION, and a log line of the controller names the feature. Directories that are
missing, reserved, given twice or another broker's are INVALID_REGISTRATION.

Version 1 lets a broker of ZooKeeper's time name itself, which is BROKER_ID_NOT_REGISTERED. Version 2 has the
directories (KIP-858), 3 the epoch that a clean stop left (KIP-966): without it, or with another, the broker may have
lost records and leaves every ISR and ELR.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.metadata.events import BrokerRegistration
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.BrokerRegistrationRequest) -> object:
    """Submits the registration to the controller."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.BrokerRegistrationResponse(error_code=CLUSTER_ACTION.error)
    event = BrokerRegistration(ctx.token, request, ctx.version, ctx.now)
    event.address, event.is_own = ctx.client_host.removeprefix("/"), ctx.is_local
    return ctx.controller.submit(event)
