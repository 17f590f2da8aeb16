"""ShareGroupHeartbeat: members of share groups over a whole broker."""

import pytest

from pykafkad.errors import name
from tests.handlers.share_requests import Share

OTHER = "22222222-2222-2222-2222-222222222222"


def test_members_share_the_partitions(world):
    one = Share(world, partitions=3).join()
    assert list(one.assigned.values()) == [[0, 1, 2]]
    two = Share(world, OTHER, topic_id=one.topic_id)
    assert two.heartbeat(["t"]).error_code == 0
    for _ in range(4):
        world.advance(1)
        one.heartbeat()
        two.heartbeat()
    shares = [set(*each.assigned.values()) for each in (one, two)]
    assert set.union(*shares) == {0, 1, 2} and {len(each) for each in shares} <= {1, 2}
    assert one.epoch == two.epoch


def test_a_member_leaves_or_is_lost(world):
    one = Share(world).join()
    two = Share(world, OTHER, topic_id=one.topic_id)
    two.heartbeat(["t"])
    epoch = two.heartbeat().member_epoch
    assert two.heartbeat(member_epoch=-1).member_epoch == -1
    assert name(two.heartbeat(member_epoch=epoch).error_code) == "UNKNOWN_MEMBER_ID"
    world.advance(46, 5)
    assert name(one.heartbeat().error_code) == "UNKNOWN_MEMBER_ID"


def test_topics_that_come_later_are_assigned(world):
    one = Share(world).find()
    one.heartbeat(["t", "later"])
    topic_id = world.create_topic("later", 2)
    for _ in range(6):
        world.advance(1)
        one.heartbeat()
    assert sorted(one.assigned[topic_id]) == [0, 1] and one.assigned[one.topic_id] == [0]


BAD = [
    ({"member_id": ""}, "INVALID_REQUEST", None),
    ({"member_id": "x" * 37}, "INVALID_REQUEST", None),
    ({"member_id": " "}, "INVALID_REQUEST", "MemberId can't be empty."),
    ({"group_id": " "}, "INVALID_REQUEST", "GroupId can't be empty."),
    ({"rack_id": ""}, "INVALID_REQUEST", "RackId can't be empty."),
    ({"subscribed_topic_names": None}, "INVALID_REQUEST", "SubscribedTopicNames must be set in first request."),
    ({"member_epoch": -2}, "INVALID_REQUEST", "MemberEpoch is invalid."),
    ({"member_epoch": 1}, "GROUP_ID_NOT_FOUND", "Share group g not found."),
    ({"member_epoch": -1}, "GROUP_ID_NOT_FOUND", "Group g not found."),
]


@pytest.mark.parametrize(("fields", "error", "text"), BAD)
def test_bad_heartbeats(world, fields, error, text):
    share = Share(world).find()
    answer = share.heartbeat(**{"topics": ["t"], **fields} if "subscribed_topic_names" not in fields else {})
    assert (name(answer.error_code), answer.error_message) == (error, text)


def test_wrong_epochs_are_fenced(world):
    share = Share(world).join()
    for epoch in (share.epoch + 1, share.epoch - 2):
        assert name(share.heartbeat(member_epoch=epoch).error_code) == "FENCED_MEMBER_EPOCH"
    assert share.heartbeat(member_epoch=share.epoch - 1).error_code == 0


def test_a_group_survives_a_restart(world):
    share = Share(world).join()
    world.stop()
    again = world.restart()
    share.world, share.peer = again, again.connect()
    share.find()
    assert share.heartbeat(["t"]).error_code == 0
    assert list(share.assigned.values()) == [[0]]
