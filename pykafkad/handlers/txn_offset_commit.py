"""TxnOffsetCommit, versions 0 to 5.

InitProducerId gives out no transactional ids, so every partition is INVALID_PRODUCER_ID_MAPPING, as in Kafka for an
unknown id. Topics and partitions that do not exist, or that the caller may not read, have their own errors.

Gaps: transactions are not offered yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.transactional_ids import error_of_unknown_id
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


_WRITE_TRANSACTIONAL_ID, _READ_GROUP, _READ_TOPIC = RULES["TxnOffsetCommit"]
_Answer = messages.TxnOffsetCommitResponse


def handle(ctx: Context, request: messages.TxnOffsetCommitRequest) -> Generator[None, None, object]:
    """An error for every partition: absent ones first, each topic once, then the others in the order of the request."""
    if not may(ctx, _WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return _Answer(
            topics=[_row(topic.name, topic.partitions, _WRITE_TRANSACTIONAL_ID.error) for topic in request.topics]
        )
    if not may(ctx, _READ_GROUP, request.group_id):
        return _Answer(topics=[_row(topic.name, topic.partitions, _READ_GROUP.error) for topic in request.topics])
    refused: dict[str, messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = {}
    rest = []
    for topic in request.topics:
        code = refusal(ctx, _READ_TOPIC, topic.name)
        here: list[messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = []
        missing: list[messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = []
        for each in topic.partitions:
            yield
            (
                here if not code and ctx.metadata.partition(topic.name, each.partition_index) is not None else missing
            ).append(each)
        if missing:
            row = refused.setdefault(topic.name, _Answer.TxnOffsetCommitResponseTopic(name=topic.name))
            row.partitions += _row(topic.name, missing, code or errors.UNKNOWN_TOPIC_OR_PARTITION).partitions
        if here:
            rest.append(_row(topic.name, here, _error(request)))
    for row in rest:
        if row.name in refused:
            refused[row.name].partitions += row.partitions
    return _Answer(topics=[*refused.values(), *(row for row in rest if row.name not in refused)])


def _error(request: messages.TxnOffsetCommitRequest) -> int:
    return errors.INVALID_GROUP_ID if not request.group_id else error_of_unknown_id(request.transactional_id)


def _row(
    name: str, partitions: list[messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition], error_code: int
) -> messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic:
    rows = [
        _Answer.TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error_code)
        for each in partitions
    ]
    return _Answer.TxnOffsetCommitResponseTopic(name=name, partitions=rows)
