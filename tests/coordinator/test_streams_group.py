"""Streams groups in a shard (KIP-1071): heartbeats, epochs, statuses and timers."""

from __future__ import annotations

import pytest

from pykafkad.effects import StoredRecord
from pykafkad.errors import name
from pykafkad.wire import messages
from tests.coordinator.streams_world import (
    STATEFUL,
    STATELESS,
    WORD_COUNT,
    Request,
    StreamsWorld,
    internal,
    records_since,
    subtopology,
    topology,
)

STALE, MISSING_SOURCES, WRONG_PARTITIONS, MISSING_INTERNAL, SHUTDOWN, DELAYED = range(6)


def test_a_group_waits_for_its_first_members_and_is_assigned_then():
    world = StreamsWorld()
    a, b = world.member("a"), world.member("b")
    assert a.beat() == "NONE" and a.epoch == 1 and a.codes == [DELAYED]
    assert a.last.heartbeat_interval_ms == 5_000 and a.last.active_tasks == []
    assert records_since(world, 0) == ["MemberMetadata", "Topology", "Metadata", "CurrentMemberAssignment"]
    assert b.beat() == "NONE" and b.codes == [DELAYED] and world.group.state == "Assigning"
    start = len(world.log)
    world.advance(3.1)
    assert records_since(world, start) == ["TargetAssignmentMember"] * 2 + ["TargetAssignmentMetadata"]
    assert a.beat() == b.beat() == "NONE" and a.codes == b.codes == []
    assert a.owned() + b.owned() == ["0_1", "0_3", "0_0", "0_2"]
    assert world.group.state == "Stable" and a.epoch == b.epoch == world.group.epoch == 3
    assert a.beat() == "NONE" and a.last.active_tasks is None, "the tasks are told once"


def test_a_member_that_is_alone_is_assigned_with_its_second_heartbeat():
    """The topology of a new group is held against the topics with the second heartbeat, so the timer finds none."""
    world = StreamsWorld()
    a = world.member("a")
    a.beat()
    start = len(world.log)
    world.advance(4)
    assert records_since(world, start) == []
    assert a.beat() == "NONE" and len(a.owned()) == 4
    assert records_since(world, start) == [
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]


def test_without_a_delay_the_first_heartbeat_assigns():
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=0)
    a = world.member("a")
    assert a.beat() == "NONE" and a.epoch == 2 and a.codes == [] and len(a.owned()) == 4
    b = world.member("b")
    assert b.beat() == "NONE" and b.owned() == [] and b.codes == [DELAYED], "the last target is too fresh"
    assert b.statuses == [(DELAYED, "Assignment delayed due to the configured assignment interval.")]
    world.advance(1.1)
    world.joined(a, b, rounds=4)
    assert sorted(a.owned() + b.owned()) == ["0_0", "0_1", "0_2", "0_3"] and len(b.owned()) == 2


def test_tasks_move_only_when_they_have_been_given_up():
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=0, group_streams_assignment_interval_ms=0)
    a, b = world.member("a"), world.member("b")
    a.beat()
    b.beat()
    assert b.owned() == [] and world.group.members["b"].epoch == world.group.epoch
    still = a.request()
    a.beat()
    assert len(a.owned()) == 2 and world.group.state == "Reconciling"
    b.beat()
    assert b.owned() == [], "a has not said yet that it gave them up"
    assert world.beat(still).error_code == 0
    b.beat()
    assert b.owned() == [], "a still has them"
    a.beat()
    b.beat()
    assert len(b.owned()) == 2 and a.epoch == b.epoch == world.group.epoch


def test_a_member_that_does_not_say_what_it_has_still_has_it():
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=0, group_streams_assignment_interval_ms=0)
    a, b = world.member("a"), world.member("b")
    a.beat()
    b.beat()
    a.beat()
    for _ in range(2):
        silent = a.request(active_tasks=None, standby_tasks=None, warmup_tasks=None)
        assert world.beat(silent).error_code == 0
        b.beat()
        assert b.owned() == [] and world.group.state == "Reconciling"


def test_a_member_that_does_not_give_up_its_tasks_is_removed():
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=0, group_streams_assignment_interval_ms=0)
    a, b = world.member("a"), world.member("b")
    a.beat()
    b.beat()
    stubborn = a.request()
    a.beat()
    for _ in range(7):
        world.advance(10)
        world.beat(stubborn)
        b.beat()
    assert "a" not in world.group.members
    b.beat()
    assert len(b.owned()) == 4


def test_sessions_end():
    world = StreamsWorld()
    a, b = world.joined(world.member("a"), world.member("b"))
    start = len(world.log)
    for _ in range(5):
        world.advance(10)
        b.beat()
    assert list(world.group.members) == ["b"] and len(b.owned()) == 4
    assert records_since(world, start)[:4] == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "Metadata",
    ]
    assert a.beat() == "UNKNOWN_MEMBER_ID"


def test_epochs_are_fenced():
    world = StreamsWorld()
    a, b = world.joined(world.member("a"), world.member("b"))
    assert name(world.beat(a.request(member_epoch=a.epoch + 1)).error_code) == "FENCED_MEMBER_EPOCH"
    answer = world.beat(a.request(member_epoch=2))
    assert answer.error_message == (
        "The streams group member has a smaller member epoch (2) than the one known by the group coordinator (3). "
        "The member must abandon all its partitions and rejoin."
    )
    previous = world.group.members["a"].previous_epoch
    assert previous < a.epoch
    everything = [Request.TaskIds(subtopology_id="0", partitions=[0, 1, 2, 3])]
    for kind in ("active_tasks", "standby_tasks"):
        answer = world.beat(a.request(**{"member_epoch": previous, kind: everything}))
        assert name(answer.error_code) == "FENCED_MEMBER_EPOCH", "it has what it should not have"
    assert name(world.beat(a.request(member_epoch=previous)).error_code) == "NONE", "its answer may have been lost"
    nothing = {f"{kind}_tasks": None for kind in ("active", "standby", "warmup")}
    assert name(world.beat(a.request(member_epoch=previous, **nothing)).error_code) == "FENCED_MEMBER_EPOCH"
    assert b.beat() == "NONE"


def test_unknown_groups_and_members():
    world = StreamsWorld()
    a = world.member("a")
    a.epoch = 3
    answer = world.beat(a.request())
    assert (name(answer.error_code), answer.error_message) == ("GROUP_ID_NOT_FOUND", "Streams group g not found.")
    answer = world.beat(a.request(member_epoch=-1))
    assert (name(answer.error_code), answer.error_message) == ("GROUP_ID_NOT_FOUND", "Group g not found.")
    world.joined(world.member("b"))
    assert world.beat(a.request()).error_message == "Member a is not a member of group g."
    assert name(world.beat(a.request(member_epoch=-1)).error_code) == "UNKNOWN_MEMBER_ID"


def test_a_full_group_takes_nobody_and_lets_nobody_join_again():
    world = StreamsWorld(group_streams_max_size=1)
    (a,) = world.joined(world.member("a"))
    answer = world.beat(world.member("b").request())
    text = "The streams group has reached its maximum capacity of 1 members."
    assert (name(answer.error_code), answer.error_message) == ("GROUP_MAX_SIZE_REACHED", text)
    assert a.beat() == "NONE"
    a.epoch = 0
    assert a.beat() == "GROUP_MAX_SIZE_REACHED"


def test_requests_that_kafka_refuses_whatever_the_group_is_like():
    world = StreamsWorld()
    a = world.member("a")
    changelog = topology(subtopology(0, sources=["text"], changelogs=[internal("c", partitions=3)]))
    pattern = topology(subtopology(0))
    pattern.subtopologies[0].source_topic_regex = ["t.*"]
    task = [Request.TaskIds(subtopology_id="0", partitions=[0])]
    cases = (
        ({"instance_id": "i", "member_id": ""}, "Static membership is not yet supported."),
        ({"task_offsets": []}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": []}, "TaskEndOffsets are not supported yet."),
        ({"warmup_tasks": task}, "WarmupTasks are not supported yet."),
        ({"topology": pattern}, "Regular expressions for source topics are not supported yet."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": task}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": task}, "StandbyTasks must be empty when (re-)joining."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        (
            {"member_epoch": 3, "topology": None, "active_tasks": None},
            "If one task-type is non-null, all must be non-null.",
        ),
        ({"member_epoch": 3}, "Topology can only be provided when (re-)joining."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
    )
    for changes, text in cases:
        answer = world.beat(a.request(**changes))
        assert (name(answer.error_code), answer.error_message) == ("INVALID_REQUEST", text)
    answer = world.beat(a.request(topology=changelog))
    assert name(answer.error_code) == "STREAMS_INVALID_TOPOLOGY"
    assert answer.error_message == "Changelog topic c must have an undefined partition count, but it is set to 3."
    assert not world.shard.groups


def test_topologies_are_taken_once():
    world = StreamsWorld(topics=(("text", 2), ("g-store-changelog", 2)))
    a = world.member("a", brings=topology(*STATELESS.subtopologies, epoch=1))
    world.joined(a)
    assert a.beat() == "NONE"
    old, other = world.member("old"), world.member("other", brings=STATEFUL)
    assert old.beat() == "NONE"
    text = "The member's topology epoch 0 is behind the group's topology epoch 1."
    assert (STALE, text) in old.statuses
    other.topology = topology(*STATEFUL.subtopologies, epoch=1)
    answer = world.beat(other.request())
    text = "Topology updates are not supported yet."
    assert (name(answer.error_code), answer.error_message) == ("INVALID_REQUEST", text)
    newer = world.member("newer", brings=topology(*STATELESS.subtopologies, epoch=2))
    assert newer.beat() == "INVALID_REQUEST"
    for wrong in (topology(*STATELESS.subtopologies, epoch=-1), topology(*STATELESS.subtopologies * 2, epoch=1)):
        assert world.member("x", brings=wrong).beat() == "UNKNOWN_SERVER_ERROR"
    assert set(world.group.members) == {"a", "old"}


def test_members_may_only_name_tasks_that_there_are():
    world = StreamsWorld()
    (a,) = world.joined(world.member("a"))
    wrong = [Request.TaskIds(subtopology_id="0", partitions=[4])]
    answer = world.beat(a.request(active_tasks=wrong))
    text = "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"
    assert (name(answer.error_code), answer.error_message) == ("INVALID_REQUEST", text)
    answer = world.beat(a.request(standby_tasks=[Request.TaskIds(subtopology_id="7", partitions=[0])]))
    assert answer.error_message == "Subtopology 7 does not exist in the topology."
    assert name(world.beat(a.request(active_tasks=a.rows("active") * 2)).error_code) == "NONE"


def test_internal_topics_are_asked_for_until_they_exist():
    world = StreamsWorld(topics=(("text", 3),))
    a = world.member("a", brings=WORD_COUNT)
    for _ in range(2):
        a.beat()
        text = "Internal topics are missing: g-words-repartition, g-counts-changelog"
        assert (MISSING_INTERNAL, text) in a.statuses
        assert set(world.asked) == {"g-words-repartition", "g-counts-changelog"}
        world.asked.pop("g-words-repartition")
    assert world.group.state == "NotReady" and world.group.validated_epoch == -1
    changelog = world.asked["g-counts-changelog"]
    assert (changelog.num_partitions, changelog.replication_factor) == (3, -1)
    assert [(each.name, each.value) for each in changelog.configs] == [("cleanup.policy", "compact")]
    a.beat()
    world.create_asked()
    world.advance(4)
    a.beat()
    assert a.statuses == [] and len(a.owned()) == 6 and world.group.validated_epoch == 0


def test_topics_that_change_lead_to_a_new_assignment():
    world = StreamsWorld()
    (a,) = world.joined(world.member("a"))
    epoch = world.group.epoch
    world.set_topic("elsewhere", 3)
    a.beat()
    assert world.group.epoch == epoch
    world.set_topic("text", 6)
    a.beat()
    assert world.group.epoch == epoch + 1 and len(a.owned()) == 6
    world.set_topic("text", None)
    world.advance(2)
    a.forget()
    a.beat(member_epoch=world.group.epoch, topology=None)
    assert a.statuses == [(MISSING_SOURCES, "Source topics text are missing.")]
    assert world.group.state == "NotReady" and a.owned() == []
    assert world.group.targets["a"].active == {}


def test_standby_tasks_follow_the_setting_of_the_group():
    world = StreamsWorld()
    a, b = world.member("a", brings=STATEFUL), world.member("b", brings=STATEFUL)
    world.joined(a, b)
    assert a.owned("standby") == [] and world.group.assignment_configs == {"num.standby.replicas": "0"}
    world.metadata.group_configs["g"] = {"streams.num.standby.replicas": "1"}
    world.joined(a, b)
    assert a.owned("standby") == b.owned() and b.owned("standby") == a.owned()
    world.metadata.group_configs["g"] = {"streams.num.standby.replicas": "9"}
    world.joined(a, b)
    assert world.group.assignment_configs == {"num.standby.replicas": "2"}, "no more than the broker allows"


def test_a_standby_copy_becomes_active_where_it_is():
    world = StreamsWorld(group_streams_num_standby_replicas=1)
    a, b, c = (world.member(each, brings=STATEFUL) for each in "abc")
    world.joined(a, b, c)
    gone, copies = a.owned(), {each.member_id: each.owned("standby") for each in (b, c)}
    a.leave()
    world.joined(b, c)
    for task in gone:
        (holder,) = [each for each in (b, c) if task in copies[each.member_id]]
        assert task in holder.owned() or len(holder.owned()) == 2


def test_the_application_is_shut_down_for_all():
    world = StreamsWorld()
    a, b = world.joined(world.member("a"), world.member("b"))
    assert a.leave(shutdown_application=True) == "NONE"
    b.beat()
    text = "Streams group member a encountered a fatal error and requested a shutdown for the entire application."
    assert (SHUTDOWN, text) in b.statuses
    b.leave()
    c = world.member("c")
    c.beat()
    assert SHUTDOWN not in c.codes, "the request ends with the last member"
    c.beat(shutdown_application=True)
    assert SHUTDOWN in c.codes


def test_endpoints_are_told_when_they_change():
    world = StreamsWorld(topics=(("text", 2), ("small", 1)))
    both = topology(subtopology(0, sources=["text", "small"]))
    a = world.member("a", brings=both, endpoint=("one", 80))
    b = world.member("b", brings=both, endpoint=("two", 81))
    world.joined(a, b)
    a.endpoint_epoch = -1
    a.beat()
    rows = {
        (row.user_endpoint.host, row.user_endpoint.port): {
            topic.topic: topic.partitions for topic in row.active_partitions
        }
        for row in a.last.partitions_by_user_endpoint
    }
    assert sorted(rows) == [("one", 80), ("two", 81)]
    assert sorted(rows.values(), key=len) == [{"text": [1]}, {"small": [0], "text": [0]}]
    assert a.last.partitions_by_user_endpoint[-1].user_endpoint.host == "one"
    a.beat()
    assert a.last.partitions_by_user_endpoint is None and a.endpoint_epoch == world.group.endpoint_epoch > 0


def test_deadlines_last_beyond_a_restart():
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=0, group_streams_assignment_interval_ms=0)
    a, b = world.member("a"), world.member("b")
    a.beat()
    b.beat()
    a.beat()
    world.restart()
    world.advance(44)
    b.beat()
    assert set(world.group.members) == {"a", "b"}
    world.advance(2)
    assert set(world.group.members) == {"b"}


@pytest.mark.parametrize("owned", [True, False])
def test_a_state_of_a_later_version_makes_the_member_begin_anew(owned):
    world = StreamsWorld()
    (a,) = world.joined(world.member("a"))
    member = world.group.members["a"]
    value = messages.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch, previous_member_epoch=member.previous_epoch, state=9
    )
    key = messages.StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    world.shard.apply(StoredRecord(key, value))
    if not owned:
        a.tasks["active"] = {}
    assert a.beat() == ("FENCED_MEMBER_EPOCH" if owned else "NONE")
    assert len(a.owned()) == (0 if owned else 4)


def test_tasks_of_records_without_epochs_have_the_member_s():
    world = StreamsWorld()
    cls = messages.StreamsGroupCurrentMemberAssignmentValue
    key = messages.StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    value = cls(
        member_epoch=5,
        previous_member_epoch=4,
        state=1,
        active_tasks=[cls.TaskIds(subtopology_id="0", partitions=[1, 2], assignment_epochs=[])],
    )
    world.shard.apply(StoredRecord(key, value))
    assert world.group.members["a"].assigned.active == {"0": {1: 5, 2: 5}}
