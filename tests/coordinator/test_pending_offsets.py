"""Offsets committed in transactions: when they take effect, who may commit them, and what they keep from expiring."""

from __future__ import annotations

import pytest

from pykafkad.coordinator.shard import TIMER_EXPIRY
from tests.coordinator.world import World

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
DAYS = 24 * 3600


@pytest.fixture
def world():
    return World()


def test_offsets_take_effect_with_the_commit_of_their_transaction(world):
    world.commit({("t", 0): 1})
    assert world.commit_transactional({("t", 0): 5, ("u", 3): 6}) == ["NONE", "NONE"]
    assert (world.committed("t", 0), world.committed("u", 3)) == (1, None)
    assert (world.stable_offset("t", 0), world.stable_offset("u", 3), world.stable_offset("t", 1)) == (
        UNSTABLE,
        UNSTABLE,
        -1,
    )
    world.end_transaction()
    assert (world.stable_offset("t", 0), world.stable_offset("u", 3)) == (5, 6)


def test_offsets_of_an_aborted_transaction_never_take_effect(world):
    world.commit_transactional({("t", 0): 5})
    world.end_transaction(commit=False)
    assert world.stable_offset("t", 0) == -1
    assert world.state() == "Empty", "the group has been made by the commit"


def test_two_producers_may_commit_for_one_partition(world):
    world.commit_transactional({("t", 0): 5}, 7)
    world.commit_transactional({("t", 0): 6}, 8)
    world.end_transaction(8)
    assert (world.committed("t", 0), world.stable_offset("t", 0)) == (6, UNSTABLE)
    world.end_transaction(7)
    assert world.stable_offset("t", 0) == 6, "its record is older, as compaction would see it"


def test_a_commit_behind_that_of_a_transaction_is_newer(world):
    world.commit_transactional({("t", 0): 5})
    world.commit({("t", 0): 9})
    world.end_transaction()
    assert world.committed("t", 0) == 9


def test_all_offsets_of_a_group_can_be_fetched_stable(world):
    world.commit({("t", 0): 1, ("t", 1): 2})
    world.commit_transactional({("t", 0): 5, ("u", 0): 5})
    rows = world.shard.fetch_offsets("g", None, require_stable=True)
    assert [(row.name, [each.error_code for each in row.partitions]) for row in rows] == [("t", [88, 0])]
    rows = world.shard.fetch_offsets("g", None)
    assert [each.committed_offset for row in rows for each in row.partitions] == [1, 2]


def test_deleting_an_offset_deletes_what_is_pending(world):
    for delete in (
        lambda: world.delete_offsets(("t", 0)),
        lambda: world.delete_group(),
        lambda: world.delete_topics("t"),
    ):
        world.commit_transactional({("t", 0): 5})
        delete()
        assert world.stable_offset("t", 0) == -1
        world.end_transaction()
        assert world.committed("t", 0) is None
    assert world.replayed().groups.keys() == world.shard.groups.keys()


def test_a_group_with_pending_offsets_does_not_expire(world):
    world.commit({("t", 0): 1, ("t", 1): 1})
    world.commit_transactional({("t", 0): 5, ("u", 0): 5})
    world.advance(8 * DAYS)
    assert (world.committed("t", 0), world.committed("t", 1)) == (1, None)
    assert world.state() == "Empty"
    world.end_transaction(commit=False)
    world.advance(DAYS)
    assert world.state() is None
    assert set(world.timers) == {TIMER_EXPIRY}


def test_a_group_with_nothing_but_pending_offsets_does_not_expire(world):
    world.commit_transactional({("u", 0): 5})
    world.advance(8 * DAYS)
    assert (world.state(), world.stable_offset("u", 0)) == ("Empty", UNSTABLE)


def test_a_commit_without_group_metadata_is_accepted_from_anybody(world):
    """As in Kafka, which has producers from before KIP-447 in mind."""
    world.stable(2)
    assert world.commit_transactional({("t", 0): 5}) == ["NONE"]
    assert world.commit_transactional({("t", 0): 5}, group="unknown") == ["NONE"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, "NONE"),
        ({"generation": 0}, "ILLEGAL_GENERATION"),
        ({"generation": -1}, "ILLEGAL_GENERATION"),
        ({"member_id": "other"}, "UNKNOWN_MEMBER_ID"),
        ({"member_id": ""}, "UNKNOWN_MEMBER_ID"),
        ({"instance": "i"}, "UNKNOWN_MEMBER_ID"),
        ({"group": "unknown"}, "ILLEGAL_GENERATION"),
    ],
)
def test_group_metadata_is_checked(world, changes, error):
    """KIP-447: a member that is no longer in the group, or is in an older generation, is fenced."""
    generation, (member_id,) = world.stable()
    fields = {"member_id": member_id, "generation": generation} | changes
    assert world.commit_transactional({("t", 0): 5}, **fields) == [error]
    assert (world.stable_offset("t", 0) == UNSTABLE) is (error == "NONE")


def test_a_replaced_static_member_is_fenced(world):
    generation, (member_id,) = world.stable(instance="i")
    world.join(instance="i")
    error = world.commit_transactional({("t", 0): 5}, member_id=member_id, generation=generation, instance="i")
    assert error == ["FENCED_INSTANCE_ID"]


def test_a_rebalance_does_not_keep_from_committing(world):
    """Unlike a commit without a transaction."""
    generation, (member_id, *_) = world.stable(2)
    world.join("", session_ms=30_000)
    member = {"member_id": member_id, "generation": generation}
    assert world.commit_transactional({("t", 0): 5}, **member) == ["NONE"]


def test_long_metadata_is_refused_for_its_partition(world):
    assert world.commit_transactional({("t", 0): 5}, metadata="x" * 4097) == ["OFFSET_METADATA_TOO_LARGE"]
    assert world.log == []


def test_open_transactions_survive_a_reload(world):
    world.commit({("t", 0): 1})
    world.commit_transactional({("t", 0): 5}, 7)
    world.commit_transactional({("t", 0): 6, ("u", 0): 7}, 8)
    world.restart()
    assert (world.committed("t", 0), world.stable_offset("t", 0), world.stable_offset("u", 0)) == (
        1,
        UNSTABLE,
        UNSTABLE,
    )
    world.end_transaction(8)
    assert world.stable_offset("u", 0) == 7
    world.restart()
    world.end_transaction(7, commit=False)
    assert world.stable_offset("t", 0) == 6


def test_a_transaction_of_another_kind_is_nothing_here(world):
    world.end_transaction(99)
    assert world.replayed().groups == {}
