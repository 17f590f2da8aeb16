"""CreatePartitions: rows, duplicates, permissions. tests/metadata/test_controller.py tests which counts are valid."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import create_partitions
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import create, topic

Request = messages.CreatePartitionsRequest


def grow(cluster, version, *topics, denied=None, timeout_ms=1000, **fields):
    rows = [Request.CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in topics]
    answer = ask(
        cluster, create_partitions, Request(topics=rows, timeout_ms=timeout_ms, **fields), version, denied=denied
    )
    return [(row.name, row.error_code) for row in answer.results]


@pytest.fixture
def cluster():
    made = Cluster()
    create(made, topic("a"), topic("b"))
    return made


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions(cluster, version):
    assert grow(cluster, version, ("a", 3), ("nope", 3)) == [("a", 0), ("nope", errors.UNKNOWN_TOPIC_OR_PARTITION)]
    assert len(cluster.image.topics["a"].partitions) == 3


def test_duplicates_and_topics_without_permission_are_refused(cluster):
    refused = errors.TOPIC_AUTHORIZATION_FAILED
    rows = grow(cluster, 3, ("a", 2), ("a", 3), ("b", 2), denied={("Alter", "Topic", "b")})
    assert rows == [("a", errors.INVALID_REQUEST), ("b", refused)]
    assert [len(found.partitions) for found in cluster.image.topics.values()] == [1, 1]


def test_a_timeout_of_zero_changes_nothing(cluster):
    assert grow(cluster, 3, ("a", 2), timeout_ms=0) == [("a", errors.REQUEST_TIMED_OUT)]
    assert grow(cluster, 3, ("a", 2), ("a", 2), timeout_ms=0) == [("a", errors.INVALID_REQUEST)]
    assert len(cluster.image.topics["a"].partitions) == 1


def test_validate_only_changes_nothing(cluster):
    assert grow(cluster, 3, ("a", 2), ("b", 1), validate_only=True) == [("a", 0), ("b", errors.INVALID_PARTITIONS)]
    assert len(cluster.image.topics["a"].partitions) == 1
