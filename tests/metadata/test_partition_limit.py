"""`pykafkad.max.partitions`: creations that would go beyond it are refused as by a policy of Kafka's."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import create_partitions, create_topics
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import topic

LIMIT = 10
SETTINGS = {"pykafkad_max_partitions": str(LIMIT), "offsets_topic_num_partitions": "50"}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(**SETTINGS)


def create(cluster: Cluster, *topics, **fields) -> list[int]:
    """The error codes of the topics."""
    answer = ask(cluster, create_topics, messages.CreateTopicsRequest(topics=list(topics), **fields), 7)
    refused = [row.error_message for row in answer.topics if row.error_code == errors.POLICY_VIOLATION]
    assert all(text.endswith(f"more partition(s) would be above pykafkad.max.partitions={LIMIT}.") for text in refused)
    return [row.error_code for row in answer.topics]


def grow(cluster: Cluster, *counts: tuple[str, int]) -> list[int]:
    row = messages.CreatePartitionsRequest.CreatePartitionsTopic
    topics = [row(name=name, count=count, assignments=None) for name, count in counts]
    request = messages.CreatePartitionsRequest(topics=topics, timeout_ms=1000)
    return [row.error_code for row in ask(cluster, create_partitions, request, 3).results]


def test_topics_up_to_the_limit_and_none_beyond(cluster: Cluster) -> None:
    """Each topic of a request is refused or made alone."""
    assert create(cluster, topic("a", 4), topic("b", 7), topic("c", 6)) == [0, errors.POLICY_VIOLATION, 0]
    assert create(cluster, topic("d")) == [errors.POLICY_VIOLATION]
    assert set(cluster.image.topics) == {"a", "c"}


def test_a_dry_run_is_refused_too(cluster: Cluster) -> None:
    assert create(cluster, topic("a", LIMIT + 1), validate_only=True) == [errors.POLICY_VIOLATION]
    assert create(cluster, topic("a", LIMIT), validate_only=True) == [0]


def test_more_partitions_of_a_topic(cluster: Cluster) -> None:
    create(cluster, topic("a", 4), topic("b", 4))
    assert grow(cluster, ("a", 5), ("b", 6)) == [0, errors.POLICY_VIOLATION]
    assert grow(cluster, ("a", 7)) == [errors.POLICY_VIOLATION]
    assert grow(cluster, ("a", 6)) == [0]


def test_topics_of_kafkas_own_do_not_count_up_to_their_usual_size(cluster: Cluster) -> None:
    """Else a limit below 50 would be one without groups; and one made larger by hand counts."""
    assert create(cluster, topic("__consumer_offsets", 50)) == [0]
    assert create(cluster, topic("__transaction_state", 61)) == [errors.POLICY_VIOLATION]
    assert create(cluster, topic("a", LIMIT)) == [0]
    assert grow(cluster, ("__consumer_offsets", 61)) == [errors.POLICY_VIOLATION]


def test_without_the_setting_there_is_no_limit() -> None:
    assert create(Cluster(), topic("a", 5000)) == [0]
