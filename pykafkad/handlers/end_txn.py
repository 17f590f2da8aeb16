"""EndTxn, versions 0 to 5.

InitProducerId gives out no transactional id, so whatever is named is one that nobody has: INVALID_PRODUCER_ID_MAPPING,
Kafka's answer to that. An empty id is INVALID_REQUEST.

Gaps: transactions are not offered yet.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.transactional_ids import error_of_nobodys
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_WRITE_TRANSACTIONAL_ID,) = RULES["EndTxn"]


def handle(ctx: Context, request: object) -> object:
    """The error of an id that nobody has."""
    if not may(ctx, _WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return messages.EndTxnResponse(error_code=_WRITE_TRANSACTIONAL_ID.error)
    return messages.EndTxnResponse(error_code=error_of_nobodys(request.transactional_id))
