"""AddOffsetsToTxn, versions 0 to 4.

Adds a group's partition of `__consumer_offsets` to the producer's transaction, before TxnOffsetCommit commits offsets
in it. Producers of transaction version 2 do not ask: TxnOffsetCommit adds the partition (KIP-890). A producer that has
been replaced is PRODUCER_FENCED, or INVALID_PRODUCER_EPOCH before version 2.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.partitioning import partition_for
from pykafkad.coordinator.shard import TOPIC
from pykafkad.coordinator.transaction_events import AddPartitions
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_WRITE_TRANSACTIONAL_ID, _READ_GROUP = RULES["AddOffsetsToTxn"]
_KNOWS_FENCED_SINCE = 2


def handle(ctx: Context, request: messages.AddOffsetsToTxnRequest) -> object:
    transactional_id = request.transactional_id
    if not may(ctx, _WRITE_TRANSACTIONAL_ID, transactional_id):
        return _answer(_WRITE_TRANSACTIONAL_ID.error)
    if not may(ctx, _READ_GROUP, request.group_id):
        return _answer(_READ_GROUP.error)
    error_code = ctx.transactions.error_for(transactional_id) if transactional_id else errors.INVALID_REQUEST
    if error_code:
        return _answer(error_code)
    place = TOPIC, partition_for(request.group_id, _partition_count(ctx))
    knows_fenced = ctx.version >= _KNOWS_FENCED_SINCE

    def combine(codes: list[int]) -> object:
        is_old = codes[0] == errors.PRODUCER_FENCED and not knows_fenced
        return _answer(errors.INVALID_PRODUCER_EPOCH if is_old else codes[0])

    event = AddPartitions(None, transactional_id, request.producer_id, request.producer_epoch, [place], 0)
    return ctx.transactions.submit_many([(transactional_id, event)], combine, ctx.token)


def _partition_count(ctx: Context) -> int:
    """The partitions of the offsets' topic, or how many it will have."""
    topic = ctx.metadata.topics.get(TOPIC)
    return ctx.settings.offsets_topic_num_partitions if topic is None else len(topic.partitions)


def _answer(error_code: int) -> messages.AddOffsetsToTxnResponse:
    return messages.AddOffsetsToTxnResponse(error_code=error_code)
