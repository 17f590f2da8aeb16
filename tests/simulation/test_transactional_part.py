"""Transactions whose partitions and coordinator are on brokers that fail, one case each; seeds have the rest."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.simulation.replication_clients import Clients
from tests.simulation.replication_world import World
from tests.simulation.transactional_part import READ_COMMITTED, committed_of

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
