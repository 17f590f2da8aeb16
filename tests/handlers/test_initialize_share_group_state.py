"""InitializeShareGroupState: the delivery state of share partitions begins."""

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_state_requests import ask, begin, prepared


def test_state_begins_and_begins_anew(world, peer):
    topic_id = prepared(world, peer)
    assert begin(peer, topic_id).error_code == 0
    assert begin(peer, topic_id, state_epoch=3).error_code == 0
    assert name(begin(peer, topic_id, state_epoch=2).error_code) == "FENCED_STATE_EPOCH"
    assert name(begin(peer, topic_id, partition=2).error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name(begin(peer, topic_id, partition=-1).error_code) == "INVALID_REQUEST"
    assert name(begin(peer, bytes(range(16))).error_code) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_a_request_without_group_or_topics_has_an_empty_answer(world, peer):
    topic_id = prepared(world, peer)
    row = messages.InitializeShareGroupStateRequest.PartitionData(partition=0)
    assert ask(peer, "InitializeShareGroupState", topic_id, [row], group="") == []
    assert ask(peer, "InitializeShareGroupState", topic_id, []) == []
    assert peer.ask(messages.InitializeShareGroupStateRequest(group_id="g", topics=[]), 0).results == []


def test_without_the_topic_nobody_coordinates(world, peer):
    topic_id = world.create_topic("t")
    row = begin(peer, topic_id)
    assert name(row.error_code) == "NOT_COORDINATOR"
    assert row.error_message.startswith("Unable to initialize share group state: ")
