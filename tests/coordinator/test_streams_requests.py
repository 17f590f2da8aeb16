"""What other requests may do with streams groups (KIP-1071): commits, fetches, deletions, descriptions, joins."""

from __future__ import annotations

from pykafkad.coordinator import events
from pykafkad.coordinator.streams_describe import describe
from pykafkad.coordinator.streams_group import StreamsGroup
from pykafkad.errors import name
from pykafkad.wire import messages
from tests.coordinator.streams_world import WORD_COUNT, Request, StreamsWorld, records_since


def commit(world, member_id, epoch, partition=0, topic="text", version_ok=True):
    request = messages.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[
            messages.OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    messages.OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=1
                    )
                ],
            )
        ],
    )
    token = world.token()
    world.send(events.OffsetCommit(token, request, version_ok))
    return name(world.answer(token).topics[0].partitions[0].error_code)


def test_commits_need_an_epoch_in_which_the_member_had_the_task():
    world = StreamsWorld()
    a, b = world.joined(world.member("a"), world.member("b"))
    mine, other = (int(each.owned()[0][2:]) for each in (a, b))
    assert commit(world, "a", a.epoch, mine) == "NONE"
    assert commit(world, "a", a.epoch, other) == "NONE", "in the present epoch any partition may be committed"
    assert commit(world, "a", a.epoch + 1, mine) == "STALE_MEMBER_EPOCH"
    assert commit(world, "a", -1, mine) == "STALE_MEMBER_EPOCH"
    assert commit(world, "x", a.epoch, mine) == "UNKNOWN_MEMBER_ID"
    assert commit(world, "a", a.epoch, mine, version_ok=False) == "UNSUPPORTED_VERSION"
    before = a.epoch
    world.member("c").beat()
    world.advance(2)
    a.beat()
    a.beat()
    assert a.epoch > before
    kept = int(a.owned()[0][2:])
    assert commit(world, "a", before, kept) == "NONE", "it had the task then"
    assert commit(world, "a", before, other) == "STALE_MEMBER_EPOCH"
    assert commit(world, "a", before, kept, topic="elsewhere") == "STALE_MEMBER_EPOCH"
    for member in list(world.group.members):
        world.member(member).leave()
    assert commit(world, "", -1) == "NONE"


def test_commits_in_transactions_are_checked_in_the_same_way():
    world = StreamsWorld()
    a, _ = world.joined(world.member("a"), world.member("b"))
    before = a.epoch
    world.member("c").beat()
    world.advance(2)
    a.beat()
    a.beat()
    kept = {("text", int(a.owned()[0][2:])): 5}
    other = {("text", next(number for number in range(4) if f"0_{number}" not in a.owned())): 5}
    member = {"member_id": "a"}
    assert world.commit_transactional(kept, generation=a.epoch, **member) == ["NONE"]
    assert world.commit_transactional(kept, generation=before, **member) == ["NONE"], "it had the task then"
    assert world.commit_transactional(other, generation=before, **member) == ["ILLEGAL_GENERATION"]
    assert world.commit_transactional(kept, generation=99, **member) == ["ILLEGAL_GENERATION"]
    assert world.commit_transactional(kept, generation=99, member_id="x") == ["UNKNOWN_MEMBER_ID"]
    assert world.commit_transactional(kept) == ["NONE"], "a producer from before KIP-447"


def test_fetches_deletes_and_lists():
    world = StreamsWorld()
    (a,) = world.joined(world.member("a"))
    shard, group = world.shard, world.group
    codes = [shard.check_fetch("g", *each) for each in ((None, -1), ("a", a.epoch), ("a", 1), ("x", 1))]
    assert list(map(name, codes)) == ["NONE", "NONE", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"]
    assert name(group.check_delete()) == "NON_EMPTY_GROUP" and group.is_subscribed_to("text")
    row = shard.listed()[0]
    assert (row.group_type, row.group_state, row.protocol_type) == ("streams", "Stable", "streams")
    assert name(world.answer(world.join(group="g")).error_code) == "INCONSISTENT_GROUP_PROTOCOL"
    a.leave()
    assert group.state == "Empty" and not group.is_subscribed_to("text")
    start = len(world.log)
    world.delete_group("g")
    assert records_since(world, start) == ["-TargetAssignmentMetadata", "-Metadata", "-Topology"]
    assert world.group is None and not world.replayed().groups


def test_groups_change_their_type_only_while_they_are_empty():
    world = StreamsWorld(group_initial_rebalance_delay_ms=0)
    token = world.join("", group="g")
    world.advance(1)
    assert world.member("a").beat() == "GROUP_ID_NOT_FOUND"
    world.leave(world.answer(token).member_id)
    start = len(world.log)
    (a,) = world.joined(world.member("a"), rounds=1)
    assert a.last.error_code == 0 and isinstance(world.group, StreamsGroup)
    assert world.log[start][0][:2] == b"\0\2" and world.log[start][1] is None
    assert isinstance(world.replayed().groups["g"], StreamsGroup)
    a.leave()
    token = world.join("", group="g")
    world.advance(1)
    assert world.answer(token).error_code == 0
    assert world.group.type == "classic" and world.replayed().groups["g"].type == "classic"


def test_a_group_is_described():
    world = StreamsWorld(topics=(("text", 2),))
    a = world.member("a", brings=WORD_COUNT, endpoint=("here", 80))
    a.beat(client_tags=[Request.KeyValue(key="zone", value="1")])
    row = describe(world.shard, "g")
    assert (row.group_state, row.group_epoch, row.assignment_epoch) == ("NotReady", 2, 1)
    assert [each.partitions for each in row.topology.subtopologies[1].state_changelog_topics] == [0]
    world.joined(a)
    row = describe(world.shard, "g")
    assert row.group_state == "Stable" and row.topology.subtopologies[1].state_changelog_topics[0].partitions == 2
    (member,) = row.members
    assert (member.user_endpoint.host, member.client_tags[0].key, member.topology_epoch) == ("here", "zone", 0)
    assert member.assignment == member.target_assignment and len(member.assignment.active_tasks) == 2
    assert describe(world.shard, "none").error_message == "Group none not found."
    world.join("", group="classic")
    row = describe(world.shard, "classic")
    assert (name(row.error_code), row.error_message) == ("GROUP_ID_NOT_FOUND", "Group classic is not a streams group.")
