"""Fetch from the closest replica (KIP-392): whom the leader names to a consumer, and what followers give it."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.brokers_world import BrokersWorld

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = ("a", "b", "c")
NONE = -1


@pytest.fixture
def world():
    made = BrokersWorld(racks=RACKS, replica_selector_class=SELECTOR, broker_session_timeout_ms=1000)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def filled(world, records=3):
    """A topic with a replica at each broker, all in sync and with all records; its leader and the others."""
    world.create_topic("t", 1, 3)
    world.until(lambda: len(state(world).isr) == 3)
    leader = world.leader("t")
    for _ in range(records):
        row = world.ask(leader, produce("t", {0: batch(b"v")}, acks=-1), 12).responses[0].partition_responses[0]
        assert row.error_code == 0
    world.advance(1.0)
    return leader, [each for each in (1, 2, 3) if each != leader]


def state(world):
    return world.image.partition("t", 0)


def rack_of(node_id):
    return RACKS[node_id - 1]


def ask(world, node_id, rack, *, version=17, offset=0, session=(0, -1), replica=-1, **asked):
    request = fetch("t", {0: {"fetch_offset": offset, **asked}}, topic_id=world.image.topics["t"].id)
    request.rack_id = rack
    request.max_wait_ms, request.min_bytes = 100, 1
    request.session_id, request.session_epoch = session
    if version < 15:
        request.replica_id = replica
    return world.ask(node_id, request, version)


def row_of(answer):
    return answer.responses[0].partitions[0]


@pytest.mark.parametrize("version", [11, 12, 13, 17, 18])
def test_a_leader_names_the_replica_in_the_consumers_rack_and_gives_no_records(world, version):
    leader, others = filled(world)
    for other in others:
        row = row_of(ask(world, leader, rack_of(other), version=version))
        assert (row.error_code, row.preferred_read_replica, row.high_watermark) == (errors.NONE, other, 3)
        assert bytes(row.records or b"") == b""


@pytest.mark.parametrize("version", [10, 11, 12, 17])
@pytest.mark.parametrize("rack", ["", "elsewhere", None])
def test_others_read_from_the_leader(world, version, rack):
    """Without a rack, with one that has no replica, in the leader's own, and before version 11."""
    leader, others = filled(world)
    rack = rack_of(leader if version > 10 else others[0]) if rack is None else rack
    row = row_of(ask(world, leader, rack, version=version))
    assert (row.error_code, row.preferred_read_replica, len(bytes(row.records)) > 180) == (errors.NONE, NONE, True)


@pytest.mark.parametrize("version", [11, 17])
def test_a_follower_gives_its_records_and_names_nobody(world, version):
    leader, (other, third) = filled(world)
    expected = bytes(row_of(ask(world, leader, "", version=version)).records)
    for rack in (rack_of(other), rack_of(third), ""):
        row = row_of(ask(world, other, rack, version=version))
        assert (row.error_code, row.preferred_read_replica, row.high_watermark) == (errors.NONE, NONE, 3)
        assert bytes(row.records) == expected


def test_a_follower_gives_no_more_than_it_knows_to_be_committed(world):
    _, (other, _) = filled(world)
    assert row_of(ask(world, other, "", offset=3)).error_code == errors.NONE
    assert row_of(ask(world, other, "", offset=4)).error_code == errors.OFFSET_OUT_OF_RANGE
    log = world.broker(other).partitions.get("t", 0)
    log.high_watermark = 2
    row = row_of(ask(world, other, "", offset=2))
    assert (row.error_code, bytes(row.records or b"")) == (errors.NONE, b"")


def test_a_follower_that_lacks_the_offset_is_not_named(world):
    leader, (other, _) = filled(world)
    assert row_of(ask(world, leader, rack_of(other), offset=3)).preferred_read_replica == other
    row = row_of(ask(world, leader, rack_of(other), offset=4))
    assert (row.error_code, row.preferred_read_replica) == (errors.OFFSET_OUT_OF_RANGE, NONE)
    request = messages.DeleteRecordsRequest
    partitions = [request.DeleteRecordsPartition(partition_index=0, offset=2)]
    topics = [request.DeleteRecordsTopic(name="t", partitions=partitions)]
    world.ask(leader, request(topics=topics, timeout_ms=1000), 2)
    world.advance(1.0)
    assert row_of(ask(world, leader, rack_of(other), offset=2)).preferred_read_replica == other
    row = row_of(ask(world, leader, rack_of(other), offset=1))
    assert (row.error_code, row.preferred_read_replica) == (errors.OFFSET_OUT_OF_RANGE, NONE)


def test_a_follower_out_of_sync_is_not_named(world):
    leader, (other, _) = filled(world)
    world.process.kill_broker(other)
    world.until(lambda: other not in state(world).isr)
    assert row_of(ask(world, leader, rack_of(other))).preferred_read_replica == NONE


def test_a_leader_that_names_a_replica_does_not_wait(world):
    leader, (other, _) = filled(world)
    peer = world.connect(leader)
    request = fetch("t", {0: 3}, topic_id=world.image.topics["t"].id)
    request.rack_id, request.max_wait_ms, request.min_bytes = rack_of(other), 60_000, 1
    peer.send(request, 17)
    world.advance(1.0)
    assert row_of(peer.answers[0]).preferred_read_replica == other


def test_a_leader_is_preferred_to_another_replica_in_its_rack():
    world = BrokersWorld(racks=("a", "b"), replica_selector_class=SELECTOR)
    world.create_topic("t", 3, 3)
    world.until(lambda: all(len(world.image.partition("t", index).isr) == 3 for index in range(3)))
    world.advance(1.0)
    named = {}
    for index in range(3):
        leader = world.leader("t", index)
        for rack in ("a", "b"):
            request = fetch("t", {index: 0}, topic_id=world.image.topics["t"].id)
            request.rack_id = rack
            named[leader, rack] = row_of(world.ask(leader, request, 17)).preferred_read_replica
    racks = {NONE: None, 1: "a", 2: "b", 3: "a"}
    assert {leader for leader, _ in named} & {1, 3}, "one that has another replica in its rack"
    for (leader, rack), preferred in named.items():
        assert racks[preferred] == (None if rack == racks[leader] else rack), named
    world.stop()


def test_an_incremental_answer_names_it_each_time(world):
    leader, (other, _) = filled(world)
    first = ask(world, leader, rack_of(other), session=(0, 0))
    assert row_of(first).preferred_read_replica == other
    again = messages.FetchRequest(
        rack_id=rack_of(other), session_id=first.session_id, session_epoch=1, max_wait_ms=100, min_bytes=1
    )
    assert row_of(world.ask(leader, again, 17)).preferred_read_replica == other


def test_list_offsets_is_the_leaders_alone(world):
    leader, (other, _) = filled(world)
    request = messages.ListOffsetsRequest
    asked = request.ListOffsetsPartition(partition_index=0, timestamp=-1)
    whole = request(topics=[request.ListOffsetsTopic(name="t", partitions=[asked])])
    codes = [world.ask(node_id, whole, 9).topics[0].partitions[0].error_code for node_id in (leader, other)]
    assert codes == [errors.NONE, errors.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("version", [11, 17])
def test_without_a_selector_nobody_is_named(version):
    world = BrokersWorld(racks=RACKS)
    leader, (other, _) = filled(world)
    row = row_of(ask(world, leader, rack_of(other), version=version))
    assert (row.preferred_read_replica, len(bytes(row.records)) > 180) == (NONE, True)
    world.stop()
