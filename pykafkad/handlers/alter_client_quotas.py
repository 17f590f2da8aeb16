"""AlterClientQuotas, versions 0 and 1.

Sets or removes quotas. Each entity has its own result and is changed as a whole or not at all. `validate_only` checks
and changes nothing. These are INVALID_REQUEST: an impossible entity, an entity named twice, a key that the entity
cannot have, and a value that is not above zero, has a fraction or is too large for its key.

The quotas count from the next request of a client on (`server/quotas.py`).

Gaps: an address must be an IP address or `localhost`; other host names are not looked up.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata import client_quotas
from pykafkad.metadata.events import AlterClientQuotas
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_ALTER_CONFIGS,) = RULES["AlterClientQuotas"]


def handle(ctx: Context, request: messages.AlterClientQuotasRequest) -> object:
    """Submits the changes to the controller."""
    if not may(ctx, _ALTER_CONFIGS):
        rows = client_quotas.refuse_all(request.entries, _ALTER_CONFIGS.error)
        return messages.AlterClientQuotasResponse(entries=rows)
    return ctx.controller.submit(AlterClientQuotas(ctx.token, request.entries, validate_only=request.validate_only))
