"""DeleteGroups: each group has its own row."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.delete_groups import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error
from tests.simulation.world import World


@pytest.mark.parametrize("version", range(3))
def test_each_group_has_one_row_even_if_named_twice(version):
    ctx = Context()
    ctx.world.stable(group="busy")
    for group in ("empty", "secret"):
        ctx.world.commit({("t", 0): 1}, group=group)
    ctx.denied.add(("Delete", "Group", "secret"))
    request = messages.DeleteGroupsRequest(groups_names=["secret", "busy", "empty", "none", "empty"])
    answer = ctx.call(handle, version, request)
    assert [(row.group_id, error(row)) for row in answer.results] == [
        ("busy", "NON_EMPTY_GROUP"),
        ("empty", "NONE"),
        ("none", "GROUP_ID_NOT_FOUND"),
        ("secret", "GROUP_AUTHORIZATION_FAILED"),
    ]
    assert set(ctx.world.shard.groups) == {"busy", "secret"}


def test_groups_of_other_brokers_and_empty_requests():
    ctx = Context()
    assert ctx.call(handle, 2, messages.DeleteGroupsRequest()).results == []
    ctx.groups.error_code = errors.NOT_COORDINATOR
    answer = ctx.call(handle, 2, messages.DeleteGroupsRequest(groups_names=["g"]))
    assert [(row.group_id, error(row)) for row in answer.results] == [("g", "NOT_COORDINATOR")]


def test_the_answer_waits_for_the_commit_of_every_group(tmp_path):
    world = World(tmp_path)
    peer = world.connect()
    world.create_topic("t")
    topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic(
        name="t",
        partitions=[messages.OffsetCommitRequest.OffsetCommitRequestPartition(committed_offset=1)],
    )
    peer.ask(messages.FindCoordinatorRequest(coordinator_keys=["g0"]), 4)
    world.turn()
    names = [f"g{number}" for number in range(3)]
    for name in names:
        committed = peer.ask(messages.OffsetCommitRequest(group_id=name, topics=[topic]), 8)
        assert committed.topics[0].partitions[0].error_code == 0
    answer = peer.ask(messages.DeleteGroupsRequest(groups_names=[*names, "unknown"]), 2)
    assert [(row.group_id, error(row)) for row in answer.results] == [
        *((name, "NONE") for name in names),
        ("unknown", "GROUP_ID_NOT_FOUND"),
    ]
    world.stop()
