"""What the broker's log tells people: topics that come and go, and at debug every request."""

from __future__ import annotations

import pytest

from pykafkad.metadata.topic_askers import MAX_KEPT, TEXT_CHARACTERS
from pykafkad.metadata.topics import TOPICS_NAMED
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
        ("info", "topic-created", {"topic": "a", "partitions": 2, "client": "test"}),
        ("info", "topic-created", {"topic": "b", "partitions": 2, "client": "test"}),
        ("info", "topic-deleted", {"topic": "b", "partitions": 2, "client": "test"}),
    ]


def test_who_asked_for_a_topic_is_named(world, lines, monkeypatch):
    """The client, and who logged in, each for its own: also where others were refused before."""
    peer = world.connect()
    peer.ask(create("a"), 5, client_id="first")
    monkeypatch.setattr(type(peer.connection.session), "principal", "User:alice")
    peer.ask(create("a", "b"), 5, client_id="x" * 1000)
    peer.ask(messages.DeleteTopicsRequest(topic_names=["a", "no"], timeout_ms=1000), 5, client_id="last")
    assert [fields for _, event, fields in lines if event.startswith("topic-")] == [
        {"topic": "a", "partitions": 2, "client": "first"},
        {"topic": "b", "partitions": 2, "client": "x" * TEXT_CHARACTERS, "principal": "User:alice"},
        {"topic": "a", "partitions": 2, "client": "last", "principal": "User:alice"},
    ]


def test_a_topic_that_comes_by_itself_says_so(world, lines):
    """With the client whose request needed it first: Kafka's own topics, too."""
    peer = world.connect()
    names = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in ("c", "d")]
    peer.ask(messages.MetadataRequest(topics=names, allow_auto_topic_creation=True), 12, client_id="reader")
    peer.ask(messages.FindCoordinatorRequest(key="group"), 2, client_id="member")
    created = {fields["topic"]: fields for _, event, fields in lines if event == "topic-created"}
    assert {name: (fields["client"], fields["automatic"]) for name, fields in created.items()} == {
        "c": ("reader", True),
        "d": ("reader", True),
        "__consumer_offsets": ("member", True),
    }


def test_a_topic_that_the_broker_needs_has_no_client(world, lines):
    """Nobody's request stands behind the share coordinator's topic."""
    world.broker.share_groups.create_topic()
    world.turn()
    (created,) = [fields for _, event, fields in lines if event == "topic-created"]
    assert created == {"topic": "__share_group_state", "partitions": 3, "automatic": True}


def test_what_only_would_be_created_names_nobody_later(world, lines):
    """A check (`validate_only`) is no creation, and who asked is forgotten with the line that names him."""
    peer = world.connect()
    checked = create("a")
    checked.validate_only = True
    peer.ask(checked, 5)
    peer.ask(create("b"), 5)
    assert len(world.broker.image.topic_askers) == 0
    assert [fields["topic"] for _, event, fields in lines if event == "topic-created"] == ["b"]


@pytest.mark.long
def test_who_asked_is_kept_of_so_many_topics(world, monkeypatch):
    """Where no line tells of them, the oldest are forgotten; a later change without an asker has none."""
    world.broker.tells_topics = False
    peer = world.connect()
    for number in range(0, MAX_KEPT + 2 * TOPICS_NAMED, TOPICS_NAMED):
        peer.ask(create(*(f"t{each}" for each in range(number, number + TOPICS_NAMED))), 5)
    image = world.broker.image
    assert len(image.topic_askers) == MAX_KEPT
    assert image.topic_askers.take(image.topics["t0"].id) == {}
    assert image.topic_askers.take(image.topics[f"t{MAX_KEPT + TOPICS_NAMED}"].id) == {"client": "test"}
    last = image.topics[f"t{MAX_KEPT + TOPICS_NAMED + 1}"].id
    image.topic_askers.note([(last, None)])
    assert image.topic_askers.take(last) == {}


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
