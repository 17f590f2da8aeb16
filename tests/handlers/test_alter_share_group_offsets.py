"""AlterShareGroupOffsets: start offsets of a group without members."""

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_requests import Share, acquired
from tests.handlers.test_describe_share_group_offsets import describe


def alter(peer, group="g", topic="t", **offsets):
    request = messages.AlterShareGroupOffsetsRequest
    rows = [
        request.AlterShareGroupOffsetsRequestPartition(partition_index=int(index[1:]), start_offset=offset)
        for index, offset in offsets.items()
    ]
    topics = [request.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=rows)]
    return peer.ask(request(group_id=group, topics=topics), 0)


def test_offsets_are_set_before_the_group_begins(world):
    share = Share(world).find().produce(b"a").produce(b"b").produce(b"c")
    answer = settled(world, share, lambda: alter(share.peer, _0=1, _5=1))
    rows = [(each.partition_index, name(each.error_code)) for each in answer.responses[0].partitions]
    assert rows == [(0, "NONE"), (5, "UNKNOWN_TOPIC_OR_PARTITION")]
    assert describe(share.peer) == {("t", 0): (1, 2)}
    share.join()
    share.fetch(max_wait_ms=100)
    world.turn()
    assert acquired(share.peer.answers[-1]) == [(1, 2, 1)]


def settled(world, share, ask):
    """The answer, for which the topic of the share coordinator may have to be made."""
    before = len(share.peer.answers)
    ask()
    for _ in range(20):
        if len(share.peer.answers) > before:
            return share.peer.answers[-1]
        world.advance(0.2)
    raise AssertionError("no answer")


def test_groups_with_members_and_unknown_topics(world):
    share = Share(world).join()
    assert name(alter(share.peer, _0=1).error_code) == "NON_EMPTY_GROUP"
    assert name(alter(share.peer, group="", _0=1).error_code) == "INVALID_GROUP_ID"
    other = Share(world, group="h", topic_id=share.topic_id).find()
    answer = alter(other.peer, group="h", topic="none", _0=1)
    assert [name(each.error_code) for each in answer.responses[0].partitions] == ["UNKNOWN_TOPIC_OR_PARTITION"]
