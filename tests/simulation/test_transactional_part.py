"""Transactions whose partitions and coordinator are on brokers that fail, one case each; seeds have the rest."""

from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from pykafkad.wire.batch import CONTROL_ABORT, CONTROL_COMMIT, build_batch, control_key
from tests.simulation.replication_checkers import Violation
from tests.simulation.replication_clients import Clients
from tests.simulation.replication_faults import FAULTS, TRANSACTIONS, FaultyWorld
from tests.simulation.replication_world import World
from tests.simulation.transactional_part import OFFSETS, READ_COMMITTED, STATE, STATE_PARTITIONS, committed_of

COORDINATOR, LEADER, OTHER = 1, 2, 3


@pytest.fixture
def world():
    """Broker 1 coordinates, broker 2 leads the partition, and 3 has what they have."""
    made = World(1, **{"request.timeout.ms": "2000"})
    made.create_topic("__transaction_state", [[COORDINATOR, OTHER, LEADER]], min_insync_replicas=2)
    made.create_topic("t", [[LEADER, OTHER, COORDINATOR]], min_insync_replicas=2)
    yield made
    assert not made.unexpected_errors()


def begun(world):
    """A client whose transaction has one record; its producer id and epoch."""
    clients = Clients(world)
    init = messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    answers = []

    def is_answered():
        answers[:] = [clients.ask(COORDINATOR, init)]
        return not answers[0].error_code

    world.run(5.0, holds=is_answered)
    producer = answers[0].producer_id, answers[0].producer_epoch
    row = messages.ProduceRequest
    batch = build_batch(
        [(None, b"v")], producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, is_transactional=True
    )
    data = row.PartitionProduceData(index=0, records=bytes(batch))
    topic = row.TopicProduceData(name="t", topic_id=world.image.topics["t"].id, partition_data=[data])
    answer = clients.ask(LEADER, row(transactional_id="x", acks=-1, timeout_ms=3000, topic_data=[topic]))
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE
    return clients, producer


def committed(clients, node_id):
    request = clients.fetch_request("t", 0, 0, isolation_level=READ_COMMITTED)
    return [value for _, value in committed_of(clients.ask(node_id, request).responses[0].partitions[0], 0)[1]]


@pytest.mark.parametrize("vanishes", [False, True], ids=["refuses", "vanishes"])
def test_markers_go_to_the_new_leader_when_the_old_one_is_gone(world, vanishes):
    """They neither wait for a connection to the old leader, nor for longer than request.timeout.ms for its answer."""
    clients, (producer_id, epoch) = begun(world)
    world.nodes[LEADER].kill(vanishes=vanishes)
    end = messages.EndTxnRequest(transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=True)
    assert clients.ask(COORDINATOR, end).error_code == errors.NONE

    def is_ended():
        log = world.log(OTHER, "t")
        return world.state("t").leader == OTHER and log.last_stable_offset == 2

    world.run(8.0, holds=is_ended)
    assert is_ended(), world.log(OTHER, "t").last_stable_offset
    assert committed(clients, OTHER) == [b"v"]


# --- what a consumer makes of an answer ----------------------------------------------------------------------------


def written(offset, value, producer_id=-1):
    """A batch of one record, of a transaction if it has a producer."""
    is_transactional = producer_id >= 0
    return build_batch(
        [(None, value)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )


def marker(offset, producer_id, control_type):
    return build_batch(
        [(control_key(control_type), b"\x00" * 6)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def read(batches, aborted=(), offset=0):
    """`aborted` are pairs of producer id and first offset, in any order."""
    rows = [SimpleNamespace(producer_id=each, first_offset=first) for each, first in aborted]
    return committed_of(SimpleNamespace(records=b"".join(batches), aborted_transactions=rows), offset)


def test_records_of_aborted_transactions_are_left_out_until_their_markers():
    batches = [
        written(0, b"aborted", 1),
        written(1, b"committed", 2),
        written(2, b"plain"),
        written(3, b"aborted too", 1),
        marker(4, 1, CONTROL_ABORT),
        written(5, b"of the next transaction", 1),
        marker(6, 2, CONTROL_COMMIT),
        marker(7, 1, CONTROL_COMMIT),
    ]
    end, records = read(batches, [(1, 0)])
    assert end == 8 and records == [(1, b"committed"), (2, b"plain"), (5, b"of the next transaction")]


def test_a_transaction_that_was_aborted_later_is_not_left_out_before_it_begins():
    batches = [written(0, b"first", 1), marker(1, 1, CONTROL_COMMIT), written(2, b"second", 1)]
    assert read(batches, [(1, 2)])[1] == [(0, b"first")]


def test_records_before_the_offset_that_was_asked_for_are_left_out():
    batch = build_batch([(None, b"a"), (None, b"b")], base_offset=4)
    assert read([batch], offset=5) == (6, [(5, b"b")])


# --- what the part of a world checks -------------------------------------------------------------------------------

WITH_TRANSACTIONS = 0
"""A seed that has them."""


@pytest.fixture
def faulty():
    """Nothing fails but what a test does."""
    made = FaultyWorld(WITH_TRANSACTIONS, FAULTS)
    made.look()
    made.run(3.0)
    return made


def test_transactions_can_be_left_out():
    assert FaultyWorld(WITH_TRANSACTIONS, (*FAULTS, TRANSACTIONS)).transactions is None


@pytest.mark.long
def test_a_world_without_faults_holds(faulty):
    faulty.finish()
    part = faulty.transactions
    assert all(each.committed for each in part.writers) and part.idempotent.acknowledged
    assert not part.history.spoiled and not part.history.forgotten


@pytest.mark.long
def test_a_loss_is_forgiven_where_it_happened(faulty):
    part = faulty.transactions
    for index in range(STATE_PARTITIONS):
        part.lost((STATE, index))
    part.lost((OFFSETS, 0))
    part.lost(("a", 1))
    names = {each.name for each in part.writers}
    assert part.history.forgotten == part.history.without_offsets == names
    assert part.history.spoiled == {("a", 1)}
    faulty.finish()


@pytest.mark.long
def test_a_transaction_that_hangs_is_noticed(faulty):
    """A batch whose transaction no coordinator knows."""
    log = faulty.log(faulty.state("b").leader, "b")
    faulty.finish()
    log.producers.ongoing[log.high_watermark - 1] = 12345
    with pytest.raises(Violation, match="a transaction hangs"):
        faulty.transactions.check()


@pytest.mark.long
def test_a_last_stable_offset_that_falls_is_noticed(faulty):
    log = faulty.log(faulty.state("b").leader, "b")
    log.producers.ongoing = {0: 12345}
    with pytest.raises(Violation, match="last stable offset 0 after"):
        faulty.run(1.0)
