"""ConsumerGroupHeartbeat: versions, and requests that are refused before the group gets them."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import events
from pykafkad.errors import COORDINATOR_LOAD_IN_PROGRESS
from pykafkad.handlers import table
from pykafkad.handlers.consumer_group_heartbeat import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error

VERSIONS = (0, 1)


def consumer_context(**settings):
    """A context whose cluster has consumer groups."""
    ctx = Context(**settings)
    ctx.row = table.by_key(68)
    ctx.metadata.features["group.version"] = 1
    ctx.world.metadata = ctx.metadata
    ctx.world.send(events.Loaded(ctx.metadata))
    return ctx


def joining(**fields):
    return messages.ConsumerGroupHeartbeatRequest(
        **{
            "group_id": "g",
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout_ms": 1000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **fields,
        }
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_joins_and_leaves(version):
    ctx = consumer_context()
    answer = ctx.call(handle, version, joining())
    assert (error(answer), answer.member_id, answer.member_epoch) == ("NONE", "m", 2)
    assert [row.partitions for row in answer.assignment.topic_partitions] == [[0, 1]]
    assert answer.heartbeat_interval_ms == 5000
    answer = ctx.call(handle, version, joining(member_epoch=-1))
    assert (error(answer), answer.member_epoch) == ("NONE", -1)


def test_version_0_makes_a_member_id():
    ctx = consumer_context()
    answer = ctx.call(handle, 0, joining(member_id=""))
    assert error(answer) == "NONE" and len(answer.member_id) == 22


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_requests_are_refused_before_the_group_gets_them(fields, text):
    ctx = consumer_context()
    answer = ctx.call(handle, 1, joining(**fields))
    assert (error(answer), answer.error_message) == ("INVALID_REQUEST", text)
    assert not ctx.world.shard.groups


def test_an_unknown_assignor_is_refused():
    ctx = consumer_context()
    answer = ctx.call(handle, 1, joining(server_assignor="mine"))
    assert error(answer) == "UNSUPPORTED_ASSIGNOR"
    assert answer.error_message == "ServerAssignor mine is not supported. Supported assignors: uniform, range."


def test_without_permission():
    ctx = consumer_context()
    ctx.denied.add(("Describe", "Topic", "t"))
    assert error(ctx.call(handle, 1, joining())) == "TOPIC_AUTHORIZATION_FAILED"
    ctx.denied.add(("Read", "Group", "g"))
    assert error(ctx.call(handle, 1, joining())) == "GROUP_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_protocol_can_be_switched_off(version):
    ctx = consumer_context()
    ctx.metadata.features["group.version"] = 0
    assert error(ctx.call(handle, version, joining())) == "UNSUPPORTED_VERSION"
    ctx.metadata.features["group.version"] = 1
    ctx.settings.group_coordinator_rebalance_protocols = frozenset(("classic",))
    assert error(ctx.call(handle, version, joining())) == "UNSUPPORTED_VERSION"


def test_while_the_group_is_loaded():
    ctx = consumer_context()
    ctx.groups.error_code = COORDINATOR_LOAD_IN_PROGRESS
    assert error(ctx.call(handle, 1, joining())) == "COORDINATOR_LOAD_IN_PROGRESS"


def test_a_broker_that_knows_no_features_yet_is_no_coordinator():
    """It has just started. UNSUPPORTED_VERSION would end its members for good."""
    ctx = consumer_context()
    ctx.metadata.features.clear()
    assert error(ctx.call(handle, 1, joining())) == "COORDINATOR_NOT_AVAILABLE"
