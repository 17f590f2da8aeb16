"""DescribeTopicPartitions, version 0 (KIP-966).

Topics in the order of their names, page by page. A page holds at most `response_partition_limit` partitions, and never
more than `max.request.partition.size.limit`. `next_cursor` is the beginning of the next page. A request without topics
means all. A named topic that does not exist has its own error. A cursor outside the topics of the request, or with a
negative partition, is INVALID_REQUEST for every topic, because the response has no error for the whole.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.metadata import NO_LEADER, ZERO_ID, offline_replicas
from pykafkad.handlers.operations import authorized_operations
from pykafkad.metadata.topics import INTERNAL_TOPICS, name_problem
from pykafkad.wire import messages

# Limit of cached pages per topic. A cache that is full is emptied.
MAX_PAGES = 16

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context
    from pykafkad.metadata.topics import PartitionState, Topic


_DESCRIBE_TOPIC, _ = RULES["DescribeTopicPartitions"]
_Row = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


def handle(ctx: Context, request: messages.DescribeTopicPartitionsRequest) -> Generator[None, None, object]:
    """One page of topics."""
    image = ctx.metadata
    everything = not request.topics
    cursor = request.cursor
    first = cursor.topic_name if cursor is not None else ""
    names = image.topics if everything else [topic.name for topic in request.topics]
    asked = dict.fromkeys(name for name in names if name >= first)
    yield
    if cursor is not None and (cursor.partition_index < 0 or (not everything and first not in asked)):
        rows = [_error(errors.INVALID_REQUEST, topic.name) for topic in request.topics]
        return messages.DescribeTopicPartitionsResponse(topics=rows)
    allowed = []
    for name in asked:
        if may(ctx, _DESCRIBE_TOPIC, name):
            allowed.append(name)
            yield
    allowed.sort()
    response = messages.DescribeTopicPartitionsResponse()
    limit = max(min(ctx.settings.max_request_partition_size_limit, request.response_partition_limit), 1)
    for name in allowed:
        yield
        if limit == 0:
            response.next_cursor = messages.DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            if not everything:
                invalid = name_problem(name) is not None
                code = errors.INVALID_TOPIC_EXCEPTION if invalid else errors.UNKNOWN_TOPIC_OR_PARTITION
                row = _error(code, name)
                row.is_internal = name in INTERNAL_TOPICS
                row.topic_authorized_operations = authorized_operations(ctx, "Topic", name)
                response.topics.append(row)
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        end = min(len(topic.partitions), start + limit)
        response.topics.append(_topic(ctx, topic, start, end))
        if end < len(topic.partitions):
            response.next_cursor = messages.DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=end)
            break
        limit -= max(end - start, 0)
    if not everything:
        response.topics += [_error(_DESCRIBE_TOPIC.error, name) for name in sorted(asked.keys() - allowed)]
    return response


def _topic(ctx: Context, topic: Topic, start: int, end: int) -> _Row:
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=_page(ctx, topic, start, end),
        topic_authorized_operations=authorized_operations(ctx, "Topic", topic.name),
    )


def _page(ctx: Context, topic: Topic, start: int, end: int) -> list[_Partition]:
    """The partitions from `start` to before `end`. They are cached at the topic until one of them or any broker
    changes."""
    key = (ctx.metadata.brokers_generation, ctx.listener)
    if topic.pages is None or topic.pages[0] != key:
        topic.pages = (key, {})
    pages = topic.pages[1]
    if (start, end) not in pages:
        if len(pages) >= MAX_PAGES:
            pages.clear()
        pages[start, end] = messages.CachedArray(_partition(ctx, state) for state in topic.partitions[start:end])
    found: list[_Partition] = pages[start, end]
    return found


def _partition(ctx: Context, state: PartitionState) -> _Partition:
    brokers = ctx.metadata.brokers
    leader = brokers.get(state.leader)
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        partition_index=state.index,
        leader_id=state.leader if leader is not None and ctx.listener in leader.endpoints else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=offline_replicas(state, brokers, ctx.listener),
    )


def _error(code: int, name: str) -> _Row:
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, topic_id=ZERO_ID
    )
