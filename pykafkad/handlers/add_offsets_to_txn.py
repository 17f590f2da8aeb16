"""AddOffsetsToTxn, versions 0 to 4.

InitProducerId gives out no transactional id, so whatever is named is one that nobody has: INVALID_PRODUCER_ID_MAPPING,
Kafka's answer to that. An empty id is INVALID_REQUEST.

Gaps: transactions are not offered yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.transactional_ids import error_of_nobodys
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    """The error of an id that nobody has."""
    if not ctx.allowed("Write", "TransactionalId", request.transactional_id):
        return messages.AddOffsetsToTxnResponse(error_code=errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.allowed("Read", "Group", request.group_id):
        return messages.AddOffsetsToTxnResponse(error_code=errors.GROUP_AUTHORIZATION_FAILED)
    return messages.AddOffsetsToTxnResponse(error_code=error_of_nobodys(request.transactional_id))
