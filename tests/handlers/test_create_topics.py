"""CreateTopics: rows, duplicates, permissions, versions. tests/metadata/test_controller.py tests which topics are
valid."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import create_topics
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import topic


def request(*topics, **fields):
    return messages.CreateTopicsRequest(topics=list(topics), **fields)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_a_topic(version):
    """Version 5 answers partition count, replication factor and all settings, version 7 the id."""
    cluster = Cluster()
    (row,) = ask(cluster, create_topics, request(topic("a", 2, 1, retention_ms="5")), version).topics
    assert (row.error_code, row.error_message) == (0, None)
    assert (row.num_partitions, row.replication_factor) == ((2, 1) if version >= 5 else (-1, -1))
    assert len(row.configs) == (33 if version >= 5 else 0)
    assert row.topic_id == (cluster.image.topics["a"].id if version >= 7 else b"\0" * 16)


def test_a_name_given_twice_is_refused_once():
    cluster = Cluster()
    answer = ask(cluster, create_topics, request(topic("a"), topic("a", 2), topic("b")), 7)
    assert [(row.name, row.error_code) for row in answer.topics] == [("b", 0), ("a", errors.INVALID_REQUEST)]
    assert set(cluster.image.topics) == {"b"}


def test_the_name_of_the_metadata_log_is_refused():
    answer = ask(Cluster(), create_topics, request(topic("__cluster_metadata")), 7)
    assert answer.topics[0].error_code == errors.INVALID_REQUEST


def test_permission_on_the_cluster_or_the_topic_suffices():
    cluster = Cluster()
    denied = {("Create", "Cluster", "kafka-cluster"), ("Create", "Topic", "a"), ("DescribeConfigs", "Topic", "b")}
    answer = ask(cluster, create_topics, request(topic("a"), topic("b")), 7, denied=denied)
    shown = {row.name: row for row in answer.topics}
    assert shown["a"].error_code == errors.TOPIC_AUTHORIZATION_FAILED
    assert (shown["b"].error_code, shown["b"].topic_config_error_code) == (0, errors.TOPIC_AUTHORIZATION_FAILED)
    assert set(cluster.image.topics) == {"b"}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_timeout_of_zero_creates_nothing(timeout_ms):
    """Kafka's controller drops the request unread. A request without valid topics never reaches its queue."""
    cluster = Cluster()
    answer = ask(
        cluster, create_topics, request(topic("a"), topic("a/b"), topic("c"), topic("c"), timeout_ms=timeout_ms), 7
    )
    assert [row.error_code for row in answer.topics] == [errors.REQUEST_TIMED_OUT] * 4
    assert not cluster.image.topics
    answer = ask(cluster, create_topics, request(topic("c"), topic("c"), timeout_ms=timeout_ms), 7)
    assert [row.error_code for row in answer.topics] == [errors.INVALID_REQUEST]


def test_validate_only_creates_nothing():
    cluster = Cluster()
    assert ask(cluster, create_topics, request(topic("a"), validate_only=True), 7).topics[0].error_code == 0
    assert not cluster.image.topics
