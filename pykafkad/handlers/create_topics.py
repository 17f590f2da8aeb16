"""CreateTopics, versions 2 to 7, with Kafka 3.x from 0.

Each topic has its own result. INVALID_TOPIC_EXCEPTION stands for an invalid name and for a name that differs from an
existing one only in '.' and '_'. Existing topics, impossible partition counts, replication factors, assignments and
settings have their own errors. A name given twice, and the metadata log's own name, are INVALID_REQUEST.
`validate_only` makes all checks and creates nothing. The answer leaves when the topics are committed and their leaders
have their logs. With a `timeout_ms` of zero or less nothing is created and every topic is REQUEST_TIMED_OUT.

More than 10 000 partitions in one request are refused, as in Kafka. The records of a request are one batch of the
metadata log, so this limit also bounds the time that other requests wait while the batch is written and applied: 50 ms
for 10 000 partitions. The records are made before that in small steps between other requests. The folders of the
partitions are made after it, in small steps or at their first use.

Version 4 lets the partition count and replication factor be -1 (the broker's), 5 answers them and every setting with
its source, 6 has a quota error, 7 answers the topic id.

A topic that comes when the client's controller_mutation_rate is used up is THROTTLING_QUOTA_EXCEEDED (KIP-599); before
version 6 it is created, and the client is throttled.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import CreateTopics
from pykafkad.metadata.topic_askers import asker_of
from pykafkad.metadata.topics import CLUSTER_METADATA_TOPIC
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


_CREATE_TOPIC, _DESCRIBE_CONFIGS_TOPIC = RULES["CreateTopics"]


def handle(ctx: Context, request: messages.CreateTopicsRequest) -> Generator[None, None, object]:
    """Submits the topics that the caller may create to the controller."""
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
        name = topic.name
        if counts[name] > 1:
            continue
        if name == CLUSTER_METADATA_TOPIC:
            text = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            refused.append(_refusal(name, errors.INVALID_REQUEST, text))
        elif not may(ctx, _CREATE_TOPIC, name):
            refused.append(_refusal(name, _CREATE_TOPIC.error, "Authorization failed."))
        else:
            topics.append(topic)
    if topics and request.timeout_ms <= 0:
        rows = [_refusal(topic.name, errors.REQUEST_TIMED_OUT, None) for topic in request.topics]
        return messages.CreateTopicsResponse(topics=rows)
    describable = frozenset(topic.name for topic in topics if may(ctx, _DESCRIBE_CONFIGS_TOPIC, topic.name))
    event = CreateTopics(
        ctx.token,
        topics,
        validate_only=request.validate_only,
        describable=describable,
        refused=refused,
        mutations=ctx.mutations,
        asker=asker_of(ctx),
    )
    return ctx.controller.submit(event)


def _refusal(name: str, code: int, text: str | None) -> messages.CreateTopicsResponse.CreatableTopicResult:
    return messages.CreateTopicsResponse.CreatableTopicResult(name=name, error_code=code, error_message=text)
