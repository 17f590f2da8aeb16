"""DescribeTopicPartitions: pages, cursors, errors."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import describe_topic_partitions
from pykafkad.metadata import record_codec
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import create, topic

Request = messages.DescribeTopicPartitionsRequest


@pytest.fixture
def cluster():
    made = Cluster()
    create(made, topic("b", 3), topic("a", 2), topic("c"))
    return made


def describe(cluster, *names, cursor=None, limit=2000, denied=None):
    where = None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    topics = [Request.TopicRequest(name=name) for name in names]
    request = Request(topics=topics, response_partition_limit=limit, cursor=where)
    answer = ask(cluster, describe_topic_partitions, request, 0, denied=denied)
    rows = [(row.name, row.error_code, [part.partition_index for part in row.partitions]) for row in answer.topics]
    following = answer.next_cursor
    return rows, None if following is None else (following.topic_name, following.partition_index)


def test_topics_are_in_the_order_of_their_names(cluster):
    assert describe(cluster) == ([("a", 0, [0, 1]), ("b", 0, [0, 1, 2]), ("c", 0, [0])], None)


def test_pages_follow_one_another(cluster):
    """The cursor of a page that ends inside a topic points into the topic, else to the start of the next one."""
    pages, cursor = [], None
    while True:
        rows, cursor = describe(cluster, cursor=cursor, limit=2)
        pages.append((rows, cursor))
        if cursor is None:
            break
    assert pages == [
        ([("a", 0, [0, 1])], ("b", 0)),
        ([("b", 0, [0, 1])], ("b", 2)),
        ([("b", 0, [2]), ("c", 0, [0])], None),
    ]
    assert describe(cluster, "a", "b", limit=0) == ([("a", 0, [0])], ("a", 1))


def test_the_broker_limits_the_size_of_pages():
    cluster = Cluster(max_request_partition_size_limit="1")
    create(cluster, topic("a", 2))
    assert describe(cluster) == ([("a", 0, [0])], ("a", 1))


def test_each_topic_has_its_own_error(cluster):
    """Unknown and invalid names have errors if they are named. A refused name does not say whether the topic exists."""
    rows, _ = describe(cluster, "nope", "a/b", "a", "c", denied={("Describe", "Topic", "c")})
    assert rows == [
        ("a", 0, [0, 1]), ("a/b", errors.INVALID_TOPIC_EXCEPTION, []), ("nope", errors.UNKNOWN_TOPIC_OR_PARTITION, []),
        ("c", errors.TOPIC_AUTHORIZATION_FAILED, []),
    ]  # fmt: skip
    assert describe(cluster, denied={("Describe", "Topic", "c")})[0] == [("a", 0, [0, 1]), ("b", 0, [0, 1, 2])]


@pytest.mark.parametrize("cursor", [("c", 0), ("a", -1)])
def test_invalid_cursors_are_refused(cluster, cursor):
    """A cursor outside the topics of the request or below zero."""
    assert describe(cluster, "a", "b", cursor=cursor) == (
        [("a", errors.INVALID_REQUEST, []), ("b", errors.INVALID_REQUEST, [])],
        None,
    )


def test_a_cursor_at_a_deleted_topic_continues_behind_it(cluster):
    """If the request means all topics."""
    assert describe(cluster, cursor=("bb", 5)) == ([("c", 0, [0])], None)
    assert describe(cluster, cursor=("c", 9)) == ([("c", 0, [])], None)


def test_a_row_has_the_state_of_its_partition(cluster):
    request = Request(topics=[Request.TopicRequest(name="a")])
    (row,) = ask(cluster, describe_topic_partitions, request, 0).topics
    part = row.partitions[0]
    assert (row.topic_id, row.is_internal, row.topic_authorized_operations) == (
        cluster.image.topics["a"].id,
        False,
        3576,
    )
    assert (part.leader_id, part.leader_epoch, part.replica_nodes, part.isr_nodes, part.offline_replicas) == (
        1,
        0,
        [1],
        [1],
        [],
    )
    assert (part.eligible_leader_replicas, part.last_known_elr) == ([], [])


def test_cached_pages_follow_the_image(cluster):
    """A page is computed once, a changed partition is seen at once, and the number of cached pages is limited."""
    describe(cluster, "b")
    pages = cluster.image.topics["b"].pages
    describe(cluster, "b")
    assert cluster.image.topics["b"].pages is pages and len(pages[1]) == 1
    state = cluster.image.topics["b"].partitions[0]
    change = messages.PartitionChangeRecord(partition_id=0, topic_id=cluster.image.topics["b"].id, leader=state.leader)
    cluster.image.apply(record_codec.record(change))
    answer = ask(cluster, describe_topic_partitions, Request(topics=[Request.TopicRequest(name="b")]), 0)
    assert answer.topics[0].partitions[0].leader_epoch == 1
    create(cluster, topic("wide", 2 * describe_topic_partitions.MAX_PAGES))
    for start in range(2 * describe_topic_partitions.MAX_PAGES):
        describe(cluster, "wide", cursor=("wide", start))
        assert len(cluster.image.topics["wide"].pages[1]) <= describe_topic_partitions.MAX_PAGES
