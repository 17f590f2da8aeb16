"""StreamsGroupDescribe: state, topology and members."""

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.streams_requests import MEMBER, Request, Streams, stored
from tests.simulation.world import World


def ask(peer, *group_ids, **fields):
    return peer.ask(messages.StreamsGroupDescribeRequest(group_ids=list(group_ids), **fields), 0).groups


def test_groups_are_described(world):
    streams = Streams(world, made=stored("g-changelog", cleanup_policy="compact")).find()
    streams.heartbeat(user_endpoint=Request.Endpoint(host="h", port=7), rack_id="r")
    assert ask(streams.peer, "g")[0].group_state == "NotReady"
    streams.join()
    (found,) = ask(streams.peer, "g", include_authorized_operations=True)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", streams.epoch, streams.epoch)
    (part,) = found.topology.subtopologies
    (changelog,) = part.state_changelog_topics
    assert (part.subtopology_id, part.source_topics) == ("0", ["t"])
    assert (changelog.name, changelog.partitions) == ("g-changelog", 2)
    assert [(each.key, each.value) for each in changelog.topic_configs] == [("cleanup.policy", "compact")]
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.process_id) == (MEMBER, streams.epoch, f"p-{MEMBER}")
    assert (member.user_endpoint.host, member.user_endpoint.port, member.rack_id) == ("h", 7, "r")
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.subtopology_id, sorted(each.partitions)) for each in assignment.active_tasks] == [("0", [0, 1])]
    assert found.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    streams.heartbeat(member_epoch=-1)
    assert ask(streams.peer, "g")[0].group_state == "Empty"


def test_groups_that_are_not_shown(world):
    streams = Streams(world).find()
    row = messages.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[row])
    streams.peer.ask(messages.OffsetCommitRequest(group_id="classic", topics=[topic]), 8)
    rows = ask(streams.peer, "none", "classic", "")
    assert [(name(row.error_code), row.error_message) for row in rows] == [
        ("GROUP_ID_NOT_FOUND", "Group none not found."),
        ("GROUP_ID_NOT_FOUND", "Group classic is not a streams group."),
        ("INVALID_GROUP_ID", None),
    ]


class Authorizer:
    """Denies what the test says."""

    denied = ()

    def authorize(self, principal, client_address, operation, resource_type, resource_name):
        return (operation, resource_type, resource_name) not in self.denied


def test_groups_and_topics_that_the_caller_may_not_see(tmp_path):
    """Internal topics count as the others do."""
    authorizer = Authorizer()
    world = World(tmp_path / "data", authorizer=authorizer)
    Streams(world, made=stored("g-changelog")).join()
    for topic in ("t", "g-changelog"):
        authorizer.denied = (("Describe", "Topic", topic),)
        (row,) = ask(world.connect(), "g")
        assert (name(row.error_code), row.topology, row.members) == ("TOPIC_AUTHORIZATION_FAILED", None, [])
        assert row.error_message == "The described group uses topics that the client is not authorized to describe."
    authorizer.denied = (("Describe", "Group", "g"),)
    rows = ask(world.connect(), "none", "g")
    assert [(row.group_id, name(row.error_code)) for row in rows] == [
        ("g", "GROUP_AUTHORIZATION_FAILED"),
        ("none", "GROUP_ID_NOT_FOUND"),
    ]
