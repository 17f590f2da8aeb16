"""The rules for topic names, and changes of partitions."""

from __future__ import annotations

import pytest

from pykafkad.metadata.topics import PartitionState, Topic, collision_key, name_problem
from pykafkad.wire import messages


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a/b", "other than ASCII alphanumerics"),
        ("ü", "other than ASCII alphanumerics"),
        ("a b", "other than ASCII alphanumerics"),
    ],
)
def test_an_invalid_name_is_refused(name, part):
    assert part in name_problem(name)


@pytest.mark.parametrize("name", ["a", "x" * 249, "a.b_c-D9", "...", "__consumer_offsets"])
def test_a_valid_name_is_accepted(name):
    assert name_problem(name) is None


def test_names_that_differ_only_in_dots_and_underscores_collide():
    assert collision_key("a.b_c") == collision_key("a_b.c") == "a_b_c"
    assert collision_key("a-b") is None


def _state(**fields):
    record = messages.PartitionRecord(
        partition_id=0,
        replicas=[1, 2],
        isr=[1, 2],
        leader=1,
        leader_epoch=4,
        partition_epoch=7,
        directories=[b"d" * 16, b"e" * 16],
        **fields,
    )
    return PartitionState(record, tuple)


def test_a_record_with_a_leader_starts_a_leader_epoch():
    """This holds for the same leader too. Every change raises the partition epoch."""
    state = _state()
    state.change(messages.PartitionChangeRecord(leader=1), tuple)
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (1, 5, 8)
    state.change(messages.PartitionChangeRecord(isr=[2]), tuple)
    assert (state.isr, state.leader_epoch, state.partition_epoch) == ((2,), 5, 9)
    state.change(messages.PartitionChangeRecord(leader=-1), tuple)
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (-1, 6, 10)


def test_a_change_leaves_null_fields_as_they_are():
    state = _state()
    change = messages.PartitionChangeRecord(
        replicas=[3], removing_replicas=[1], adding_replicas=[3], directories=[b"f" * 16],
        eligible_leader_replicas=[2], last_known_elr=[1], leader_recovery_state=1,
    )  # fmt: skip
    state.change(change, tuple)
    assert (state.replicas, state.removing_replicas, state.adding_replicas) == ((3,), (1,), (3,))
    assert (state.directories, state.elr, state.last_known_elr, state.leader_recovery_state) == (
        (b"f" * 16,),
        (2,),
        (1,),
        1,
    )
    assert (state.isr, state.leader) == ((1, 2), 1)


def test_partitions_may_come_in_any_order():
    """Kafka writes a topic's partitions in the order of a hash map."""
    topic = Topic("a", b"t" * 16)
    states = []
    for index in (2, 0, 1):
        state = PartitionState(messages.PartitionRecord(partition_id=index), tuple)
        states.append(state)
        topic.put(state)
    assert topic.partitions == [states[1], states[2], states[0]]
    replacement = PartitionState(messages.PartitionRecord(partition_id=1), tuple)
    topic.put(replacement)
    assert topic.partitions[1] is replacement
