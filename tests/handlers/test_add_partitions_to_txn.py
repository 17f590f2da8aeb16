"""AddPartitionsToTxn: of clients up to version 3, of brokers from version 4."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.transaction_requests import Producer


@pytest.fixture
def producer(world, peer):
    made = Producer(world, peer).create_topic().find()
    assert made.init() == "NONE"
    return made


def of_brokers(producer, *asked, version=4):
    """Each asked: (transactional id, producer id, epoch, verify only, topics). Returns the rows by id."""
    request = messages.AddPartitionsToTxnRequest
    transactions = [
        request.AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[
                request.AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()
            ],
        )
        for transactional_id, producer_id, epoch, verify_only, topics in asked
    ]
    answer = producer.peer.ask(request(transactions=transactions), version)
    assert answer.error_code == 0
    return [
        (
            row.transactional_id,
            {
                (topic.name, each.partition_index): name(each.partition_error_code)
                for topic in row.topic_results
                for each in topic.results_by_partition
            },
        )
        for row in answer.results_by_transaction
    ]


@pytest.mark.parametrize("version", range(4))
def test_partitions_join_the_transaction(producer, version):
    assert producer.add(1, 0, version=version) == ["NONE", "NONE"]
    (topic,) = producer.describe().topics
    assert (topic.topic, topic.partitions) == ("t", [1, 0])


@pytest.mark.parametrize("version", range(4))
def test_a_partition_that_cannot_be_added_keeps_the_others_out(producer, version):
    assert producer.add(0, 7, version=version) == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert producer.state() == "Empty"


def test_clients_add_no_partition_of_an_internal_topic(producer):
    assert producer.add(0, topic="__transaction_state") == ["TOPIC_AUTHORIZATION_FAILED"]


@pytest.mark.parametrize("version", range(4))
def test_a_fenced_producer_is_told_as_its_version_knows(producer, version):
    old = producer.epoch
    producer.init()
    producer.epoch = old
    assert producer.add(0, version=version) == ["PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH"]


def test_an_unknown_or_empty_id(world, producer):
    other = Producer(world, producer.peer, "another").find()
    assert other.add(0) == ["INVALID_PRODUCER_ID_MAPPING"]
    other.transactional_id = ""
    assert other.add(0, 1) == ["INVALID_REQUEST", "INVALID_REQUEST"]


@pytest.mark.parametrize("version", (4, 5))
def test_brokers_verify_and_add_several_transactions_at_once(world, producer, version):
    other = Producer(world, producer.peer, "other").find()
    other.init()
    mine = ("id", producer.producer_id, producer.epoch)
    producer.add(0)
    rows = of_brokers(
        producer,
        (*mine, True, {"t": [0, 1]}),
        ("other", other.producer_id, other.epoch, False, {"t": [0], "__consumer_offsets": [0]}),
        ("nobody", 1, 0, True, {"t": [0]}),
        version=version,
    )
    assert rows == [
        ("id", {("t", 0): "NONE", ("t", 1): "TRANSACTION_ABORTABLE"}),
        ("other", {("t", 0): "OPERATION_NOT_ATTEMPTED", ("__consumer_offsets", 0): "UNKNOWN_TOPIC_OR_PARTITION"}),
        ("nobody", {("t", 0): "INVALID_PRODUCER_ID_MAPPING"}),
    ]
    rows = of_brokers(producer, ("other", other.producer_id, other.epoch, False, {"t": [0]}), version=version)
    assert rows == [("other", {("t", 0): "NONE"})]
    assert other.state() == "Ongoing"


def test_the_coordinator_of_this_process_answers_the_data_path(world, producer):
    asked = []

    def ask(indexes, *, verify_only, epoch=producer.epoch, transactional_id="id"):
        world.broker.transactions.add_partitions(
            transactional_id, producer.producer_id, epoch, [("t", each) for each in indexes], verify_only, asked.append
        )
        world.turn()
        return asked.pop()

    assert ask([0], verify_only=True) == {("t", 0): errors.TRANSACTION_ABORTABLE}
    assert ask([0, 1], verify_only=False) == {("t", 0): 0, ("t", 1): 0}
    assert ask([0, 1], verify_only=True) == {("t", 0): 0, ("t", 1): 0}
    assert ask([1], verify_only=False, epoch=9) == {("t", 1): errors.PRODUCER_FENCED}
    assert ask([1], verify_only=False, transactional_id="") == {("t", 1): errors.INVALID_REQUEST}
    world.broker.transactions.resign()
    assert ask([1], verify_only=True) == {("t", 1): errors.NOT_COORDINATOR}
