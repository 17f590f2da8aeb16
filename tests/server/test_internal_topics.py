"""The creation of internal topics for Streams applications, and what is remembered of failures."""

from types import SimpleNamespace

import pytest

from pykafkad.server import internal_topics
from pykafkad.server.internal_topics import InternalTopics
from pykafkad.server.replies import Replies
from pykafkad.wire import messages

Row = messages.CreateTopicsResponse.CreatableTopicResult


class Controller:
    """Keeps the events until they are answered."""

    def __init__(self):
        self.events = []

    def submit(self, event):
        self.events.append(event)

    def asked(self):
        return [[topic.name for topic in event.topics] for event in self.events]


@pytest.fixture
def runtime():
    runtime = SimpleNamespace(now=100.0, errors=[])
    runtime.unexpected = runtime.errors.append
    runtime.replies = Replies(runtime)
    return runtime


@pytest.fixture
def controller():
    return Controller()


@pytest.fixture
def topics(runtime, controller):
    return InternalTopics(runtime, controller)


def rows(*names):
    return [messages.CreateTopicsRequest.CreatableTopic(name=name) for name in names]


def test_a_topic_is_asked_for_once_at_a_time(topics, controller):
    topics.create(rows("a", "b"), 10)
    topics.create(rows("b", "c"), 10)
    topics.create(rows("a"), 10)
    assert controller.asked() == [["a", "b"], ["c"]]
    controller.events[0].token.deliver(messages.CreateTopicsResponse(topics=[Row(name="a"), Row(name="b")]))
    topics.create(rows("a", "c"), 10)
    assert controller.asked()[2:] == [["a"]]


def test_the_log_will_say_that_they_came_by_themselves(topics, controller):
    topics.create(rows("a"), 10)
    assert controller.events[0].asker.is_automatic


def test_a_failure_is_remembered_for_its_time(topics, controller, runtime):
    topics.create(rows("a", "b"), 10)
    answer = messages.CreateTopicsResponse(
        topics=[Row(name="a", error_code=37, error_message="no"), Row(name="b", error_code=37, error_message=None)]
    )
    controller.events[0].token.deliver(answer)
    assert topics.failures(["a", "b", "c"]) == {"a": "no", "b": "Invalid partitions."}
    topics.create(rows("a", "c"), 10)
    assert controller.asked()[1:] == [["c"]]
    runtime.now += 10
    assert topics.failures(["a", "b"]) == {}
    topics.create(rows("a"), 10)
    assert controller.asked()[2:] == [["a"]]


def test_a_controller_that_cannot_write(topics, controller):
    topics.create(rows("a"), 10)
    controller.events[0].token.abandon("the disk is full")
    assert topics.failures(["a"]) == {"a": "the disk is full"}


def test_a_bug_of_the_controller_leaves_no_topic_under_way(topics, controller, runtime, monkeypatch):
    bug = ValueError("a bug")
    topics.create(rows("a"), 10)
    runtime.replies.fail(controller.events[0].token, bug)
    assert topics.failures(["a"]) == {"a": "an unexpected error"} and runtime.errors == [bug]
    runtime.now += 10
    topics.create(rows("a"), 10)
    assert len(controller.events) == 2

    def refuse(event):
        raise bug

    monkeypatch.setattr(controller, "submit", refuse)
    topics.create(rows("b"), 10)
    assert topics.failures(["b"]) == {"b": "an unexpected error"} and runtime.errors == [bug, bug]


def test_the_limits(topics, controller, runtime, monkeypatch):
    monkeypatch.setattr(internal_topics, "MAX_UNDER_WAY", 3)
    monkeypatch.setattr(internal_topics, "MAX_FAILURES", 2)
    topics.create(rows("a", "b", "c", "d"), 10)
    assert controller.asked() == [["a", "b", "c"]]
    topics.create(rows("d"), 10)
    assert controller.asked() == [["a", "b", "c"]]
    for name, seconds in (("a", 3), ("b", 1), ("c", 2)):
        topics.created([name], {name: "no"}, seconds)
    assert set(topics.failures("abc")) == {"a", "c"}, "what would be forgotten first is forgotten"
    runtime.now += 2.5
    topics.created([], {}, 1)
    assert topics.failures("abc") == {"a": "no"}
