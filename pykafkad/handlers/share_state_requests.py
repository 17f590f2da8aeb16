"""What the five APIs of the share coordinator have in common (KIP-932). Brokers and tools send them.

Each request names partitions of topics. Every partition goes to the shard of its share partition as an event of its
own, and the answer has a row for each. A request without a group id or without partitions gets an empty answer. Whether
share groups are switched on plays no part, as in Kafka."""

from __future__ import annotations

from pykafkad import errors, uuids
from pykafkad.coordinator.share_state import coordinator_key
from pykafkad.handlers import unexpected
from pykafkad.handlers.authorization import refusal
from pykafkad.handlers.context import DEFERRED
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.handlers.context import Context


def serve(
    ctx: Context, request: Any, event_class: Any, result_class: Any, action: str, *, allows_empty_topics: bool = False
) -> Generator[None, None, object]:
    """Serve a request whose partitions are events of `event_class`, and whose answer has a `result_class` for each
    topic. `action` says in messages what could not be done.
    `allows_empty_topics`: a topic without partitions does not make the whole answer empty."""
    row = ctx.row
    if error := refusal(ctx, row.authorization[0]):
        return unexpected.answer(row, ctx.version, request, error, with_text=True)
    response_class: Any = messages.response_class(row.key)
    is_empty = not all(topic.partitions for topic in request.topics) and not allows_empty_topics
    if not request.group_id or not request.topics or is_empty:
        return response_class()
    share = ctx.share_groups
    places: list[bytes] = []
    composite = share.states.composite_reply(
        lambda rows: _answer(response_class, result_class, places, rows), ctx.token
    )
    for topic in request.topics:
        topic_id = bytes(topic.topic_id)
        for asked in topic.partitions:
            places.append(topic_id)
            key = request.group_id, topic_id, asked.partition
            part: Any = composite.part()
            name = coordinator_key(request.group_id, uuids.to_text(topic_id), asked.partition)
            error = share.states.shard_for(name)[1]
            if error:
                text = f"Unable to {action}: {errors.message(error)}"
                part.deliver(
                    response_class.PartitionResult(partition=asked.partition, error_code=error, error_message=text)
                )
            else:
                share.states.submit(name, event_class(key, asked, share.is_known(key), part))
            yield
    composite.close()
    return DEFERRED


def _answer(response_class: Any, result_class: Any, places: list[bytes], rows: list[Any]) -> object:
    """The rows by topic, in the order in which the topics were named."""
    topics: dict[bytes, list[Any]] = {}
    for topic_id, row in zip(places, rows, strict=True):
        topics.setdefault(topic_id, []).append(row)
    results = [result_class(topic_id=topic_id, partitions=each) for topic_id, each in topics.items()]
    return response_class(results=results)
