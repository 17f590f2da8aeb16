"""EndTxn, versions 0 to 5.

Ends a producer's transaction: the answer leaves when the decision is committed in `__transaction_state`. The markers
are written into the transaction's partitions after that; until they all are, a further request of the producer is
CONCURRENT_TRANSACTIONS. From version 5 on each end raises the producer's epoch, the answer says with which id and epoch
it goes on, and a transaction without partitions can be aborted (KIP-890). A producer that has been replaced is
PRODUCER_FENCED, or INVALID_PRODUCER_EPOCH before version 2.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.transaction_events import EndTxn
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

(_WRITE_TRANSACTIONAL_ID,) = RULES["EndTxn"]
_EPOCH_BUMP_SINCE = 5
_KNOWS_FENCED_SINCE = 2


def handle(ctx: Context, request: messages.EndTxnRequest) -> object:
    transactional_id = request.transactional_id
    if not may(ctx, _WRITE_TRANSACTIONAL_ID, transactional_id):
        return messages.EndTxnResponse(error_code=_WRITE_TRANSACTIONAL_ID.error)
    error_code = ctx.transactions.error_for(transactional_id) if transactional_id else errors.INVALID_REQUEST
    if error_code:
        return messages.EndTxnResponse(error_code=error_code)
    client_version = 2 if ctx.version >= _EPOCH_BUMP_SINCE else 0
    event = EndTxn(ctx.token, request, client_version, ctx.version >= _KNOWS_FENCED_SINCE)
    return ctx.transactions.submit(transactional_id, event)
