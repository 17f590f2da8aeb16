"""ReadShareGroupState: the leader of a partition takes the delivery state over."""

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_state_requests import ask, begin, prepared


def read(peer, topic_id, leader_epoch=-1, **options):
    row = messages.ReadShareGroupStateRequest.PartitionData(partition=0, leader_epoch=leader_epoch)
    return ask(peer, "ReadShareGroupState", topic_id, [row], **options)


def test_the_state_is_read_and_survives_a_restart(world, peer):
    topic_id = prepared(world, peer)
    assert "uninitialized" in read(peer, topic_id)[0].error_message
    begin(peer, topic_id, 7)
    (row,) = read(peer, topic_id, 3)
    assert (row.error_code, row.start_offset, row.state_epoch) == (0, 7, 1)
    assert name(read(peer, topic_id, 2)[0].error_code) == "FENCED_LEADER_EPOCH"
    world.stop()
    again = world.restart()
    peer = again.connect()
    for _ in range(10):
        again.turn()
    assert read(peer, topic_id)[0].start_offset == 7
    assert name(read(peer, topic_id, 2)[0].error_code) == "FENCED_LEADER_EPOCH"
    assert again.runtime.metrics.unexpected_errors == 0


def test_empty_requests(world, peer):
    topic_id = prepared(world, peer)
    assert read(peer, topic_id, group="") == []
    assert ask(peer, "ReadShareGroupState", topic_id, []) == []
