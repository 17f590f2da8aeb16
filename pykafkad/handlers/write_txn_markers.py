"""WriteTxnMarkers, versions 1 and 2.

A transaction coordinator writes the end of a transaction into the partitions with this request; clients do not send it.
Every partition that is here is UNSUPPORTED_VERSION. Kafka cannot switch off transactions, so it has no code for this
case; this one says nothing false about the request. Other partitions are UNKNOWN_TOPIC_OR_PARTITION.

Gaps: transactions are not offered yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_CLUSTER_ACTION,) = RULES["WriteTxnMarkers"]
_Answer = messages.WriteTxnMarkersResponse


def handle(ctx: Context, request: messages.WriteTxnMarkersRequest) -> object:
    """An error for every partition; each producer has one row."""
    refused = refusal(ctx, _CLUSTER_ACTION)
    producers: dict[int, dict[str, dict[int, int]]] = {}
    for marker in request.markers:
        topics = producers.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            if not topic.partition_indexes:
                continue
            rows = topics.setdefault(topic.name, {})
            for index in topic.partition_indexes:
                rows[index] = refused or _error(ctx, topic.name, index)
    return _Answer(
        markers=[
            _Answer.WritableTxnMarkerResult(
                producer_id=producer_id, topics=[_topic(name, rows) for name, rows in topics.items()]
            )
            for producer_id, topics in producers.items()
            if topics
        ]
    )


def _error(ctx: Context, topic: str, index: int) -> int:
    return (
        errors.UNSUPPORTED_VERSION
        if ctx.metadata.partition(topic, index) is not None
        else errors.UNKNOWN_TOPIC_OR_PARTITION
    )


def _topic(name: str, rows: dict[int, int]) -> messages.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult:
    partitions = [
        _Answer.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code) for index, code in rows.items()
    ]
    return _Answer.WritableTxnMarkerTopicResult(name=name, partitions=partitions)
