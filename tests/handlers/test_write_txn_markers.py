"""WriteTxnMarkers: the ends of transactions in the partitions here."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.handlers.transactions import Coordinator, marker, write_markers
from tests.simulation.slow_clock import SlowClock
from tests.simulation.world import World


@pytest.fixture
def log(world, peer):
    """Partition 0 of `t` with one open transaction of producer 1."""
    world.create_topic("t", 2)
    world.broker.services.transactions = Coordinator()
    records = batch(b"v", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    peer.ask(produce("t", {0: records}, transactional_id="tx"), 12)
    return world.broker.partitions.get("t", 0)


def fetch(max_wait_ms, offset=0):
    of = messages.FetchRequest
    return of(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        isolation_level=1,
        session_epoch=-1,
        topics=[
            of.FetchTopic(
                topic="t", partitions=[of.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000)]
            )
        ],
    )


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_ends_the_transaction_of_its_producer(log, peer, version, commit):
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    written = write_markers(peer, marker(("t", 0), ("t", 1), commit=commit), version=version)
    assert written == {(1, "t", 0): 0, (1, "t", 1): 0}
    assert (log.high_watermark, log.last_stable_offset) == (2, 2)
    assert log.has_aborted is not commit


def test_a_fetch_that_waits_is_woken_by_the_marker(world, log, peer):
    """It waits for the last stable offset, not for the high watermark."""
    reader = world.connect()
    reader.send(fetch(5_000), 12)
    peer.ask(produce("t", {0: batch(b"another's")}), 12)
    assert reader.answers == []
    write_markers(peer, marker(("t", 0), commit=False))
    world.turn()
    (row,) = reader.answers[0].responses[0].partitions
    assert (row.last_stable_offset, row.high_watermark) == (3, 3)
    assert [(each.producer_id, each.first_offset) for each in row.aborted_transactions] == [(1, 0)]


def test_partitions_that_are_not_here_have_their_own_error(log, peer):
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    written = write_markers(peer, marker(("t", 7), ("x", 0), ("t", 0)), marker(("x", 1), producer_id=2))
    assert written == {(1, "t", 7): unknown, (1, "x", 0): unknown, (1, "t", 0): 0, (2, "x", 1): unknown}


def test_each_producer_has_one_row(log, peer):
    answer = peer.ask(messages.WriteTxnMarkersRequest(markers=[marker(("t", 0)), marker(("t", 1)), marker()]), 2)
    (row,) = answer.markers
    assert [each.partition_index for each in row.topics[0].partitions] == [0, 1]
    assert peer.ask(messages.WriteTxnMarkersRequest(markers=[]), 2).markers == []


def test_markers_that_come_too_late_are_refused(log, peer):
    late, fenced = errors.INVALID_PRODUCER_EPOCH, errors.TRANSACTION_COORDINATOR_FENCED
    assert write_markers(peer, marker(("t", 0), version=2)) == {(1, "t", 0): late}
    assert write_markers(peer, marker(("t", 0), version=2, epoch=1, coordinator_epoch=5)) == {(1, "t", 0): 0}
    assert write_markers(peer, marker(("t", 0), epoch=0, coordinator_epoch=5)) == {(1, "t", 0): late}
    assert write_markers(peer, marker(("t", 0), epoch=1, coordinator_epoch=4)) == {(1, "t", 0): fenced}


def test_offsets_that_are_not_loaded_are_not_led_here(world, log, peer):
    """The coordinator then tries again."""
    peer.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    world.turn()
    runner = world.broker.groups.runner_of(0)
    runner.is_loading = True
    answer = {(1, "__consumer_offsets", 0): errors.NOT_LEADER_OR_FOLLOWER}
    assert write_markers(peer, marker(("__consumer_offsets", 0))) == answer
    runner.is_loading = False
    assert write_markers(peer, marker(("__consumer_offsets", 0))) == {(1, "__consumer_offsets", 0): 0}


def test_markers_of_impossible_epochs_are_refused_for_an_unknown_producer(log, peer):
    late, fenced = errors.INVALID_PRODUCER_EPOCH, errors.TRANSACTION_COORDINATOR_FENCED
    assert write_markers(peer, marker(("t", 0), producer_id=7, epoch=-2)) == {(7, "t", 0): late}
    assert write_markers(peer, marker(("t", 0), producer_id=7, coordinator_epoch=-2)) == {(7, "t", 0): fenced}
    assert write_markers(peer, marker(("t", 0), producer_id=7, coordinator_epoch=-1)) == {(7, "t", 0): 0}


def test_a_marker_without_a_transaction_version_is_refused_after_one_that_comes_too_late(log, peer):
    unknown, late = errors.UNKNOWN_SERVER_ERROR, errors.INVALID_PRODUCER_EPOCH
    assert write_markers(peer, marker(("t", 0), version=-1)) == {(1, "t", 0): unknown}
    assert write_markers(peer, marker(("t", 0), epoch=1)) == {(1, "t", 0): 0}
    assert write_markers(peer, marker(("t", 0), version=-1)) == {(1, "t", 0): late}


@pytest.mark.parametrize("nobody", [{"producer_id": -1}, {"epoch": -1}])
def test_a_marker_of_nobody_refuses_the_request(log, peer, nobody):
    """If it could be written: Kafka fails to make it."""
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    producer_id = nobody.get("producer_id", 1)
    assert write_markers(peer, marker(("t", 9), **nobody)) == {(producer_id, "t", 9): unknown}
    refused = write_markers(peer, marker(("t", 0), producer_id=7), marker(("t", 0), ("x", 0), **nobody))
    assert set(refused.values()) == {errors.UNKNOWN_SERVER_ERROR} and len(refused) == 3
    assert log.end_offset == 1


def test_many_markers_take_several_turns(tmp_path):
    clock = SlowClock()
    world = World(tmp_path, clock=clock)
    world.create_topic("t")
    peer = world.connect()
    markers = [marker(("t", 0), producer_id=number) for number in range(100)]
    clock.seconds = 0.0003
    peer.put_on_the_wire(peer.encode(messages.WriteTxnMarkersRequest(markers=markers), 2))
    turns = 0
    while not peer.answers:
        world.runtime.reactor.turn(0)
        peer.take_what_came()
        turns += 1
    assert turns > 2 and len(peer.answers[0].markers) == 100
