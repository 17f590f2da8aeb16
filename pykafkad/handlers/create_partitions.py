"""CreatePartitions, versions 0 to 3.

Adds partitions to topics. Each topic has its own result. A count that is not above the present one is
INVALID_PARTITIONS, a wrong manual assignment INVALID_REPLICA_ASSIGNMENT, a topic given twice INVALID_REQUEST.
`validate_only` checks and changes nothing. The answer leaves when the partitions are committed and have their logs.
With a `timeout_ms` of zero or less nothing changes and every topic is REQUEST_TIMED_OUT. Version 3 has a quota error.

More than 10 000 new partitions are POLICY_VIOLATION, where Kafka answers UNKNOWN_SERVER_ERROR.

A topic that comes when the client's controller_mutation_rate is used up is THROTTLING_QUOTA_EXCEEDED (KIP-599); before
version 3 it grows, and the client is throttled.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import CreatePartitions
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


(_ALTER_TOPIC,) = RULES["CreatePartitions"]


def handle(ctx: Context, request: messages.CreatePartitionsRequest) -> Generator[None, None, object]:
    """Submits the topics that the caller may alter to the controller."""
    counts: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] = counts.get(topic.name, 0) + 1
        yield
    refused = [
        _refusal(name, errors.INVALID_REQUEST, "Duplicate topic name.") for name, count in counts.items() if count > 1
    ]
    topics = []
    for topic in request.topics:
        yield
        if counts[topic.name] > 1:
            continue
        if may(ctx, _ALTER_TOPIC, topic.name):
            topics.append(topic)
        else:
            refused.append(_refusal(topic.name, _ALTER_TOPIC.error, None))
    if topics and request.timeout_ms <= 0:
        rows = [_refusal(topic.name, errors.REQUEST_TIMED_OUT, None) for topic in request.topics]
        return messages.CreatePartitionsResponse(results=rows)
    event = CreatePartitions(
        ctx.token, topics, validate_only=request.validate_only, refused=refused, mutations=ctx.mutations
    )
    return ctx.controller.submit(event)


def _refusal(name: str, code: int, text: str | None) -> messages.CreatePartitionsResponse.CreatePartitionsTopicResult:
    return messages.CreatePartitionsResponse.CreatePartitionsTopicResult(name=name, error_code=code, error_message=text)
