"""UnregisterBroker: other brokers, unknown ids, and the only broker."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import unregister_broker
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_registrations import OTHER, with_other_broker

Request = messages.UnregisterBrokerRequest


def test_another_broker_is_unregistered():
    cluster = Cluster()
    with_other_broker(cluster)
    answer = ask(cluster, unregister_broker, Request(broker_id=OTHER), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    assert OTHER not in cluster.image.brokers
    both, alone = cluster.image.topics["two"].partitions
    assert (both.leader, both.isr, alone.leader, alone.isr) == (1, (1,), -1, ())


@pytest.mark.parametrize("broker_id", [-1, 7])
def test_an_unknown_id_is_refused(broker_id):
    cluster = Cluster()
    count = len(cluster.disk.batches)
    answer = ask(cluster, unregister_broker, Request(broker_id=broker_id), 0)
    assert (answer.error_code, bool(answer.error_message)) == (errors.BROKER_ID_NOT_REGISTERED, True)
    assert len(cluster.disk.batches) == count


def test_a_caller_without_permission_is_refused():
    cluster = Cluster()
    answer = ask(cluster, unregister_broker, Request(broker_id=1), 0, denied={("Alter", "Cluster", "kafka-cluster")})
    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    assert 1 in cluster.image.brokers


def test_the_only_broker_is_hidden_until_it_starts_again(world, peer):
    """As in Kafka there is no leader and no broker in the metadata, and nothing is lost. Clients that know the broker
    may still read."""
    world.create_topic("a")
    assert peer.ask(produce("a", {0: batch(b"v")}), 9).responses[0].partition_responses[0].error_code == 0
    assert peer.ask(Request(broker_id=world.broker.node_id), 0).error_code == 0
    metadata = peer.ask(messages.MetadataRequest(topics=None), 12)
    assert metadata.brokers == []
    assert [(part.error_code, part.leader_id) for part in metadata.topics[0].partitions] == [
        (errors.LEADER_NOT_AVAILABLE, -1)
    ]
    for version in (9, 10):
        (row,) = peer.ask(produce("a", {0: batch(b"w")}), version).responses[0].partition_responses
        assert (row.error_code, row.current_leader.leader_id) == (errors.NOT_LEADER_OR_FOLLOWER, -1)
        assert row.current_leader.leader_epoch == (1 if version == 10 else -1)
    assert bytes(peer.ask(fetch("a", {0: 0}), 12).responses[0].partitions[0].records)
    assert peer.ask(messages.DescribeClusterRequest(), 1).brokers == []
    assert (
        peer.ask(messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4).error_code != 0
    )
    row = messages.CreateTopicsRequest.CreatableTopic(name="b", num_partitions=1, replication_factor=1)
    assert (
        peer.ask(messages.CreateTopicsRequest(topics=[row], timeout_ms=1000), 7).topics[0].error_code
        == errors.INVALID_REPLICATION_FACTOR
    )
    named = [messages.MetadataRequest.MetadataRequestTopic(name="new")]
    peer.ask(messages.MetadataRequest(topics=named, allow_auto_topic_creation=True), 12)
    world.stop()
    again = world.restart(seed=2)
    assert again.connect().ask(produce("a", {0: batch(b"w")}), 9).responses[0].partition_responses[0].base_offset == 1
    again.stop()
