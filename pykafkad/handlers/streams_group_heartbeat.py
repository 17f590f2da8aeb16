"""StreamsGroupHeartbeat, version 0 (KIP-1071), with Kafka 4.4 to 1.

A member of a streams group joins (epoch 0) with the topology of its application, shows that it is alive and says which
tasks it has, or leaves (epoch -1). The answer has its epoch and, when they have changed, its tasks and where the tasks
of others are; `status` says what keeps the application from running. Internal topics that are missing are created, if
the caller may, and the status says why if they cannot be.

While `streams.version` is 0, or `group.coordinator.rebalance.protocols` leaves the protocol out, every request is
UNSUPPORTED_VERSION. Like Kafka 4.3.1, this broker refuses static members, warm-up tasks, the offsets of tasks, and
topologies with patterns of source topics.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import streams_request
from pykafkad.coordinator.group_types import STREAMS
from pykafkad.coordinator.streams_events import StreamsGroupHeartbeat
from pykafkad.errors import KafkaError
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.group_protocols import switched_off
from pykafkad.metadata.topics import INTERNAL_TOPICS, name_problem
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.handlers.context import Context

    Request = messages.StreamsGroupHeartbeatRequest

_READ_GROUP, _DESCRIBE_TOPIC, _ = RULES["StreamsGroupHeartbeat"]


def handle(ctx: Context, request: Request) -> Generator[None, None, object]:
    refused = switched_off(ctx, request, STREAMS)
    if refused is not None:
        return refused
    if not may(ctx, _READ_GROUP, request.group_id):
        return messages.StreamsGroupHeartbeatResponse(error_code=_READ_GROUP.error)
    try:
        yield from _check_topics(ctx, request)
        streams_request.check(request)
    except KafkaError as error:
        return messages.StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.text)
    error_code = ctx.groups.shard_for(request.group_id)[1]
    if error_code:
        return messages.StreamsGroupHeartbeatResponse(error_code=error_code)
    event = StreamsGroupHeartbeat(ctx.token, request, ctx.client_id, ctx.client_host)
    return ctx.groups.submit(request.group_id, event)


def topic_names(subtopologies: list[Any]) -> Generator[None, None, dict[str, None]]:
    """The names of all topics of a topology, each once, in their order."""
    names: dict[str, None] = {}
    for each in subtopologies:
        yield
        names.update(dict.fromkeys(each.source_topics))
        names.update(dict.fromkeys(each.repartition_sink_topics))
        names.update(dict.fromkeys(topic.name for topic in each.repartition_source_topics))
        names.update(dict.fromkeys(topic.name for topic in each.state_changelog_topics))
    return names


def _check_topics(ctx: Context, request: Request) -> Generator[None, None, None]:
    """Raises `KafkaError` for topics that a topology may not have, or that the caller may not see."""
    if request.topology is None:
        return
    names = yield from topic_names(request.topology.subtopologies)
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        raise KafkaError(errors.STREAMS_INVALID_TOPOLOGY, text)
    invalid = [name for name in names if name_problem(name) is not None]
    if invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
        raise KafkaError(errors.STREAMS_INVALID_TOPOLOGY, text)
    for name in names:
        yield
        if not may(ctx, _DESCRIBE_TOPIC, name):
            raise KafkaError(_DESCRIBE_TOPIC.error, None)
