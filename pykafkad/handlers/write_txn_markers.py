"""WriteTxnMarkers, versions 1 and 2.

A transaction coordinator writes the end of transactions into the partitions with this request. An administrator ends a
hanging transaction with it (KIP-664). Each producer has one row, with an error for every partition: a partition that is
not here is UNKNOWN_TOPIC_OR_PARTITION, a marker of an epoch that is over INVALID_PRODUCER_EPOCH, one of an older
coordinator TRANSACTION_COORDINATOR_FENCED. From version 2 a marker names the transaction version, on which the check of
the epoch depends (KIP-890).

A marker without a producer id or epoch (-1) is UNKNOWN_SERVER_ERROR for the whole request, if it names a partition that
is here. One that names a partition twice ends its transaction once; Kafka never answers.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.log.transactions import TransactionMarker
from pykafkad.wire import messages
from pykafkad.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

    Place = tuple[str, int]


(_CLUSTER_ACTION,) = RULES["WriteTxnMarkers"]
_Answer = messages.WriteTxnMarkersResponse


def handle(ctx: Context, request: messages.WriteTxnMarkersRequest) -> Generator[None, None, object]:
    """The answer comes when every marker that was written is committed."""
    refused = refusal(ctx, _CLUSTER_ACTION)
    producers: dict[int, dict[Place, int]] = {}
    left = [_marker(marker) for marker in request.markers]
    left = [marker for marker in left if marker.partitions]
    if not refused and any(_is_nobodys(ctx, marker) for marker in left):
        refused = errors.UNKNOWN_SERVER_ERROR
    if refused:
        for marker in left:
            producers.setdefault(marker.producer_id, {}).update(dict.fromkeys(marker.partitions, refused))
        return _response(producers)
    waiting = 1

    def write(marker: TransactionMarker) -> None:
        def written(outcome: dict[Place, int]) -> None:
            nonlocal waiting
            producers.setdefault(marker.producer_id, {}).update(outcome)
            waiting -= 1
            if not waiting:
                ctx.resume(lambda: _response(producers))

        ctx.transaction_markers.write(marker, written)

    for marker in left:
        waiting += 1
        write(marker)
        yield
    waiting -= 1
    return DEFERRED if waiting else _response(producers)


def _marker(marker: messages.WriteTxnMarkersRequest.WritableTxnMarker) -> TransactionMarker:
    return TransactionMarker(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes],
        marker.transaction_version,
    )


def _is_nobodys(ctx: Context, marker: TransactionMarker) -> bool:
    """Whether the marker names no producer, and could be written."""
    return (marker.producer_id == NO_PRODUCER_ID or marker.producer_epoch == NO_PRODUCER_EPOCH) and any(
        ctx.partitions.get(*place) is not None for place in marker.partitions
    )


def _response(producers: dict[int, dict[Place, int]]) -> messages.WriteTxnMarkersResponse:
    rows = []
    for producer_id, outcome in producers.items():
        topics: dict[str, messages.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = {}
        for (name, index), code in outcome.items():
            topic = topics.setdefault(name, _Answer.WritableTxnMarkerTopicResult(name=name))
            topic.partitions.append(_Answer.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
        rows.append(_Answer.WritableTxnMarkerResult(producer_id=producer_id, topics=list(topics.values())))
    return _Answer(markers=rows)
