"""Offsets of deleted topics that are deleted in steps, while transactions end, groups go, and others commit."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import events, offset_deletion
from pykafkad.effects import TimerFired
from tests.coordinator.world import TOPIC_ID, World

COUNT = 1_400
LAST = COUNT - 1


@pytest.fixture
def world():
    """A group with so many pending offsets of a topic that a third of them goes in the step that deletes the topic."""
    world = World()
    for start in range(0, COUNT, 200):
        world.commit_transactional({("t", partition): 1 for partition in range(start, start + 200)})
    return world


def go_on(world):
    """Take the next step of the deletion."""
    del world.timers[offset_deletion.TIMER_DELETION]
    world.send(TimerFired(offset_deletion.TIMER_DELETION))


def left(world):
    """Partition to offset of what is committed, which a replay of the log must agree with."""
    for group_id, topics in world.replayed().offsets.by_group.items():
        for topic, partitions in topics.items():
            for partition, replayed in partitions.items():
                assert world.committed(topic, partition, group=group_id) == replayed.offset
    offsets = world.shard.offsets.by_group.get("g", {}).get("t", {})
    return {partition: committed.offset for partition, committed in offsets.items()}


@pytest.mark.parametrize("is_commit", [True, False])
def test_pending_offsets_of_a_topic_are_deleted_whether_or_not_their_transaction_has_ended(world, is_commit):
    world.delete_topics("t")
    assert world.shard.offsets.count("g") == COUNT - 500
    world.end_transaction(commit=is_commit)
    assert len(left(world)) == (COUNT - 500 if is_commit else 0)
    world.advance(0)
    assert left(world) == {} and not world.shard.topic_deletions


@pytest.mark.long
@pytest.mark.parametrize("ends", [True, False])
def test_a_commit_since_the_deletion_stays_where_an_offset_was_pending(world, ends):
    world.delete_topics("t")
    if ends:
        world.end_transaction()
    assert world.commit({("t", LAST): 77}) == ["NONE"]
    world.advance(0)
    assert left(world) == {LAST: 77}
    world.end_transaction()
    assert left(world) == {LAST: 77}, "the pending one is older"


def test_a_pending_offset_since_the_deletion_stays(world):
    world.commit({("t", COUNT): 1})
    world.delete_topics("t")
    world.end_transaction(commit=False)
    assert world.commit_transactional({("t", LAST): 77, ("t", COUNT): 78}, 8) == ["NONE"] * 2
    world.advance(0)
    world.end_transaction(8)
    assert left(world) == {LAST: 77, COUNT: 78}


def test_a_group_that_is_deleted_meanwhile_does_not_come_back(world):
    world.delete_topics("t")
    assert world.delete_group() == "NONE", "what is left of its offsets goes in the same step"
    assert world.state() is None
    world.advance(0)
    assert (world.shard.groups, world.replayed().groups) == ({}, {})


def test_a_group_whose_transaction_was_aborted_meanwhile_does_not_come_back(world):
    world.delete_topics("t")
    world.end_transaction(commit=False)
    assert world.delete_group() == "NONE"
    world.advance(0)
    assert (world.shard.groups, world.replayed().groups) == ({}, {})


def test_a_step_looks_at_a_limited_number_of_partitions(world):
    """Also when there is nothing to delete any more."""
    world.delete_topics("t")
    world.end_transaction(commit=False)
    steps = 0
    while offset_deletion.TIMER_DELETION in world.timers:
        go_on(world)
        steps += 1
    assert steps == 2


def test_a_later_topic_of_the_name_keeps_its_offset_where_one_is_pending():
    world = World()
    world.commit({("t", 0): 5})
    world.commit_transactional({("t", 0): 6, ("t", 1): 7})
    world.send(events.TopicsDeleted([("t", b"an earlier topic")]))
    assert left(world) == {0: 5}
    world.send(events.TopicsDeleted([("t", b"an earlier topic"), ("t", TOPIC_ID)]))
    assert left(world) == {} and world.shard.offsets.count("g") == 0
