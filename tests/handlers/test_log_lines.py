"""What the broker's log tells people: topics that come and go, and at debug every request."""

from __future__ import annotations

import pytest

from pykafkad.server.broker import TOPICS_NAMED
from pykafkad.wire import messages
from tests.handlers.requests import fetch


@pytest.fixture
def lines(world, monkeypatch):
    """A list of (level, event, fields) that grows."""
    found = []
    world.broker.logs.set_level("info")
    write = lambda level, name, event, fields: found.append((level, event, fields))  # noqa: E731
    monkeypatch.setattr(world.broker.logs.sink, "line", write)
    return found


def create(*names):
    topics = [
        messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names
    ]
    return messages.CreateTopicsRequest(topics=topics, timeout_ms=1000)


def test_topics_are_named_when_they_come_and_go(world, lines):
    """A line each."""
    peer = world.connect()
    peer.ask(create("a", "b"), 5)
    peer.ask(messages.DeleteTopicsRequest(topic_names=["b"], timeout_ms=1000), 5)
    assert [line for line in lines if line[1].startswith("topic-")] == [
        ("info", "topic-created", {"topic": "a", "partitions": 2}),
        ("info", "topic-created", {"topic": "b", "partitions": 2}),
        ("info", "topic-deleted", {"topic": "b", "partitions": 2}),
    ]


def test_many_topics_are_counted(world, lines):
    """A request for very many does not flood the log."""
    world.connect().ask(create(*(f"t{number}" for number in range(TOPICS_NAMED + 5))), 5)
    created = [fields for _, event, fields in lines if event == "topic-created"]
    assert (len(created), created[-1]) == (TOPICS_NAMED + 1, {"more": 5})


def test_at_debug_every_request_has_a_line(world, lines):
    """With its API, version and client; at info it has none."""
    world.create_topic("t")
    peer = world.connect()
    peer.ask(messages.MetadataRequest(topics=None), 5)
    world.broker.logs.set_level("debug")
    peer.ask(messages.MetadataRequest(topics=None), 5, client_id="curious")
    peer.ask(fetch("t", {0: 0}, max_wait_ms=0), 11)
    asked = [(fields["api"], fields["version"], fields["client"]) for _, event, fields in lines if event == "request"]
    assert asked == [("Metadata", 5, "curious"), ("Fetch", 11, "test")]
