"""Produce with a transactional id: what the transaction coordinator is asked, when, and what becomes of its answer."""

from __future__ import annotations

import pytest

from pykafkad import errors
from tests.handlers.requests import batch, produce
from tests.handlers.transactions import Coordinator


@pytest.fixture
def coordinator(world):
    world.create_topic("t", 2)
    made = world.broker.services.transactions = Coordinator()
    return made


def records(sequence=0, *, epoch=0, producer_id=1, value=b"v"):
    return batch(value, is_transactional=True, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def rows(answer):
    return [(row.error_code, row.base_offset) for topic in answer.responses for row in topic.partition_responses]


def send(peer, version, partitions, **fields):
    return rows(peer.ask(produce("t", partitions, transactional_id="tx", **fields), version))


def end(world, *, epoch=0, abort=False, version=0):
    log = world.broker.partitions.get("t", 0)
    log.append_end_marker(1, epoch, 0, world.runtime.now_ms, is_abort=abort, transaction_version=version)
    world.broker.commits.mark(log)
    world.turn()


@pytest.mark.parametrize(("version", "verify_only"), [(3, True), (11, True), (12, False)])
def test_the_coordinator_is_asked_once_for_each_transaction(world, peer, coordinator, version, verify_only):
    assert send(peer, version, {0: records(), 1: records()}) == [(0, 0), (0, 0)]
    assert send(peer, version, {0: records(1)}) == [(0, 1)]
    assert coordinator.asked == [("tx", 1, 0, [("t", 0), ("t", 1)], verify_only)]
    end(world, epoch=1)
    assert send(peer, version, {0: records(epoch=1)}) == [(0, 3)]
    assert len(coordinator.asked) == 2


def test_the_answer_waits_for_the_coordinator(world, peer, coordinator):
    """So do the later requests of the connection. The receive buffer is used by others meanwhile."""
    coordinator.code = None
    other = world.connect()
    peer.send(produce("t", {0: records(value=b"first")}, transactional_id="tx"), 12)
    peer.send(produce("t", {0: records(1, value=b"second")}, transactional_id="tx"), 12)
    assert peer.answers == []
    assert rows(other.ask(produce("t", {1: batch(b"x" * 5000)}), 12)) == [(0, 0)]
    coordinator.answer(0)
    world.turn()
    world.turn()
    assert [rows(answer) for answer in peer.answers] == [[(0, 0)], [(0, 1)]]
    log = world.broker.partitions.get("t", 0)
    assert log.last_stable_offset == 0
    data = log.read(0, 10_000, end_offset=log.end_offset)
    content = data.file.pread(data.chunk_size, data.position)
    assert b"first" in content and b"second" in content


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        (11, errors.INVALID_TXN_STATE, errors.INVALID_TXN_STATE),
        (10, errors.TRANSACTION_ABORTABLE, errors.INVALID_TXN_STATE),
        (11, errors.TRANSACTION_ABORTABLE, errors.TRANSACTION_ABORTABLE),
        (12, errors.TRANSACTION_ABORTABLE, errors.TRANSACTION_ABORTABLE),
        (11, errors.NOT_COORDINATOR, errors.NOT_ENOUGH_REPLICAS),
        (12, errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NOT_ENOUGH_REPLICAS),
        (11, errors.CONCURRENT_TRANSACTIONS, errors.NOT_ENOUGH_REPLICAS),
        (11, errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH),
        (12, errors.INVALID_PRODUCER_ID_MAPPING, errors.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_the_coordinator_says_becomes_an_error_of_the_row(world, peer, coordinator, version, code, told):
    coordinator.code = code
    assert send(peer, version, {0: records()}) == [(told, -1)]
    assert world.broker.partitions.get("t", 0).end_offset == 0
    coordinator.code = 0
    assert send(peer, version, {0: records()}) == [(0, 0)]


def test_the_row_says_what_kept_the_coordinator_from_answering(peer, coordinator):
    coordinator.code = errors.NOT_COORDINATOR
    (topic,) = peer.ask(produce("t", {0: records()}, transactional_id="tx"), 11).responses
    assert topic.partition_responses[0].error_message == (
        "Unable to verify the partition has been added to the transaction. Underlying error: NOT_COORDINATOR"
    )


def test_a_transaction_that_is_just_ending_is_asked_for_again(world, peer, coordinator):
    """From version 12, every 20 ms for 100 ms."""
    coordinator.code = errors.CONCURRENT_TRANSACTIONS
    peer.send(produce("t", {0: records()}, transactional_id="tx"), 12)
    world.advance(0.02)
    assert (len(coordinator.asked), peer.answers) == (2, [])
    coordinator.code = 0
    world.advance(0.02)
    world.turn()
    assert [rows(answer) for answer in peer.answers] == [[(0, 0)]]
    coordinator.code = errors.CONCURRENT_TRANSACTIONS
    peer.send(produce("t", {1: records()}, transactional_id="tx"), 12)
    for _ in range(10):
        world.advance(0.02)
    assert rows(peer.answers[-1]) == [(errors.CONCURRENT_TRANSACTIONS, -1)]
    assert len(coordinator.asked) == 3 + 6


def test_a_marker_while_the_coordinator_is_asked_refuses_the_batch(world, peer, coordinator):
    """What the coordinator says may be about the transaction that has ended."""
    coordinator.code = None
    peer.send(produce("t", {0: records()}, transactional_id="tx"), 11)
    end(world, abort=True)
    coordinator.answer(0)
    world.turn()
    assert rows(peer.answers[0]) == [(errors.INVALID_TXN_STATE, -1)]


def test_an_older_epoch_is_refused_without_a_question(world, peer, coordinator):
    assert send(peer, 12, {0: records(epoch=3)}) == [(0, 0)]
    assert send(peer, 12, {0: records(epoch=2), 1: records(epoch=2)}) == [(errors.INVALID_PRODUCER_EPOCH, -1), (0, 0)]
    assert coordinator.asked[-1] == ("tx", 1, 2, [("t", 1)], False)


def test_batches_of_two_producers_refuse_the_request(world, peer, coordinator):
    refused = [(errors.INVALID_PRODUCER_ID_MAPPING, -1)] * 2
    assert send(peer, 12, {0: records(), 1: records(producer_id=2)}) == refused
    assert send(peer, 11, {0: records(), 1: records(epoch=1)}) == refused
    assert coordinator.asked == []


def test_verification_can_be_switched_off_for_older_clients(world, peer, coordinator):
    world.broker.settings.set_dynamic({"transaction.partition.verification.enable": "false"}, {})
    assert send(peer, 11, {0: records()}) == [(0, 0)]
    assert coordinator.asked == []
    assert send(peer, 12, {1: records()}) == [(0, 0)]
    assert len(coordinator.asked) == 1


def test_partitions_that_cannot_be_written_are_not_asked_for(peer, coordinator):
    coordinator.code = errors.NOT_COORDINATOR
    assert send(peer, 12, {7: records(), 0: batch(b"plain")}) == [(errors.UNKNOWN_TOPIC_OR_PARTITION, -1), (0, 0)]
    assert coordinator.asked == []


def test_a_batch_of_a_transaction_needs_a_transactional_id(world, peer, coordinator):
    """Without one the request is refused as a whole, also while the transaction is ongoing."""
    code = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert rows(peer.ask(produce("t", {0: records()}), 12)) == [(code, -1)]
    assert send(peer, 12, {0: records()}) == [(0, 0)]
    assert rows(peer.ask(produce("t", {0: records(1)}), 12)) == [(code, -1)]
    assert rows(peer.ask(produce("t", {1: batch(b"v"), 0: records(1)}), 12)) == [(code, -1)] * 2


def test_without_an_answer_a_refusal_closes_the_connection(world, peer, coordinator):
    coordinator.code = None
    peer.send(produce("t", {0: records()}, acks=0, transactional_id="tx"), 12)
    coordinator.answer(0)
    world.turn()
    assert peer.closed is None
    assert world.broker.partitions.get("t", 0).written_end_offset == 1
    peer.send(produce("t", {1: records()}, acks=0, transactional_id="tx"), 12)
    coordinator.answer(errors.NOT_COORDINATOR)
    world.turn()
    assert peer.closed


def test_a_closed_connection_loses_no_batch(world, peer, coordinator):
    coordinator.code = None
    peer.send(produce("t", {0: records()}, transactional_id="tx"), 12)
    peer.connection.close("test")
    world.turn()
    coordinator.answer(0)
    world.turn()
    assert world.broker.partitions.get("t", 0).written_end_offset == 1


def test_bytes_that_are_no_batch_belong_to_no_transaction(world, peer, coordinator):
    garbage = b"\xff" * 100
    assert rows(peer.ask(produce("t", {0: garbage}), 12))[0][0] == errors.CORRUPT_MESSAGE
    assert send(peer, 12, {0: garbage})[0][0] == errors.CORRUPT_MESSAGE
    assert send(peer, 12, {0: bytes(records())[:-1]})[0][0] == errors.INVALID_RECORD
    assert coordinator.asked == []
