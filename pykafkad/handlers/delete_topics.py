"""DeleteTopics, versions 1 to 6, with Kafka 3.x from 0.

Each topic has its own result. Without `delete.topic.enable` every topic is refused (TOPIC_DELETION_DISABLED, or
INVALID_REQUEST before version 3). A topic given twice, by name, by id, or once by each, is INVALID_REQUEST. The answer
leaves when the deletion is committed. The files are renamed at once and removed later. With a `timeout_ms` of zero or
less nothing is deleted and every topic is REQUEST_TIMED_OUT. Rows come in no particular order.

Version 5 adds a text to errors and has a quota error, 6 topics by id.

A topic that comes when the client's controller_mutation_rate is used up is THROTTLING_QUOTA_EXCEEDED (KIP-599); before
version 5 it is deleted, and the client is throttled.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import DeleteTopics
from pykafkad.metadata.topic_askers import asker_of
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

_DELETE_TOPIC, _DESCRIBE_TOPIC = RULES["DeleteTopics"]
_Row = messages.DeleteTopicsResponse.DeletableTopicResult
ZERO_ID = b"\0" * 16


def handle(ctx: Context, request: messages.DeleteTopicsRequest) -> Generator[None, None, object]:
    """Submits the topics that the caller may delete to the controller."""
    if not ctx.settings.delete_topic_enable:
        if ctx.version < 3:
            return _same(request, errors.INVALID_REQUEST, "This version does not support topic deletion.")
        return _same(request, errors.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    deletion = _Deletion(ctx)
    for name in request.topic_names:
        deletion.add_name(name)
        yield
    for topic in request.topics:
        yield
        if topic.name is None and topic.topic_id == ZERO_ID:
            deletion.refuse(None, ZERO_ID, errors.INVALID_REQUEST, "Neither topic name nor id were specified.")
        elif topic.name is None:
            deletion.add_id(topic.topic_id)
        elif topic.topic_id == ZERO_ID:
            deletion.add_name(topic.name)
        else:
            deletion.refuse(
                topic.name, topic.topic_id, errors.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
    if request.timeout_ms <= 0 and deletion.has_topics():
        return _same(request, errors.REQUEST_TIMED_OUT, None)
    topics = yield from deletion.resolve()
    event = DeleteTopics(ctx.token, topics, refused=deletion.refused, mutations=ctx.mutations, asker=asker_of(ctx))
    return ctx.controller.submit(event)


def _same(request: messages.DeleteTopicsRequest, code: int, text: str | None) -> messages.DeleteTopicsResponse:
    """One error for every topic of the request."""
    rows = [_row(name, ZERO_ID, code, text) for name in request.topic_names]
    rows += [_row(topic.name, topic.topic_id, code, text) for topic in request.topics]
    return messages.DeleteTopicsResponse(responses=rows)


class _Deletion:
    """The names and ids of one request, sorted into those for the controller and those that are refused."""

    __slots__ = ("_ctx", "_ids", "_names", "refused")

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._names: dict[str, int] = {}
        self._ids: dict[bytes, int] = {}
        self.refused: list[_Row] = []

    def add_name(self, name: str) -> None:
        self._names[name] = self._names.get(name, 0) + 1

    def add_id(self, topic_id: bytes) -> None:
        self._ids[topic_id] = self._ids.get(topic_id, 0) + 1

    def has_topics(self) -> bool:
        """Whether any topic is left for the controller."""
        return 1 in self._names.values() or 1 in self._ids.values()

    def refuse(self, name: str | None, topic_id: bytes, code: int, text: str | None = None) -> None:
        self.refused.append(_row(name, topic_id, code, text or errors.message(code)))

    def resolve(self) -> Generator[None, None, dict[bytes, str | None]]:
        """Id to name of the topics to delete."""
        for name, count in self._names.items():
            yield
            if count > 1:
                self.refuse(name, ZERO_ID, errors.INVALID_REQUEST, "Duplicate topic name.")
        for topic_id, count in self._ids.items():
            if count > 1:
                self.refuse(None, topic_id, errors.INVALID_REQUEST, "Duplicate topic id.")
        chosen: dict[bytes, str | None] = {}
        for topic_id in self._ids:
            yield
            found = self._by_id(topic_id)
            if found is not None:
                chosen[topic_id] = found
        for name, count in self._names.items():
            yield
            if count == 1:
                self._by_name(name, chosen)
        return chosen

    def _by_id(self, topic_id: bytes) -> str | None:
        """The topic's name if it may be deleted; else None, and the id is refused."""
        topic = self._ctx.metadata.topic_by_id(topic_id)
        if self._ids[topic_id] > 1:
            return None
        if topic is None:
            self.refuse(None, topic_id, errors.UNKNOWN_TOPIC_ID)
            return None
        if not may(self._ctx, _DELETE_TOPIC, topic.name):
            shown = topic.name if may(self._ctx, _DESCRIBE_TOPIC, topic.name) else None
            self.refuse(shown, topic_id, _DELETE_TOPIC.error)
            return None
        return topic.name

    def _by_name(self, name: str, chosen: dict[bytes, str | None]) -> None:
        """Choose a topic by its name, or refuse it. A caller that may not describe the topic does not learn whether it
        exists."""
        topic = self._ctx.metadata.topics.get(name)
        if not may(self._ctx, _DESCRIBE_TOPIC, name):
            self.refuse(name, ZERO_ID, _DELETE_TOPIC.error)
        elif topic is None:
            self.refuse(name, ZERO_ID, errors.UNKNOWN_TOPIC_OR_PARTITION)
        elif not may(self._ctx, _DELETE_TOPIC, name):
            self.refuse(name, ZERO_ID, _DELETE_TOPIC.error)
        elif topic.id in self._ids:
            chosen.pop(topic.id, None)
            text = "The provided topic name maps to an ID that was already supplied."
            self.refuse(name, topic.id, errors.INVALID_REQUEST, text)
        else:
            chosen[topic.id] = name


def _row(name: str | None, topic_id: bytes, code: int, text: str | None) -> _Row:
    return _Row(name=name, topic_id=topic_id, error_code=code, error_message=text)
