"""ShareGroupDescribe: epochs, members and assignments."""

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_requests import MEMBER, Share


def test_groups_are_described(world):
    share = Share(world).join()
    request = messages.ShareGroupDescribeRequest(group_ids=["g", "none", ""], include_authorized_operations=True)
    found, missing, nobodys = share.peer.ask(request, 1).groups
    assert (found.group_state, found.assignor_name, found.group_epoch) == ("Stable", "simple", share.epoch)
    (member,) = found.members
    assert (member.member_id, member.subscribed_topic_names) == (MEMBER, ["t"])
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [("t", [0])]
    assert found.authorized_operations > 0
    assert (name(nobodys.error_code), nobodys.error_message) == ("INVALID_GROUP_ID", None)
    assert (name(missing.error_code), missing.error_message) == ("GROUP_ID_NOT_FOUND", "Group none not found.")
    share.heartbeat(member_epoch=-1)
    assert share.peer.ask(request, 1).groups[0].group_state == "Empty"
