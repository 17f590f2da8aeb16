"""What the answers of brokers say about a cluster."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pykafkad.cli import cluster_state
from pykafkad.cli.cluster_state import Broker, Move, Partition

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]


def test_brokers_are_those_that_answer_and_those_that_partitions_name() -> None:
    """A fenced one is there; a broker that only partitions name is gone."""
    rows = [
        {"broker_id": 2, "host": "::1", "port": 9093, "rack": None, "is_fenced": True},
        {"broker_id": 1, "host": "a", "port": 9092, "rack": "r"},
    ]
    found = cluster_state.brokers({"brokers": rows}, [Partition("t", 0, 1, [1, 7], [1])])
    assert list(found.values()) == [
        Broker(1, "a:9092", "r", "active"),
        Broker(2, "[::1]:9093", None, "fenced"),
        Broker(7, None, None, "gone"),
    ]


@pytest.mark.parametrize(
    ("leader", "in_sync", "minimum", "move", "troubles"),
    [
        (1, [1, 2, 3], 2, None, []),
        (1, [1, 2], 2, None, ["under-replicated"]),
        (1, [1], 2, None, ["under-replicated", "under-min-isr"]),
        (1, [1, 2, 3], 4, None, ["under-min-isr"]),
        (-1, [], None, None, ["offline", "under-replicated", "under-min-isr"]),
        (1, [1, 2], 2, Move([1, 2, 3], [3], []), ["moving"]),
        (1, [1], 1, Move([1, 2, 3], [3], []), ["under-replicated", "moving"]),
    ],
)
def test_troubles_of_a_partition(
    leader: int, in_sync: list[int], minimum: int | None, move: Move | None, troubles: list[str]
) -> None:
    """As kafka-topics tells them; a replica that comes need not be in sync."""
    assert cluster_state.troubles(Partition("t", 0, leader, [1, 2, 3], in_sync), minimum, move) == troubles


def test_lag_is_the_distance_to_the_leader() -> None:
    """Of all replicas of a broker together; what is unknown counts nothing."""
    held = [Partition("t", 0, 1, [1, 2], [1]), Partition("t", 1, 2, [2, 1], [2]), Partition("t", 2, 3, [3, 1], [3])]
    ends = {1: {("t", 0): 10, ("t", 1): 5, ("t", 2): 9}, 2: {("t", 0): 7, ("t", 1): 6}}
    assert cluster_state.lags(held, ends) == {1: 1, 2: 3}


class Admin:
    """An admin client that knows a quorum."""

    def __init__(self, **state: object) -> None:
        self.state = state

    def describe_metadata_quorum(self) -> dict:
        return {
            "topics": [{"partitions": [{"error": None, "leader_epoch": 4, "high_watermark": 90, **self.state}]}],
            "nodes": [{"node_id": 3, "listeners": [{"host": "h", "port": 9093}, {"host": "::1", "port": 9094}]}],
        }


def test_a_quorum_with_a_voter_behind_and_an_observer() -> None:
    """The lag is that to the leader's end; unknown where one of them is."""
    voters = [
        {"replica_id": 4, "log_end_offset": -1, "last_fetch_timestamp": -1, "last_caught_up_timestamp": -1},
        {"replica_id": 3, "log_end_offset": 100, "last_fetch_timestamp": 50, "last_caught_up_timestamp": 50},
    ]
    observers = [{"replica_id": 1, "log_end_offset": 95, "last_fetch_timestamp": 40, "last_caught_up_timestamp": 30}]
    found = cluster_state.quorum(Admin(leader_id=3, current_voters=voters, observers=observers))
    assert found is not None
    assert (found["leader"], found["epoch"], found["high_watermark"]) == (3, 4, 90)
    assert [tuple(row.values()) for row in found["members"]] == [
        (3, "leader", "h:9093,[::1]:9094", 100, 0, 50, 50),
        (4, "voter", None, -1, None, None, None),
        (1, "observer", None, 95, 5, 40, 30),
    ]


def test_a_quorum_that_nobody_leads() -> None:
    """The lags are unknown."""
    voters = [{"replica_id": 3, "log_end_offset": 100}]
    found = cluster_state.quorum(Admin(leader_id=-1, current_voters=voters, observers=[]))
    assert found is not None and [row["lag"] for row in found["members"]] == [None]


def test_a_topic_with_an_error_has_no_replicas() -> None:
    """The broker that answers does not know them."""
    row = SimpleNamespace(partition_index=0, replica_nodes=[1, 2])
    topics = [
        SimpleNamespace(name="known", error_code=0, partitions=[row]),
        SimpleNamespace(name="unknown", error_code=3, partitions=[row]),
    ]
    admin = SimpleNamespace(
        describe_cluster=lambda: {"brokers": [{"broker_id": 1, "host": "h", "port": 9092}]},
        _manager=SimpleNamespace(send=None, run=lambda *_: SimpleNamespace(topics=topics)),
    )
    assert cluster_state.replicas_by_broker(admin, ["known", "unknown"]) == {1: {("known", 0): [1, 2]}}
