"""The placement of replicas."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, strategies as st

from pykafkad.errors import INVALID_REPLICATION_FACTOR, KafkaError
from pykafkad.metadata import placement
from pykafkad.metadata.brokers import Broker
from pykafkad.wire import messages


def broker(number, rack=None, *, fenced=False, log_dirs=(b"d" * 16,), cordoned=()):
    return Broker(
        messages.RegisterBrokerRecord(
            broker_id=number, rack=rack, fenced=fenced, log_dirs=list(log_dirs), cordoned_log_dirs=list(cordoned)
        )
    )


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=7),
    fenced=st.sets(st.integers(1, 6)),
    partitions=st.integers(1, 30),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_replicas_are_on_different_brokers_with_an_unfenced_leader(racks, fenced, partitions, seed, data):
    """A fenced broker gets a replica only when its rack has no other broker left."""
    brokers = [broker(number, rack, fenced=number in fenced) for number, rack in enumerate(racks)]
    replication_factor = data.draw(st.integers(1, len(brokers)))
    placed = placement.place(brokers, partitions, replication_factor, Random(seed))
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == replication_factor
        assert replicas[0] not in fenced


def test_leaders_are_spread_evenly():
    """Every broker of a rack leads as many partitions as any other."""
    brokers = [broker(number) for number in range(4)]
    leaders = Counter(replicas[0] for replicas in placement.place(brokers, 400, 2, Random(5)))
    assert leaders == dict.fromkeys(range(4), 100)


def test_leaders_take_turns_over_racks():
    brokers = [broker(number, "abc"[number]) for number in range(3)]
    leaders = [replicas[0] for replicas in placement.place(brokers, 30, 3, Random(5))]
    assert all(set(leaders[start : start + 3]) == {0, 1, 2} for start in range(0, 30, 3))


def test_replicas_spread_over_racks():
    """With two racks and two replicas there is one replica in each rack."""
    brokers = [broker(number, "ab"[number % 2]) for number in range(6)]
    for replicas in placement.place(brokers, 60, 2, Random(9)):
        assert {number % 2 for number in replicas} == {0, 1}


@pytest.mark.parametrize(
    ("brokers", "replication_factor", "part"),
    [
        ([broker(1)], 0, "the replication factor must be positive"),
        ([broker(1)], 2, "cannot be reached because only 1 broker(s) are registered"),
        ([broker(1, fenced=True)], 1, "All brokers are currently fenced"),
        ([], 1, "All brokers are currently fenced"),
    ],
)
def test_an_impossible_placement_is_refused(brokers, replication_factor, part):
    with pytest.raises(KafkaError) as caught:
        placement.place(brokers, 1, replication_factor, Random(1))
    assert caught.value.code == INVALID_REPLICATION_FACTOR
    assert part in caught.value.text


def test_cordoned_and_leaving_brokers_get_no_replicas():
    """KIP-1066: a broker whose directories are all cordoned is left out."""
    leaving = broker(3)
    leaving.in_controlled_shutdown = True
    brokers = {1: broker(1), 2: broker(2, cordoned=[b"d" * 16]), 3: leaving}
    assert [each.id for each in placement.usable(brokers)] == [1]


def test_a_replica_gets_the_only_directory_of_its_broker():
    """With several directories the broker chooses."""
    assert placement.directory(broker(1)) == b"d" * 16
    assert placement.directory(broker(1, log_dirs=(b"d" * 16, b"e" * 16))) == placement.UNASSIGNED_DIRECTORY
    assert (
        placement.directory(broker(1, log_dirs=(b"d" * 16, b"e" * 16), cordoned=(b"d" * 16,)))
        == placement.UNASSIGNED_DIRECTORY
    )
