"""DeleteShareGroupOffsets: the delivery state of topics goes."""

from pykafkad.effects import DELETE_STATE, AskShareState
from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_requests import Share
from tests.handlers.test_describe_share_group_offsets import describe


def delete(peer, *topics, group="g"):
    request = messages.DeleteShareGroupOffsetsRequest
    rows = [request.DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in topics]
    return peer.ask(request(group_id=group, topics=rows), 0)


def test_offsets_are_deleted(world):
    share = Share(world).join()
    assert name(delete(share.peer, "t").error_code) == "NON_EMPTY_GROUP"
    assert share.heartbeat(member_epoch=-1).error_code == 0
    answer = delete(share.peer, "t", "none")
    assert sorted((row.topic_name, name(row.error_code)) for row in answer.responses) == [
        ("none", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("t", "NONE"),
    ]
    assert describe(share.peer) == {}
    (row,) = delete(share.peer, "t").responses
    assert row.error_message == "There is no offset information to delete."


def test_unknown_groups(world):
    share = Share(world).find()
    assert name(delete(share.peer, "t").error_code) == "GROUP_ID_NOT_FOUND"
    assert name(delete(share.peer, "t", group="").error_code) == "INVALID_GROUP_ID"


def test_a_deleted_group_leaves_no_state(world):
    share = Share(world).join()
    share.heartbeat(member_epoch=-1)
    answer = share.peer.ask(messages.DeleteGroupsRequest(groups_names=["g"]), 2)
    assert answer.results[0].error_code == 0
    world.turn()
    assert not any(shard.states for shard in world.broker.share_groups.states.shards())


def test_a_topic_without_partitions_has_no_state_to_wait_for(world):
    """Kafka may write such a record: DeleteGroups would never be answered."""
    told = []
    world.broker.share_groups.ask(AskShareState(DELETE_STATE, "g", {bytes(16): {}}, 0, dict), told.append)
    assert told == [{}]
