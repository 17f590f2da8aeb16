"""OffsetForLeaderEpoch: where an epoch ended."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce


def ask(peer, version, topic, *partitions):
    """`partitions` are tuples (index, current leader epoch, requested epoch)."""
    request = messages.OffsetForLeaderEpochRequest
    rows = [
        request.OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        for index, current, epoch in partitions
    ]
    answer = peer.ask(request(topics=[request.OffsetForLeaderTopic(topic=topic, partitions=rows)]), version)
    return [(row.partition, row.error_code, row.leader_epoch, row.end_offset) for row in answer.topics[0].partitions]


@pytest.fixture
def topic(world, peer):
    world.create_topic("t", 2)
    peer.ask(produce("t", {0: batch(b"x", b"y", b"z")}), 8)
    return "t"


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_current_epoch_ends_where_the_log_does(peer, topic, version):
    assert ask(peer, version, topic, (0, -1, 0), (1, 0, 0)) == [(0, 0, 0, 3), (1, 0, 0, 0)]


def test_a_later_epoch_is_not_an_error(peer, topic):
    assert ask(peer, 4, topic, (0, -1, 5), (1, -1, -1)) == [(0, 0, -1, -1), (1, 0, -1, -1)]


def test_errors_stand_on_their_partition(peer, topic):
    assert ask(peer, 4, topic, (0, 1, 0), (9, -1, 0)) == [
        (0, errors.UNKNOWN_LEADER_EPOCH, -1, -1),
        (9, errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]


def test_only_minus_one_means_no_epoch(peer, topic):
    """Other negative numbers are epochs before all others."""
    assert ask(peer, 4, topic, (0, -2, 0), (1, -1, -2)) == [(0, errors.FENCED_LEADER_EPOCH, -1, -1), (1, 0, -2, 0)]
    assert ask(peer, 4, topic, (0, -1, -2)) == [(0, 0, -2, 0)]
