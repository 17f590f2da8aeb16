"""StreamsGroupHeartbeat: members of streams groups over a whole broker, and the internal topics that they get."""

import pytest

from pykafkad.errors import name
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.wire import messages
from tests.handlers.streams_requests import (
    OTHER,
    Request,
    Streams,
    info,
    one_topic,
    statuses,
    stored,
    subtopology,
    topology,
)
from tests.simulation.world import World

MISSING_SOURCE_TOPICS, MISSING_INTERNAL_TOPICS, SHUTDOWN = 1, 3, 4


def test_members_share_the_tasks(world):
    one = Streams(world, partitions=4).join()
    assert one.tasks() == ["0_0", "0_1", "0_2", "0_3"]
    two = Streams(world, OTHER)
    for _ in range(4):
        two.heartbeat()
        world.advance(1.5)
        one.heartbeat()
    assert (len(one.tasks()), len(two.tasks())) == (2, 2) and one.epoch == two.epoch
    assert two.heartbeat(member_epoch=-1).member_epoch == -1
    for _ in range(3):
        world.advance(1.5)
        one.heartbeat()
    assert len(one.tasks()) == 4
    assert name(two.heartbeat().error_code) == "UNKNOWN_MEMBER_ID"


def test_a_lost_member_is_removed(world):
    one = Streams(world).join()
    world.advance(46, 5)
    assert name(one.heartbeat().error_code) == "UNKNOWN_MEMBER_ID"


def test_a_group_survives_a_restart(world):
    one = Streams(world).join()
    epoch = one.epoch
    world.stop()
    again = world.restart()
    one.world, one.peer = again, again.connect()
    one.find()
    assert one.heartbeat().error_code == 0 and one.epoch == epoch
    assert one.tasks() == ["0_0", "0_1"]


def test_source_topics_that_come_later(world):
    one = Streams(world, made=one_topic("t", "later")).find()
    assert MISSING_SOURCE_TOPICS in statuses(one.heartbeat())
    world.create_topic("later", 3)
    assert one.join().tasks() == ["0_0", "0_1", "0_2"]


def test_internal_topics_are_created(world):
    made = topology(
        subtopology(0, "t", repartition_sink_topics=["g-repartition"]),
        subtopology(
            1,
            repartition_source_topics=[info("g-repartition", cleanup_policy="delete", segment_bytes="52428800")],
            state_changelog_topics=[info("g-changelog", cleanup_policy="compact")],
        ),
    )
    one = Streams(world, made=made, partitions=3).find()
    assert "g-changelog" in statuses(one.heartbeat())[MISSING_INTERNAL_TOPICS]
    world.turn()
    image = world.broker.image
    assert {len(image.topics[each].partitions) for each in ("g-repartition", "g-changelog")} == {3}
    assert image.configs(TYPE_TOPIC, "g-changelog") == {"cleanup.policy": "compact"}
    assert image.configs(TYPE_TOPIC, "g-repartition") == {"cleanup.policy": "delete", "segment.bytes": "52428800"}
    assert len(one.join().tasks()) == 6


def test_a_failed_creation_is_told_and_tried_again_later(world):
    """The reason stands in the status for two heartbeat intervals."""
    one = Streams(world, made=stored("g-changelog", replication_factor=3)).find()
    one.heartbeat()
    world.turn()
    detail = statuses(one.heartbeat())[MISSING_INTERNAL_TOPICS]
    assert "; Creation failed: g-changelog (Unable to replicate the partition 3 time(s)" in detail
    world.advance(10.1)
    assert not world.broker.internal_topics.failures(["g-changelog"])
    one.heartbeat()
    world.turn()
    assert world.broker.internal_topics.failures(["g-changelog"])


class Authorizer:
    """Allows all but the creation of changelogs."""

    def authorize(self, principal, client_address, operation, resource_type, resource_name):
        return operation != "Create" or resource_name in ("t", "__consumer_offsets")


def test_only_who_may_create_topics_has_internal_topics_created(tmp_path):
    world = World(tmp_path / "data", authorizer=Authorizer())
    one = Streams(world, made=stored("g-changelog")).find()
    detail = statuses(one.heartbeat())[MISSING_INTERNAL_TOPICS]
    assert detail.endswith("; Unauthorized to CREATE on topics g-changelog.")
    world.turn()
    assert "g-changelog" not in world.broker.image.topics


def test_one_member_shuts_the_application_down(world):
    one, two = Streams(world), Streams(world, OTHER)
    one.join()
    two.heartbeat()
    assert SHUTDOWN in statuses(two.heartbeat(shutdown_application=True))
    assert OTHER in statuses(one.heartbeat())[SHUTDOWN]


def task(subtopology_id="0", partition=0):
    return [Request.TaskIds(subtopology_id=subtopology_id, partitions=[partition])]


INVALID = "INVALID_REQUEST"
BAD = [
    ({"member_id": ""}, INVALID, "MemberId can't be empty."),
    ({"group_id": " "}, INVALID, "GroupId can't be empty."),
    ({"rack_id": ""}, INVALID, "RackId can't be empty."),
    ({"instance_id": "i"}, INVALID, "Static membership is not yet supported."),
    ({"task_offsets": []}, INVALID, "TaskOffsets are not supported yet."),
    ({"task_end_offsets": []}, INVALID, "TaskEndOffsets are not supported yet."),
    ({"warmup_tasks": task()}, INVALID, "WarmupTasks are not supported yet."),
    ({"rebalance_timeout_ms": -1}, INVALID, "RebalanceTimeoutMs must be provided in first request."),
    ({"active_tasks": task()}, INVALID, "ActiveTasks must be empty when (re-)joining."),
    ({"active_tasks": None}, INVALID, "ActiveTasks must be empty when (re-)joining."),
    ({"standby_tasks": None}, INVALID, "StandbyTasks must be empty when (re-)joining."),
    ({"warmup_tasks": None}, INVALID, "WarmupTasks must be empty when (re-)joining."),
    ({"topology": None}, INVALID, "Topology must be non-null when (re-)joining."),
    ({"member_epoch": -2}, INVALID, "InstanceId can't be null."),
    ({"member_epoch": -3}, INVALID, "MemberEpoch is -3, but must be greater than or equal to -2."),
    ({"member_epoch": 1}, INVALID, "Topology can only be provided when (re-)joining."),
    (
        {"member_epoch": 1, "topology": None, "active_tasks": None},
        INVALID,
        "If one task-type is non-null, all must be non-null.",
    ),
    ({"member_epoch": 1, "topology": None}, "GROUP_ID_NOT_FOUND", "Streams group g not found."),
    (
        {"topology": topology(subtopology(0, source_topic_regex=["t.*"]))},
        INVALID,
        "Regular expressions for source topics are not supported yet.",
    ),
    (
        {"topology": topology(subtopology(0, "__consumer_offsets", "__transaction_state"))},
        "STREAMS_INVALID_TOPOLOGY",
        "Use of Kafka internal topics __consumer_offsets,__transaction_state in a Kafka Streams topology is "
        "prohibited.",
    ),
    (
        {"topology": topology(subtopology(0, "t", repartition_sink_topics=["a b", "a b"]))},
        "STREAMS_INVALID_TOPOLOGY",
        "Topic names a b are not valid topic names.",
    ),
    (
        {"topology": stored("c", partitions=3)},
        "STREAMS_INVALID_TOPOLOGY",
        "Changelog topic c must have an undefined partition count, but it is set to 3.",
    ),
]


@pytest.mark.parametrize(("fields", "error", "text"), BAD)
def test_bad_heartbeats(world, fields, error, text):
    streams = Streams(world).find()
    answer = streams.heartbeat(**fields)
    assert (name(answer.error_code), answer.error_message) == (error, text)


def test_wrong_epochs_are_fenced(world):
    streams = Streams(world).join()
    assert name(streams.heartbeat(member_epoch=streams.epoch + 1).error_code) == "FENCED_MEMBER_EPOCH"
    assert streams.heartbeat().error_code == 0


@pytest.mark.parametrize("way", ["the feature", "the setting"])
def test_the_protocol_can_be_switched_off(world, way):
    streams = Streams(world).find()
    if way == "the feature":
        world.broker.image.features["streams.version"] = 0
    else:
        world.broker.settings.group_coordinator_rebalance_protocols = frozenset(("classic",))
    answer = streams.heartbeat()
    assert (name(answer.error_code), answer.error_message) == ("UNSUPPORTED_VERSION", None)
    request = messages.StreamsGroupDescribeRequest(group_ids=["g", "h"])
    assert {name(row.error_code) for row in streams.peer.ask(request, 0).groups} == {"UNSUPPORTED_VERSION"}


def test_while_there_is_no_coordinator(world):
    assert name(Streams(world).heartbeat().error_code) == "NOT_COORDINATOR"
