"""DescribeTransactions: the state of transactional ids."""

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.transaction_requests import Producer, Refusing
from tests.simulation.world import World


def test_every_id_has_its_own_rows(world, peer):
    """An id that is named twice has two rows."""
    for each in ("one", "n" * 300):
        Producer(world, peer, each).find()
    asked = ["one", "", "one", "n" * 300]
    answer = peer.ask(messages.DescribeTransactionsRequest(transactional_ids=asked), 0)
    not_found = errors.TRANSACTIONAL_ID_NOT_FOUND
    assert [(row.transactional_id, row.error_code) for row in answer.transaction_states] == [
        ("one", not_found),
        ("", errors.INVALID_REQUEST),
        ("one", not_found),
        ("n" * 300, not_found),
    ]
    assert all((row.transaction_state, row.topics) == ("", []) for row in answer.transaction_states)
    assert peer.ask(messages.DescribeTransactionsRequest(), 0).transaction_states == []


def test_without_the_topic_nobody_coordinates(peer):
    (row,) = peer.ask(messages.DescribeTransactionsRequest(transactional_ids=["id"]), 0).transaction_states
    assert row.error_code == errors.NOT_COORDINATOR


def test_an_open_transaction_is_described(world, peer):
    producer = Producer(world, peer).create_topic().find()
    producer.init(transaction_timeout_ms=7_000)
    producer.add(1)
    row = producer.describe()
    assert (row.error_code, row.transaction_state, row.transaction_timeout_ms) == (0, "Ongoing", 7_000)
    assert (row.producer_id, row.producer_epoch) == (producer.producer_id, producer.epoch)
    assert row.transaction_start_time_ms == world.clock.now_ms()
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [("t", [1])]


def test_what_the_caller_may_not_describe_is_hidden(tmp_path):
    """An id has the error in its row; topics are left out."""
    refusing = Refusing()
    world = World(tmp_path, authorizer=refusing)
    producer = Producer(world, world.connect()).create_topic().create_topic("secret").find()
    producer.init()
    assert producer.add(0) == producer.add(0, topic="secret") == ["NONE"]
    refusing.refuse(world, ("Describe", "Topic", "secret"))
    assert [topic.topic for topic in producer.describe().topics] == ["t"]
    refusing.refuse(world, ("Describe", "TransactionalId", "id"))
    row = producer.describe()
    assert (row.error_code, row.topics) == (errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, [])
