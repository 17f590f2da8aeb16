"""DeleteTopics by name and by id."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import delete_topics
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import create, topic

Request = messages.DeleteTopicsRequest
State = Request.DeleteTopicState


@pytest.fixture
def cluster():
    made = Cluster()
    create(made, topic("a"), topic("b"), topic("c"))
    return made


def delete(cluster, version, **fields):
    fields.setdefault("timeout_ms", 1000)
    denied = fields.pop("denied", None)
    return {
        (row.name, row.topic_id): row
        for row in ask(cluster, delete_topics, Request(**fields), version, denied=denied).responses
    }


def codes(rows):
    return {key: row.error_code for key, row in rows.items()}


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name(cluster, version):
    """Version 5 adds texts to errors."""
    rows = delete(cluster, version, topic_names=["a", "nope", "b", "b"])
    assert codes(rows) == {
        ("a", ZERO): 0,
        ("nope", ZERO): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("b", ZERO): errors.INVALID_REQUEST,
    }
    assert (rows["b", ZERO].error_message is not None) == (version >= 5)
    assert set(cluster.image.topics) == {"b", "c"}


def test_topics_are_deleted_by_name_or_id(cluster):
    """Version 6: a row has both the name and the id."""
    ids = {name: found.id for name, found in cluster.image.topics.items()}
    states = [
        State(name="a"), State(topic_id=ids["b"]), State(topic_id=b"?" * 16), State(name="x", topic_id=b"!" * 16),
        State(),
        State(topic_id=b"2" * 16), State(topic_id=b"2" * 16), State(name="d"), State(name="d"),
    ]  # fmt: skip
    assert codes(delete(cluster, 6, topics=states)) == {
        ("a", ids["a"]): 0,
        ("b", ids["b"]): 0,
        (None, b"?" * 16): errors.UNKNOWN_TOPIC_ID,
        ("x", b"!" * 16): errors.INVALID_REQUEST,
        (None, ZERO): errors.INVALID_REQUEST,
        (None, b"2" * 16): errors.INVALID_REQUEST,
        ("d", ZERO): errors.INVALID_REQUEST,
    }
    assert set(cluster.image.topics) == {"c"}


def test_one_topic_by_name_and_by_id_is_not_deleted(cluster):
    topic_id = cluster.image.topics["a"].id
    rows = delete(cluster, 6, topics=[State(name="a"), State(topic_id=topic_id)])
    assert codes(rows) == {("a", topic_id): errors.INVALID_REQUEST}
    assert "a" in cluster.image.topics


def test_deletion_can_be_switched_off():
    cluster = Cluster(delete_topic_enable="false")
    create(cluster, topic("a"))
    assert codes(delete(cluster, 2, topic_names=["a"])) == {("a", ZERO): errors.INVALID_REQUEST}
    assert codes(delete(cluster, 3, topic_names=["a"])) == {("a", ZERO): errors.TOPIC_DELETION_DISABLED}
    assert codes(delete(cluster, 6, topics=[State(name="a")])) == {("a", ZERO): errors.TOPIC_DELETION_DISABLED}


def test_topics_need_permission(cluster):
    """The refusal of a name does not say whether the topic exists. The refusal of an id has no name if the caller may
    not describe the topic."""
    cluster_wide = ("Delete", "Cluster", "kafka-cluster")
    topic_id = cluster.image.topics["a"].id
    denied = {cluster_wide, ("Delete", "Topic", "a"), ("Describe", "Topic", "nope"), ("Delete", "Topic", "nope")}
    refused = errors.TOPIC_AUTHORIZATION_FAILED
    rows = delete(cluster, 6, topics=[State(name="a"), State(name="nope"), State(name="b")], denied=denied)
    assert codes(rows) == {("a", ZERO): refused, ("nope", ZERO): refused, ("b", cluster.delta.topics_deleted[0].id): 0}
    assert codes(delete(cluster, 6, topics=[State(topic_id=topic_id)], denied=denied)) == {("a", topic_id): refused}
    denied.add(("Describe", "Topic", "a"))
    assert codes(delete(cluster, 6, topics=[State(topic_id=topic_id)], denied=denied)) == {(None, topic_id): refused}


def test_a_timeout_of_zero_deletes_nothing(cluster):
    rows = delete(cluster, 6, topics=[State(name="a"), State(name="nope")], timeout_ms=0)
    assert codes(rows) == {("a", ZERO): errors.REQUEST_TIMED_OUT, ("nope", ZERO): errors.REQUEST_TIMED_OUT}
    assert "a" in cluster.image.topics
    assert delete(cluster, 6, topics=[], timeout_ms=0) == {}
