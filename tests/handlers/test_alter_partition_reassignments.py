"""AlterPartitionReassignments over the wire."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages

Request = messages.AlterPartitionReassignmentsRequest


def alter(peer, version, *rows, **fields):
    """Request (topic, partition, replicas) for each row; returns the whole answer."""
    topics = [
        Request.ReassignableTopic(
            name=name, partitions=[Request.ReassignablePartition(partition_index=index, replicas=replicas)]
        )
        for name, index, replicas in rows
    ]
    return peer.ask(Request(topics=topics, **fields), version)


def codes(answer):
    return [row.error_code for topic in answer.responses for row in topic.partitions]


@pytest.mark.parametrize("version", [0, 1])
def test_each_partition_has_its_own_error(world, peer, version):
    world.create_topic("t")
    node = world.broker.node_id
    answer = alter(
        peer,
        version,
        ("t", 0, [node]),
        ("t", 0, None),
        ("t", 0, []),
        ("t", 1, [node]),
        ("u", 0, [node]),
        ("t", 0, [99]),
    )
    assert answer.error_code == 0 and answer.error_message is None
    assert codes(answer) == [
        errors.NONE,
        errors.NO_REASSIGNMENT_IN_PROGRESS,
        errors.INVALID_REPLICA_ASSIGNMENT,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.INVALID_REPLICA_ASSIGNMENT,
    ]


def test_a_timeout_of_zero_changes_nothing(world, peer):
    world.create_topic("t")
    answer = alter(peer, 1, ("t", 0, None), timeout_ms=0)
    assert answer.error_code == errors.REQUEST_TIMED_OUT and codes(answer) == [errors.REQUEST_TIMED_OUT]


def test_an_empty_request_has_an_empty_answer(peer):
    answer = alter(peer, 0)
    assert (answer.error_code, answer.error_message, answer.responses) == (0, "", [])
