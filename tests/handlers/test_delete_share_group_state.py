"""DeleteShareGroupState: the delivery state of share partitions goes."""

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_state_requests import ask, begin, prepared


def test_state_is_deleted_once_or_twice(world, peer):
    topic_id = prepared(world, peer)
    begin(peer, topic_id)
    row = messages.DeleteShareGroupStateRequest.PartitionData(partition=0)
    assert [each.error_code for each in ask(peer, "DeleteShareGroupState", topic_id, [row, row])] == [0, 0]
    read = messages.ReadShareGroupStateRequest.PartitionData(partition=0, leader_epoch=-1)
    assert name(ask(peer, "ReadShareGroupState", topic_id, [read])[0].error_code) == "INVALID_REQUEST"


def test_deleted_topics_need_no_request(world, peer):
    topic_id = prepared(world, peer)
    begin(peer, topic_id)
    names = [messages.DeleteTopicsRequest.DeleteTopicState(name="t")]
    peer.ask(messages.DeleteTopicsRequest(topics=names, timeout_ms=1000), 6)
    assert not any(shard.states for shard in world.broker.share_groups.states.shards())
