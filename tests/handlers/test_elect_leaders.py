"""ElectLeaders over the wire."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages

Request = messages.ElectLeadersRequest


def asked(*rows):
    return [Request.TopicPartitions(topic=name, partitions=indexes) for name, indexes in rows]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_led_partition_needs_no_election(world, peer, version):
    world.create_topic("t")
    answer = peer.ask(Request(topic_partitions=asked(("t", [0, 3]), ("u", [0]))), version)
    rows = [row.error_code for topic in answer.replica_election_results for row in topic.partition_result]
    assert rows == [errors.ELECTION_NOT_NEEDED, errors.UNKNOWN_TOPIC_OR_PARTITION, errors.UNKNOWN_TOPIC_OR_PARTITION]
    (topic,) = peer.ask(Request(topic_partitions=None), version).replica_election_results
    assert (topic.topic, topic.partition_result) == ("t", [])
    assert peer.ask(Request(topic_partitions=[]), version).replica_election_results == []


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_timeout_of_zero_changes_nothing(world, peer, version):
    world.create_topic("t")
    answer = peer.ask(Request(topic_partitions=asked(("t", [0])), timeout_ms=-1), version)
    assert answer.error_code == (errors.REQUEST_TIMED_OUT if version else 0)
    assert answer.replica_election_results[0].partition_result[0].error_code == errors.REQUEST_TIMED_OUT


def test_an_unknown_election_type_is_refused(world, peer):
    world.create_topic("t")
    answer = peer.ask(Request(election_type=2, topic_partitions=asked(("t", [0]))), 1)
    assert answer.error_code == errors.INVALID_REQUEST
    assert answer.replica_election_results[0].partition_result[0].error_code == errors.INVALID_REQUEST


def test_a_partition_without_a_leader_gets_one(world, peer):
    world.create_topic("t")
    world.broker.image.partition("t", 0).leader = -1
    answer = peer.ask(Request(election_type=1, topic_partitions=asked(("t", [0]))), 2)
    assert answer.replica_election_results[0].partition_result[0].error_code == errors.NONE
    assert world.broker.image.partition("t", 0).leader == world.broker.node_id
    world.stop()
    assert world.restart().broker.image.partition("t", 0).leader == world.broker.node_id
