"""The creation of internal topics for Streams applications (KIP-1071): repartition topics and changelogs.

A group's coordinator tells which of them are missing, and the heartbeat that finds it out has them created, if its
caller may. A topic whose creation has failed is left alone for two heartbeat intervals. Meanwhile the heartbeats of its
group say why."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import CreateTopics
from pykafkad.metadata.topic_askers import Asker

MISSING_INTERNAL_TOPICS = 3
"""The status code of a heartbeat's answer."""
FAILURES_SHOWN = 3
BACK_OFF_HEARTBEATS = 2
"""For so many heartbeat intervals a topic whose creation failed is left alone."""
MAX_FAILURES = 1000
"""Topics whose failure is remembered. Beyond, those that would be forgotten first are forgotten now."""
MAX_UNDER_WAY = 10_000
"""Topics that are created at once. What is asked for beyond waits for a later heartbeat."""

_CREATE_TOPIC = RULES["StreamsGroupHeartbeat"][2]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.effects import CreateInternalTopics
    from pykafkad.handlers.authorization import Caller
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.runtime import Runtime
    from pykafkad.wire import messages

    CreatableTopic = messages.CreateTopicsRequest.CreatableTopic


class InternalTopics:
    """The topics that are being created, and the failures: until when (in monotonic seconds), and why."""

    __slots__ = ("_controller", "_failures", "_runtime", "_under_way")

    def __init__(self, runtime: Runtime, controller: ControllerNode) -> None:
        self._runtime = runtime
        self._controller = controller
        self._failures: dict[str, tuple[float, str]] = {}
        self._under_way: set[str] = set()

    def perform(self, effect: CreateInternalTopics) -> None:
        """Create the topics of a heartbeat. Its answer, which follows, says what stands in the way."""
        connection = self._runtime.replies.connection_of(effect.token)
        if connection is None:
            return  # Nobody knows any more who asked. The next heartbeat asks again.
        names = [topic.name for topic in effect.topics]
        detail = self._forbidden(connection.session, names)
        if not detail:
            heartbeat_seconds = effect.response.heartbeat_interval_ms / 1000
            self.create(effect.topics, BACK_OFF_HEARTBEATS * heartbeat_seconds)
            detail = self._failed(names)
        for status in effect.response.status or ():
            if status.status_code == MISSING_INTERNAL_TOPICS:
                status.status_detail += detail

    def _forbidden(self, caller: Caller, names: list[str]) -> str:
        forbidden = [name for name in names if not may(caller, _CREATE_TOPIC, name)]
        return f"; Unauthorized to CREATE on topics {', '.join(forbidden)}." if forbidden else ""

    def _failed(self, names: list[str]) -> str:
        failures = self.failures(names)
        if not failures:
            return ""
        shown = ", ".join(f"{name} ({text})" for name, text in list(failures.items())[:FAILURES_SHOWN])
        more = f" and {len(failures) - FAILURES_SHOWN} more" if len(failures) > FAILURES_SHOWN else ""
        return f"; Creation failed: {shown}{more}."

    def create(self, topics: Iterable[CreatableTopic], seconds: float) -> None:
        """Have these created, except those under way and those that failed lately. A failure counts for `seconds`."""
        chosen = []
        for topic in topics:
            if len(self._under_way) >= MAX_UNDER_WAY:
                break
            if topic.name not in self._under_way and not self.failures((topic.name,)):
                self._under_way.add(topic.name)
                chosen.append(topic)
        if chosen:
            created = _Created(self, [topic.name for topic in chosen], seconds)
            try:
                self._controller.submit(CreateTopics(created, chosen, asker=Asker(is_automatic=True)))
            except Exception as error:
                self._runtime.replies.fail(created, error)

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Name to reason, for the topics that could not be created lately."""
        now = self._runtime.now
        found = {}
        for name in names:
            until, text = self._failures.get(name, (now, ""))
            if until > now:
                found[name] = text
        return found

    def created(self, names: list[str], failed: dict[str, str], seconds: float) -> None:
        """The controller has answered for `names`; the creation of some has `failed`."""
        self._under_way.difference_update(names)
        now = self._runtime.now
        for name in [name for name, (until, _) in self._failures.items() if until <= now]:
            del self._failures[name]
        for name, text in failed.items():
            self._failures[name] = now + seconds, text
        while len(self._failures) > MAX_FAILURES:
            del self._failures[min(self._failures, key=lambda name: self._failures[name][0])]


class _Created:
    """The reply token of one CreateTopics."""

    __slots__ = ("_names", "_seconds", "_topics")

    def __init__(self, topics: InternalTopics, names: list[str], seconds: float) -> None:
        self._topics = topics
        self._names = names
        self._seconds = seconds

    def deliver(self, message: messages.CreateTopicsResponse) -> None:
        """The controller has answered."""
        failed = {
            row.name: row.error_message or errors.message(row.error_code) for row in message.topics if row.error_code
        }
        self._topics.created(self._names, failed, self._seconds)

    def abandon(self, reason: str) -> None:
        """The controller could not write."""
        self._topics.created(self._names, dict.fromkeys(self._names, reason), self._seconds)
