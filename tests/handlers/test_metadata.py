"""Metadata in all versions."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import metadata
from pykafkad.metadata import events, record_codec
from pykafkad.metadata.brokers import Endpoint
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from tests.metadata.cluster import CLUSTER_ID, Cluster
from tests.metadata.context import FakeContext, ask, finished
from tests.metadata.test_controller import create, topic
from tests.simulation.world import World

Request = messages.MetadataRequest
VERSIONS = range(14)


def names(*wanted, **fields):
    fields.setdefault("allow_auto_topic_creation", True)
    return Request(topics=[Request.MetadataRequestTopic(name=name) for name in wanted], **fields)


def by_id(*wanted):
    return Request(topics=[Request.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in wanted])


@pytest.fixture
def cluster():
    made = Cluster(auto_create_topics_enable="false")
    create(made, topic("a", 2), topic("b"))
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_shows_brokers_and_partitions(cluster, version):
    answer = ask(cluster, metadata, names("a"), version)
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "localhost", 9092)
    (found,) = answer.topics
    assert (found.error_code, found.name, found.is_internal) == (0, "a", False)
    parts = [(part.partition_index, part.leader_id, part.replica_nodes, part.isr_nodes) for part in found.partitions]
    assert parts == [(0, 1, [1], [1]), (1, 1, [1], [1])]
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == (CLUSTER_ID if version >= 2 else None)
    assert found.partitions[0].leader_epoch == (0 if version >= 7 else -1)
    assert found.topic_id == (cluster.image.topics["a"].id if version >= 10 else ZERO)
    assert answer.error_code == 0


def test_null_means_all_topics_and_empty_means_none(cluster):
    """Except in version 0, which has no null and where empty means all."""
    assert {row.name for row in ask(cluster, metadata, Request(topics=[]), 0).topics} == {"a", "b"}
    for version in VERSIONS[1:]:
        assert {row.name for row in ask(cluster, metadata, Request(topics=None), version).topics} == {"a", "b"}
        assert ask(cluster, metadata, Request(topics=[]), version).topics == []


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_and_invalid_names_have_errors(cluster, version):
    answer = ask(cluster, metadata, names("nope", "a/b", "a", "nope"), version)
    assert {row.name: row.error_code for row in answer.topics} == {
        "nope": errors.UNKNOWN_TOPIC_OR_PARTITION, "a/b": errors.INVALID_TOPIC_EXCEPTION, "a": 0,
    }  # fmt: skip
    assert len(answer.topics) == 3


def test_missing_topics_are_created_if_both_sides_allow_it():
    """The first answer is UNKNOWN_TOPIC_OR_PARTITION, and the caller asks again. Before version 4 requests always allow
    it."""
    cluster = Cluster(num_partitions="3")
    refused = ask(cluster, metadata, names("new", allow_auto_topic_creation=False), 4)
    assert (refused.topics[0].error_code, set(cluster.image.topics)) == (3, set())
    assert ask(cluster, metadata, names("new", "a/b"), 4).topics[0].error_code == 3
    assert set(cluster.image.topics) == {"new"}
    assert len(ask(cluster, metadata, names("new"), 4).topics[0].partitions) == 3
    ask(cluster, metadata, names("old"), 1)
    assert set(cluster.image.topics) == {"new", "old"}
    ask(cluster, metadata, Request(topics=None), 12)
    assert set(cluster.image.topics) == {"new", "old"}


def test_creation_needs_permission():
    cluster = Cluster()
    denied = {("Create", "Cluster", "kafka-cluster"), ("Create", "Topic", "new")}
    answer = ask(cluster, metadata, names("new"), 12, denied=denied)
    assert answer.topics[0].error_code == errors.TOPIC_AUTHORIZATION_FAILED
    assert not cluster.image.topics


def test_topics_are_found_by_id(cluster):
    """From version 12. An unknown id is UNKNOWN_TOPIC_ID. If the request has an id, names do not count."""
    topic_id = cluster.image.topics["a"].id
    answer = ask(cluster, metadata, by_id(topic_id, b"?" * 16), 12)
    assert [(row.error_code, row.name, row.topic_id) for row in answer.topics] == [
        (0, "a", topic_id), (errors.UNKNOWN_TOPIC_ID, None, b"?" * 16),
    ]  # fmt: skip
    denied = {("Describe", "Topic", "a")}
    assert ask(cluster, metadata, by_id(topic_id), 12, denied=denied).topics[0].name is None


@pytest.mark.parametrize(
    ("version", "code"), [(10, errors.INVALID_REQUEST), (11, errors.INVALID_REQUEST), (12, errors.UNKNOWN_SERVER_ERROR)]
)
def test_topics_without_a_name_or_id_fail_the_request(cluster, version, code):
    """Before version 12 ids and null names fail it; later a null name without an id."""
    answer = ask(cluster, metadata, by_id(ZERO), version)
    assert (answer.brokers, answer.topics[0].error_code) == ([], code)
    if version < 12:
        assert ask(cluster, metadata, by_id(b"x" * 16), version).topics[0].error_code == code


def test_topics_without_permission_are_hidden(cluster):
    """They are left out of all topics, and have an error if they are named."""
    denied = {("Describe", "Topic", "a")}
    assert [row.name for row in ask(cluster, metadata, Request(topics=None), 12, denied=denied).topics] == ["b"]
    (row,) = ask(cluster, metadata, names("a"), 12, denied=denied).topics
    assert (row.error_code, row.topic_id, row.partitions) == (errors.TOPIC_AUTHORIZATION_FAILED, ZERO, [])


def test_authorized_operations_come_on_request(cluster):
    """As bit fields; those of the cluster only in versions 8 to 10."""
    for version in (8, 9, 10):
        request = names("a", include_cluster_authorized_operations=True, include_topic_authorized_operations=True)
        answer = ask(cluster, metadata, request, version)
        assert (answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations) == (8096, 3576)
        assert ask(cluster, metadata, names("a"), version).topics[0].topic_authorized_operations == -(2**31)
    denied = {("Describe", "Cluster", "kafka-cluster")}
    request = names("a", include_cluster_authorized_operations=True)
    assert ask(cluster, metadata, request, 8, denied=denied).cluster_authorized_operations == 0
    request = names("a", include_topic_authorized_operations=True)
    denied = {("Write", "Topic", "a")}
    assert ask(cluster, metadata, request, 12, denied=denied).topics[0].topic_authorized_operations == 3576 - 16


def test_internal_topics_are_marked():
    cluster = Cluster()
    cluster.submit(events.AutoCreateTopics(["__consumer_offsets"]))
    assert ask(cluster, metadata, names("__consumer_offsets"), 1).topics[0].is_internal


def register(cluster, number, listener="PLAINTEXT"):
    log_dir = bytes([number]) * 16
    cluster.submit(
        events.RegisterBroker(number, b"c" * 16, [Endpoint(listener, "h", 9092)], [log_dir], rack=f"r{number}")
    )
    cluster.submit(events.UnfenceBroker(number, cluster.image.brokers[number].epoch))


def test_replicas_on_fenced_brokers_are_offline():
    """Version 0 leaves them out, with an error. Fenced brokers are not listed."""
    cluster = Cluster()
    register(cluster, 2)
    create(cluster, topic("a", -1, -1, [(0, [1, 2])]))
    assert [broker.rack for broker in ask(cluster, metadata, names("a"), 1).brokers] == [None, "r2"]
    change = messages.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=cluster.image.brokers[2].epoch, fenced=1)
    cluster.image.apply(record_codec.record(change))
    answer = ask(cluster, metadata, names("a"), 12)
    assert [broker.node_id for broker in answer.brokers] == [1]
    (part,) = answer.topics[0].partitions
    assert (part.error_code, part.replica_nodes, part.offline_replicas) == (0, [1, 2], [2])
    (part,) = ask(cluster, metadata, names("a"), 0).topics[0].partitions
    assert (part.error_code, part.replica_nodes) == (errors.REPLICA_NOT_AVAILABLE, [1])


def test_unreachable_leaders_have_errors():
    """No leader is LEADER_NOT_AVAILABLE. From version 6 a leader without the caller's listener is
    LISTENER_NOT_FOUND."""
    cluster = Cluster()
    register(cluster, 2, "OTHER")
    create(cluster, topic("a", -1, -1, [(0, [2])]))
    for version, code in ((5, errors.LEADER_NOT_AVAILABLE), (6, errors.LISTENER_NOT_FOUND)):
        (part,) = ask(cluster, metadata, names("a"), version).topics[0].partitions
        assert (part.error_code, part.leader_id, part.replica_nodes) == (code, -1, [2])
    change = messages.PartitionChangeRecord(partition_id=0, topic_id=cluster.image.topics["a"].id, leader=-1)
    cluster.image.apply(record_codec.record(change))
    (part,) = ask(cluster, metadata, names("a"), 12).topics[0].partitions
    assert (part.error_code, part.leader_id) == (errors.LEADER_NOT_AVAILABLE, -1)


def test_without_a_live_broker_there_is_no_controller():
    cluster = Cluster()
    cluster.image.brokers[1].fenced = True
    answer = ask(cluster, metadata, Request(topics=[]), 12)
    assert (answer.brokers, answer.controller_id) == ([], -1)


def test_cached_rows_follow_the_image(cluster):
    """A row is built once. New partitions, a new leader and a changed broker build it anew. Each version has its
    own."""

    def shown(version=12):
        return ask(cluster, metadata, names("a"), version).topics[0]

    assert len(shown().partitions) == 2
    kept = cluster.image.topics["a"].described
    shown(13)
    assert cluster.image.topics["a"].described is kept
    part = messages.CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=3, assignments=None)
    cluster.submit(events.CreatePartitions("t", [part]))
    assert len(shown().partitions) == 3
    change = messages.PartitionChangeRecord(partition_id=0, topic_id=cluster.image.topics["a"].id, leader=1)
    cluster.image.apply(record_codec.record(change))
    assert shown().partitions[0].leader_epoch == 1
    fence = messages.BrokerRegistrationChangeRecord(broker_id=1, fenced=1)
    cluster.image.apply(record_codec.record(fence))
    assert shown().partitions[0].offline_replicas == [1]
    assert shown(0).partitions[0].replica_nodes == []
    assert shown(1).partitions[0].replica_nodes == [1]


def test_every_name_is_a_step_of_serving_and_encoding():
    """In one step a hundred thousand names would hold the loop for a tenth of a second."""
    asked = [Request.MetadataRequestTopic(name=f"unknown-{number}") for number in range(50)]
    ctx = FakeContext(Cluster(), 12, set())
    assert sum(1 for _ in metadata.handle(ctx, Request(topics=asked, allow_auto_topic_creation=False))) >= 100


@pytest.mark.long
def test_many_partitions_are_quick_when_asked_again():
    """For ten thousand partitions the answer is made of cached rows, and only encoding is left."""
    cluster = Cluster()
    for number in range(2):
        create(cluster, topic(f"big{number}", 5000), describable=frozenset())
    ctx = FakeContext(cluster, 12, set())
    first = finished(metadata.handle(ctx, Request(topics=None)))
    second = finished(metadata.handle(ctx, Request(topics=None)))
    assert all(one is other for one, other in zip(first.topics, second.topics, strict=True))


def test_one_request_creates_hundreds_of_topics_turn_by_turn(tmp_path):
    """Clients ask again until the topics exist."""
    world = World(tmp_path)
    asked = names(*(f"t{number}" for number in range(100)))
    peer = world.connect()
    assert len(peer.ask(asked, 12).topics) == 100
    assert 0 < len(world.broker.image.topics) < 100
    for _ in range(10):
        world.turn()
    assert [row.error_code for row in peer.ask(asked, 12).topics] == [0] * 100
