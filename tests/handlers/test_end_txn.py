"""EndTxn: the end of transactions, over a whole broker."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.transaction_requests import Producer


@pytest.fixture
def producer(world, peer):
    made = Producer(world, peer).create_topic().find()
    assert made.init() == "NONE"
    return made


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends(producer, version, commit):
    before = producer.producer_id, producer.epoch
    assert producer.add(0, 1) == ["NONE", "NONE"]
    assert producer.state() == "Ongoing"
    assert producer.end(commit, version) == "NONE"
    assert producer.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert (producer.producer_id, producer.epoch) == (before[0], before[1] + (version >= 5))


@pytest.mark.parametrize("version", range(6))
def test_a_fenced_producer_is_told_as_its_version_knows(world, producer, version):
    old = producer.epoch
    assert producer.init() == "NONE"
    producer.epoch = old
    assert producer.end(True, version) == ("PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH")


def test_an_unknown_or_empty_id(world, producer):
    other = Producer(world, producer.peer, "another").find()
    assert other.end() == "INVALID_PRODUCER_ID_MAPPING"
    other.transactional_id = ""
    assert other.end() == "INVALID_REQUEST"


def test_without_the_topic_nobody_coordinates(world, peer):
    answer = peer.ask(messages.EndTxnRequest(transactional_id="t", producer_id=1, producer_epoch=0), 5)
    assert answer.error_code == errors.NOT_COORDINATOR
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_a_deleted_topic_holds_up_no_end(producer):
    producer.create_topic("gone")
    assert producer.add(0) == ["NONE"] == producer.add(1, topic="gone")
    names = [messages.DeleteTopicsRequest.DeleteTopicState(name="gone")]
    producer.peer.ask(messages.DeleteTopicsRequest(topics=names, timeout_ms=1000), 6)
    assert producer.end() == "NONE"
    assert producer.state() == "CompleteCommit"


def test_a_transaction_survives_a_restart_and_is_ended_after_it(world, producer):
    producer.add(0)
    world.stop()
    producer.world = again = world.restart()
    producer.peer = again.connect()
    producer.find()
    assert producer.state() == "Ongoing"
    assert producer.end(version=5) == "NONE"
    assert producer.state() == "CompleteCommit"


def test_an_open_transaction_is_aborted_after_its_timeout(world, producer):
    assert producer.init(transaction_timeout_ms=5_000) == "NONE"
    producer.add(0)
    world.clock.advance(12)
    world.turn()
    assert producer.state() == "CompleteAbort"
    assert producer.end() == "PRODUCER_FENCED"
