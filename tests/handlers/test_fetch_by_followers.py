"""Fetch by followers (the leader's side): who may, what they get, and what the leader learns from it."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.handlers.test_leader_hints import OTHER, other
from tests.server.test_min_insync_replicas import create
from tests.simulation.world import NOTHING

__all__ = ["other"]


@pytest.fixture
def led(world, other):
    """This broker leads; both brokers are in the ISR."""
    log = create(world, "led", [world.broker.node_id, OTHER], min_insync_replicas=2)
    assert log.replica.isr == (world.broker.node_id, OTHER)
    return log


def ask(world, offset, *, peer=None, replica=OTHER, epoch=None, version=18, max_wait_ms=0, **asked):
    """A follower's fetch; the answer's row, or NOTHING."""
    state = world.broker.image.topics["led"].partitions[0]
    epoch = world.broker.image.brokers[OTHER].epoch if epoch is None else epoch
    request = fetch(
        "led",
        {0: {"fetch_offset": offset, "current_leader_epoch": state.leader_epoch, **asked}},
        topic_id=world.broker.image.topics["led"].id,
        max_wait_ms=max_wait_ms,
    )
    if version >= 15:
        request.replica_state = messages.FetchRequest.ReplicaState(replica_id=replica, replica_epoch=epoch)
    else:
        request.replica_id = replica
    answer = (peer or world.connect()).ask(request, version)
    return answer if answer is NOTHING else answer.responses[0].partitions[0]


def append(world, *, acks=1):
    peer = world.connect()
    return peer, peer.ask(produce("led", {0: batch(b"x")}, acks=acks), 9)


@pytest.mark.parametrize("version", [4, 12, 15, 18])
def test_a_follower_reads_to_the_end_and_consumers_what_is_committed(world, led, version):
    append(world)
    asked = {} if version >= 9 else {"current_leader_epoch": -1}
    row = ask(world, 0, version=version, **asked)
    assert (row.error_code, row.high_watermark, len(bytes(row.records)) > 60) == (0, 0, True)
    consumer = world.connect().ask(fetch("led", {0: 0}), 11).responses[0].partitions[0]
    assert (consumer.high_watermark, bytes(consumer.records)) == (0, b"")
    row = ask(world, 1, version=version, **asked)
    assert (row.error_code, bytes(row.records), led.high_watermark) == (0, b"", 1)
    assert world.connect().ask(fetch("led", {0: 0}), 11).responses[0].partitions[0].high_watermark == 1


def test_acks_all_is_answered_when_the_follower_has_it(world, led):
    peer, answer = append(world, acks=-1)
    assert answer is NOTHING
    ask(world, 0)
    world.turn()
    assert not peer.answers
    ask(world, 1)
    world.turn()
    assert peer.answers[0].responses[0].partition_responses[0].error_code == 0


def test_a_follower_that_waits_is_told_of_an_append_at_once(world, led):
    follower = world.connect()
    assert ask(world, 0, peer=follower, max_wait_ms=500) is NOTHING
    append(world)
    world.turn()
    (answer,) = follower.answers
    assert len(bytes(answer.responses[0].partitions[0].records)) > 60


def test_a_consumer_that_waits_is_told_when_the_high_watermark_rises(world, led):
    consumer = world.connect()
    assert consumer.ask(fetch("led", {0: 0}, max_wait_ms=500), 11) is NOTHING
    append(world)
    world.turn()
    assert not consumer.answers
    ask(world, 1)
    world.turn()
    assert len(bytes(consumer.answers[0].responses[0].partitions[0].records)) > 60


def test_who_is_no_replica_is_told_to_ask_again(world, led):
    """A replica may have heard of a reassignment before its leader."""
    assert ask(world, 0, replica=7).error_code == errors.UNKNOWN_LEADER_EPOCH
    assert ask(world, 0, replica=7, current_leader_epoch=-1).error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_an_earlier_life_of_a_broker_is_refused_and_not_counted(world, led):
    """KIP-903. Without an epoch nothing is checked, as before version 15."""
    append(world)
    known = world.broker.image.brokers[OTHER].epoch
    assert ask(world, 1, epoch=known - 1).error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert led.high_watermark == 0
    assert ask(world, 1, epoch=-1).error_code == 0
    assert led.high_watermark == 1


@pytest.mark.parametrize(("epoch", "expected"), [(4, errors.FENCED_LEADER_EPOCH), (6, errors.UNKNOWN_LEADER_EPOCH)])
def test_another_epoch_is_refused_and_not_counted(world, led, epoch, expected):
    append(world)
    led.lead(5, sole_replica=False)
    assert ask(world, 1, current_leader_epoch=epoch).error_code == expected
    assert led.high_watermark == 0


def test_an_offset_beyond_the_end_and_below_the_start(world, led):
    for _ in range(3):
        append(world)
    ask(world, 3)
    assert ask(world, 4).error_code == errors.OFFSET_OUT_OF_RANGE
    led.delete_records(2)
    row = ask(world, 1)
    assert (row.error_code, row.log_start_offset) == (errors.OFFSET_OUT_OF_RANGE, -1)
    row = ask(world, 1, last_fetched_epoch=0)
    assert (row.error_code, row.diverging_epoch.epoch) == (errors.OFFSET_OUT_OF_RANGE, -1)
    assert ask(world, 3).log_start_offset == 2


def test_logs_that_differ_are_told_where_and_not_counted(world, led):
    append(world)
    led.lead(5, sole_replica=False)
    append(world)
    state = world.broker.image.topics["led"].partitions[0]
    asked = {"current_leader_epoch": 5}
    before = led.replica.high_watermark
    row = ask(world, 2, last_fetched_epoch=0, **asked)
    assert (row.error_code, row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 0, 1)
    row = ask(world, 2, last_fetched_epoch=3, **asked)
    assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 1)
    assert ask(world, 2, last_fetched_epoch=6, **asked).error_code == errors.OFFSET_OUT_OF_RANGE
    assert led.replica.high_watermark == before and state.leader_epoch == 0


def test_a_follower_that_stops_asking_leaves_the_isr_and_the_rest_commits(world, led):
    append(world)
    world.advance(50, 10)
    assert led.replica.isr == (world.broker.node_id,)
    assert world.connect().ask(produce("led", {0: batch(b"x")}), 9).responses[0].partition_responses[0].error_code == (
        errors.NOT_ENOUGH_REPLICAS
    )
    row = ask(world, 1)
    world.turn()
    assert (row.error_code, led.replica.isr) == (0, (world.broker.node_id, OTHER))
    ask(world, 1)
    assert led.high_watermark == 1


def test_a_client_quota_does_not_hold_followers_up(world, led):
    """As in Kafka: replication has throttles of its own."""
    append(world)
    request = messages.AlterClientQuotasRequest
    change = request.EntryData(
        entity=[request.EntityData(entity_type="client-id", entity_name="test")],
        ops=[request.OpData(key="consumer_byte_rate", value=1.0, remove=False)],
    )
    world.connect().ask(request(entries=[change], validate_only=False), 1)
    for _ in range(3):
        assert len(bytes(ask(world, 0).records)) > 60


@pytest.mark.parametrize("version", [4, 5, 11])
def test_a_new_leader_does_not_tell_an_end_that_may_go_back(world, led, version):
    """KIP-207: until it knows that all is committed which was before its epoch."""
    append(world)
    led.replica.epoch_start_offset = 1
    request = messages.ListOffsetsRequest

    def find(timestamp, replica_id=-1):
        asked = request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topics = [request.ListOffsetsTopic(name="led", partitions=[asked])]
        row = world.connect().ask(request(replica_id=replica_id, topics=topics), version).topics[0].partitions[0]
        return row.error_code, row.offset

    refused = errors.OFFSET_NOT_AVAILABLE if version >= 5 else errors.LEADER_NOT_AVAILABLE
    assert find(-1) == (refused, -1)
    assert find(0) == (refused, -1), "the record is not committed"
    assert find(-2) == (0, 0)
    assert find(-1, replica_id=OTHER) == (0, 1)
    ask(world, 1)
    assert find(-1) == (0, 1) and find(0) == (0, 0)


def test_each_record_of_a_turn_waits_as_long_as_its_own_request_allows(world, led):
    """On one connection an answer waits for those before it, and what has timed out stays so."""
    first, second, both = (world.connect() for _ in range(3))
    for peer, timeout_ms in ((first, 2000), (second, 60_000), (both, 2000), (both, 60_000)):
        request = produce("led", {0: batch(b"x")}, acks=-1)
        request.timeout_ms = timeout_ms
        peer.put_on_the_wire(peer.encode(request, 9))
    world.turn()
    assert led.written_end_offset == 4
    world.advance(3.5, 8)
    assert [len(peer.answers) for peer in (first, second, both)] == [1, 0, 0]
    assert first.answers[0].responses[0].partition_responses[0].error_code == errors.REQUEST_TIMED_OUT
    ask(world, 4)
    world.turn()
    codes = [[each.responses[0].partition_responses[0].error_code for each in peer.answers] for peer in (second, both)]
    assert codes == [[0], [errors.REQUEST_TIMED_OUT, 0]]


def test_acks_all_waits_no_longer_than_its_timeout(world, led):
    """Another record, with a longer timeout, goes on waiting; both are written."""
    peers = []
    for timeout_ms in (2000, 60_000):
        request = produce("led", {0: batch(b"x")}, acks=-1)
        request.timeout_ms = timeout_ms
        peers.append(world.connect())
        assert peers[-1].ask(request, 9) is NOTHING
    world.advance(1.9, 4)
    assert not peers[0].answers
    world.advance(1.5, 4)
    row = peers[0].answers[0].responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (errors.REQUEST_TIMED_OUT, -1)
    assert not peers[1].answers
    ask(world, 2)
    world.turn()
    row = peers[1].answers[0].responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (0, 1)
