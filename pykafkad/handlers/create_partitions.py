"""CreatePartitions, versions 0 to 3.

Grows topics; each has its own result. A count that is not above the present one is INVALID_PARTITIONS, a wrong manual
assignment INVALID_REPLICA_ASSIGNMENT, a topic given twice INVALID_REQUEST. `validate_only` checks and changes nothing. The
answer leaves when the partitions are committed and have their logs. Version 3 has a quota error (never given: no quotas yet).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.metadata.events import CreatePartitions
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    """Hands what may grow to the controller."""
    counts: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] = counts.get(topic.name, 0) + 1
    refused = [_refusal(name, errors.INVALID_REQUEST, "Duplicate topic name.") for name, count in counts.items() if count > 1]
    topics = []
    for topic in request.topics:
        if counts[topic.name] > 1:
            continue
        if ctx.allowed("Alter", "Topic", topic.name):
            topics.append(topic)
        else:
            refused.append(_refusal(topic.name, errors.TOPIC_AUTHORIZATION_FAILED, None))
    event = CreatePartitions(ctx.token, topics, validate_only=request.validate_only, refused=refused)
    return ctx.controller.submit(event)


def _refusal(name: str, code: int, text: str | None) -> object:
    return messages.CreatePartitionsResponse.CreatePartitionsTopicResult(name=name, error_code=code, error_message=text)
