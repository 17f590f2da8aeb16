"""FindCoordinator: one key before version 4, several after."""

from __future__ import annotations

import pytest

from pykafkad.handlers.find_coordinator import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import NODE_ID, Context, add_topic, error


def context():
    ctx = Context()
    add_topic(ctx.metadata, "__consumer_offsets", b"o" * 16, 50)
    return ctx


def find(ctx, version, key="g", key_type=0):
    if version >= 4:
        (row,) = ctx.call(
            handle, version, messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        ).coordinators
        assert row.key == key
        return row
    return ctx.call(handle, version, messages.FindCoordinatorRequest(key=key, key_type=key_type))


@pytest.mark.parametrize("version", range(7))
def test_the_leader_of_the_groups_partition_is_named(version):
    row = find(context(), version)
    assert (error(row), row.node_id, row.host, row.port) == ("NONE", NODE_ID, f"broker{NODE_ID}", 9092)
    if 1 <= version <= 3:
        assert row.error_message == "NONE"


@pytest.mark.parametrize("version", range(7))
def test_a_missing_offsets_topic_is_created_and_clients_ask_again(version):
    ctx = Context()
    row = find(ctx, version)
    assert (error(row), row.node_id, row.host, row.port) == ("COORDINATOR_NOT_AVAILABLE", -1, "", -1)
    assert [event.names for event in ctx.controller.submitted] == [["__consumer_offsets"]]


def test_a_partition_without_a_live_leader_has_no_coordinator():
    ctx = context()
    ctx.metadata.brokers[NODE_ID].__class__.fenced = True
    try:
        assert error(find(ctx, 4)) == "COORDINATOR_NOT_AVAILABLE"
    finally:
        ctx.metadata.brokers[NODE_ID].__class__.fenced = False


@pytest.mark.parametrize("version", range(1, 7))
def test_the_leader_of_the_transactional_ids_partition_is_named(version):
    ctx = context()
    row = find(ctx, version, "transaction", key_type=1)
    assert error(row) == "COORDINATOR_NOT_AVAILABLE"
    assert [event.names for event in ctx.controller.submitted] == [["__transaction_state"]]
    add_topic(ctx.metadata, "__transaction_state", b"t" * 16, 50)
    row = find(ctx, version, "transaction", key_type=1)
    assert (error(row), row.node_id, row.host) == ("NONE", NODE_ID, f"broker{NODE_ID}")


def test_only_version_6_knows_share_groups():
    assert error(find(context(), 5, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", key_type=2)) == "INVALID_REQUEST"
    ctx = context()
    key = "g:with:colons:AAAAAAAAAAAAAAAAAAAAAQ:0"
    assert error(find(ctx, 6, key, key_type=2)) == "COORDINATOR_NOT_AVAILABLE"
    assert [event.names for event in ctx.controller.submitted] == [["__share_group_state"]]
    add_topic(ctx.metadata, "__share_group_state", b"s" * 16, 50)
    assert error(find(ctx, 6, key, key_type=2)) == "NONE"


@pytest.mark.parametrize("key", ["group:topic:0", "group:AAAAAAAAAAAAAAAAAAAAAQ:x", " :AAAAAAAAAAAAAAAAAAAAAQ:0"])
def test_a_malformed_key_of_a_share_partition_is_an_invalid_request(key):
    """It is group, topic id and partition."""
    assert error(find(context(), 6, key, key_type=2)) == "INVALID_REQUEST"


def test_an_unknown_key_type_is_refused():
    assert error(find(context(), 4, key_type=9)) == "INVALID_REQUEST"


def test_each_key_needs_permission():
    ctx = context()
    ctx.denied |= {("Describe", "Group", "secret"), ("Describe", "TransactionalId", "secret")}
    answer = ctx.call(handle, 4, messages.FindCoordinatorRequest(coordinator_keys=["secret", "g"]))
    assert [(row.key, error(row)) for row in answer.coordinators] == [
        ("secret", "GROUP_AUTHORIZATION_FAILED"),
        ("g", "NONE"),
    ]
    assert error(find(ctx, 4, "secret", key_type=1)) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
