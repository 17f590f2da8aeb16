"""The rules of a `TransactionShard`, one by one: as Kafka 4.3.1's TransactionCoordinator has them."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import transaction_states as states
from pykafkad.coordinator.transaction_shard import RECORDS_PER_APPEND, TIMER_MARKERS
from pykafkad.effects import Append
from tests.coordinator.transaction_world import TransactionWorld, hard_state

A, B, C = ("a", 0), ("a", 1), ("c", 0)
LAST = 32_766  # The last epoch that a producer gets.


def open_transaction(world, *places):
    producer = world.producer()
    assert world.add(producer, *(places or (A, B))) == "NONE"
    return producer


# InitProducerId.


def test_a_new_id_gets_a_producer_with_epoch_0():
    world = TransactionWorld()
    assert world.init() == ("NONE", 1_001, 0)
    assert world.state() == "Empty" and len(world.log) == 1


def test_each_further_producer_gets_the_next_epoch():
    world = TransactionWorld()
    world.init()
    assert world.init() == ("NONE", 1_001, 1)
    assert world.init("other") == ("NONE", 1_002, 0)


def test_without_producer_ids_the_client_asks_again():
    world = TransactionWorld()
    world.ids_left = 0
    assert world.init() == ("COORDINATOR_LOAD_IN_PROGRESS", -1, -1)
    assert world.state() is None and not world.log


def test_an_open_transaction_is_aborted_before_its_id_is_given_out_again():
    world = TransactionWorld()
    producer = open_transaction(world)
    assert world.init() == ("CONCURRENT_TRANSACTIONS", -1, -1)
    assert world.markers == [(A, producer[0], 1, False), (B, producer[0], 1, False)]
    assert world.state() == "CompleteAbort"
    assert world.init() == ("NONE", producer[0], 2)
    assert world.add(producer, A) == "PRODUCER_FENCED"


@pytest.mark.parametrize("version", (0, 1, 2))
def test_the_fencing_abort_bumps_the_epoch_once_in_every_version(version):
    world = TransactionWorld(version)
    producer = open_transaction(world)
    world.init()
    assert [marker[2] for marker in world.markers] == [producer[1] + 1] * 2
    assert world.shard.transactions["t"].client_version == (2 if version == 2 else 0)


def test_while_the_markers_are_written_the_client_asks_again():
    world = TransactionWorld()
    producer = open_transaction(world)
    world.holds_markers = True
    assert world.end(producer)[0] == "NONE"
    assert world.state() == "PrepareCommit"
    assert world.init()[0] == "CONCURRENT_TRANSACTIONS"
    assert world.add(producer, C) == "CONCURRENT_TRANSACTIONS"
    assert world.verify(producer, A) == ["CONCURRENT_TRANSACTIONS"]
    assert world.end(producer)[0] == world.end(producer, False)[0] == "CONCURRENT_TRANSACTIONS"
    assert world.end((producer[0], 9))[0] == "PRODUCER_FENCED"


def test_a_producer_goes_on_with_its_epoch_and_may_repeat_that():
    world = TransactionWorld()
    producer_id, epoch = world.producer()
    assert world.init(expected=(producer_id, epoch)) == ("NONE", producer_id, 1)
    assert world.init(expected=(producer_id, epoch)) == ("NONE", producer_id, 1)
    assert world.init(expected=(producer_id, 1)) == ("NONE", producer_id, 2)
    assert world.init(expected=(producer_id, epoch)) == ("PRODUCER_FENCED", -1, -1)
    assert world.init(expected=(producer_id + 5, 2)) == ("PRODUCER_FENCED", -1, -1)


def test_a_newer_producer_makes_the_repetition_fail():
    world = TransactionWorld()
    producer = world.producer()
    world.init(expected=producer)
    world.init()
    assert world.init(expected=producer)[0] == "PRODUCER_FENCED"


def test_an_expected_producer_of_an_unknown_id_gets_a_new_one():
    world = TransactionWorld()
    assert world.init(expected=(77, 5)) == ("NONE", 1_001, 0)


def test_old_clients_are_told_of_an_invalid_epoch():
    world = TransactionWorld()
    producer_id, _ = world.producer()
    assert world.init(expected=(producer_id, 5), knows_fenced=False)[0] == "INVALID_PRODUCER_EPOCH"
    assert world.end((producer_id, 5), knows_fenced=False)[0] == "INVALID_PRODUCER_EPOCH"
    assert world.end((producer_id, 5))[0] == "PRODUCER_FENCED"


def test_used_up_epochs_give_a_new_producer_id():
    world = TransactionWorld()
    producer_id, _ = world.at_epoch(LAST)
    assert world.init() == ("NONE", producer_id + 1, 0)
    assert world.shard.transactions["t"].previous_producer_id == producer_id


def test_the_producer_with_the_last_epoch_gets_a_new_id_and_may_repeat_that():
    world = TransactionWorld()
    old = world.at_epoch(LAST)
    assert world.init(expected=old) == ("NONE", old[0] + 1, 0)
    assert world.init(expected=old) == ("NONE", old[0] + 1, 0)
    assert world.init(expected=(old[0], LAST - 1))[0] == "PRODUCER_FENCED"


def test_another_epoch_than_the_last_is_kafkas_unknown_error():
    world = TransactionWorld()
    producer_id, _ = world.at_epoch(LAST)
    assert world.init(expected=(producer_id, 4))[0] == "UNKNOWN_SERVER_ERROR"


def test_used_up_epochs_without_producer_ids():
    world = TransactionWorld()
    world.at_epoch(LAST)
    world.ids_left = 0
    assert world.init()[0] == "COORDINATOR_LOAD_IN_PROGRESS"


# Partitions.


def test_partitions_are_added_and_known():
    world = TransactionWorld()
    producer = world.producer()
    assert world.verify(producer, A) == ["TRANSACTION_ABORTABLE"]
    assert world.add(producer, A) == "NONE"
    started_ms = world.shard.transactions["t"].start_ms
    world.advance(1)
    assert world.add(producer, B) == "NONE"
    assert world.verify(producer, A, C, B) == ["NONE", "TRANSACTION_ABORTABLE", "NONE"]
    assert world.shard.transactions["t"].start_ms == started_ms
    assert world.state() == "Ongoing"


def test_known_partitions_are_not_written_again():
    world = TransactionWorld()
    producer = open_transaction(world)
    before = len(world.log)
    assert world.add(producer, B) == "NONE"
    assert len(world.log) == before


def test_a_transaction_whose_record_is_too_large_gets_no_more_partitions():
    """As Kafka, whose log of transactions refuses the record."""
    world = TransactionWorld(message_max_bytes=10_000)
    producer = world.producer()
    places = [("t", number) for number in range(2_400)]
    assert world.add(producer, *places) == "NONE"
    assert world.add(producer, *(("u", number) for number in range(200))) == "UNKNOWN_SERVER_ERROR"
    assert len(world.shard.transactions["t"].partitions) == len(places)
    assert world.end(producer)[0] == "NONE"


@pytest.mark.parametrize(
    ("change", "error"),
    (((1, 0), "INVALID_PRODUCER_ID_MAPPING"), ((0, 1), "PRODUCER_FENCED"), ((0, -1), "PRODUCER_FENCED")),
)
def test_others_may_not_add_verify_or_end(change, error):
    world = TransactionWorld()
    producer_id, epoch = open_transaction(world)
    other = (producer_id + change[0], epoch + change[1])
    assert world.add(other, C) == error
    assert world.verify(other, A) == [error]
    assert world.end(other)[0] == error
    assert world.end(other, version=2)[0] == error
    assert world.state() == "Ongoing"


def test_an_unknown_id_has_no_producer():
    world = TransactionWorld()
    assert world.add((1, 0), A) == "INVALID_PRODUCER_ID_MAPPING"
    assert world.verify((1, 0), A) == ["INVALID_PRODUCER_ID_MAPPING"]
    assert world.end((1, 0))[0] == "INVALID_PRODUCER_ID_MAPPING"
    assert not world.log


# The end, transaction version 1.


@pytest.mark.parametrize("commit", (True, False))
def test_a_transaction_ends_with_a_marker_in_each_partition(commit):
    world = TransactionWorld(0)
    producer = open_transaction(world, A, C)
    assert world.end(producer, commit) == ("NONE", -1, -1)
    assert world.markers == [(A, *producer, commit), (C, *producer, commit)]
    assert world.state() == ("CompleteCommit" if commit else "CompleteAbort")
    # It may be asked for again, and the other end may not.
    assert world.end(producer, commit) == ("NONE", -1, -1)
    assert world.end(producer, not commit)[0] == "INVALID_TXN_STATE"
    assert world.add(producer, A) == "NONE"
    assert list(world.shard.transactions["t"].partitions) == [A]


def test_what_was_not_begun_cannot_be_ended():
    world = TransactionWorld()
    producer = world.producer()
    assert world.end(producer)[0] == world.end(producer, False)[0] == "INVALID_TXN_STATE"


# The end, transaction version 2.


@pytest.mark.parametrize("commit", (True, False))
def test_each_end_bumps_the_epoch_and_may_be_repeated(commit):
    world = TransactionWorld()
    producer = open_transaction(world)
    assert world.end(producer, commit, version=2) == ("NONE", producer[0], 1)
    assert world.markers == [(A, producer[0], 1, commit), (B, producer[0], 1, commit)]
    assert world.end(producer, commit, version=2) == ("NONE", producer[0], 1)
    assert world.end(producer, not commit, version=2)[0] == "INVALID_TXN_STATE"
    assert world.add(producer, A, version=2) == "PRODUCER_FENCED"
    assert world.add((producer[0], 1), A, version=2) == "NONE"


def test_what_was_not_begun_can_be_aborted():
    world = TransactionWorld()
    producer = world.producer()
    assert world.end(producer, version=2)[0] == "INVALID_TXN_STATE"
    assert world.end(producer, False, version=2) == ("NONE", producer[0], 1)
    assert world.state() == "CompleteAbort" and not world.markers
    assert world.shard.transactions["t"].start_ms == world.clock.now_ms()
    # With the present epoch it is a further transaction that was not begun, with the one before a repeated request.
    assert world.end((producer[0], 1), version=2)[0] == "INVALID_TXN_STATE"
    assert world.end((producer[0], 1), False, version=2) == ("NONE", producer[0], 2)
    assert world.end((producer[0], 1), False, version=2) == ("NONE", producer[0], 2)
    assert world.end((producer[0], 1), version=2)[0] == "INVALID_TXN_STATE"


def test_after_a_commit_the_present_epoch_may_only_abort():
    world = TransactionWorld()
    producer = open_transaction(world)
    world.end(producer, version=2)
    assert world.end((producer[0], 1), version=2)[0] == "INVALID_TXN_STATE"
    assert world.end((producer[0], 1), False, version=2) == ("NONE", producer[0], 2)


def test_a_repeated_end_while_the_markers_are_written():
    world = TransactionWorld()
    producer = open_transaction(world)
    world.holds_markers = True
    world.end(producer, version=2)
    assert world.end(producer, version=2)[0] == "CONCURRENT_TRANSACTIONS"
    assert world.end(producer, False, version=2)[0] == "CONCURRENT_TRANSACTIONS"


@pytest.mark.parametrize("epoch", [0, LAST])
def test_a_producer_that_goes_on_waits_for_the_markers(epoch):
    """With the id and epoch of the answer. An error would be the end of it, but it has done nothing wrong."""
    world = TransactionWorld()
    old = world.at_epoch(epoch)
    world.add(old, A, version=2)
    world.holds_markers = True
    following = world.end(old, version=2)[1:]
    for _ in range(2):
        assert world.add(following, A, version=2) == "CONCURRENT_TRANSACTIONS"
        assert world.end(following, False, version=2)[0] == "CONCURRENT_TRANSACTIONS"
        assert world.init(expected=following)[0] == "CONCURRENT_TRANSACTIONS"
        world.restart()
    world.write_markers()
    assert world.add(following, A, version=2) == "NONE"


def test_the_last_epoch_ends_with_a_new_producer_id():
    world = TransactionWorld()
    old = world.at_epoch(LAST)
    world.add(old, A, version=2)
    assert world.end(old, version=2) == ("NONE", old[0] + 1, 0)
    assert world.markers == [(A, old[0], LAST + 1, True)]
    transaction = world.shard.transactions["t"]
    assert (transaction.producer_id, transaction.previous_producer_id) == (old[0] + 1, old[0])
    assert transaction.next_producer_id == -1
    assert world.end(old, version=2) == ("NONE", old[0] + 1, 0)
    assert world.add((old[0] + 1, 0), A, version=2) == "NONE"


def test_the_new_producer_id_survives_a_restart_in_the_middle():
    world = TransactionWorld()
    old = world.at_epoch(LAST)
    world.add(old, A, version=2)
    world.holds_markers = True
    world.end(old, version=2)
    world.holds_markers = False
    world.restart()
    assert world.markers == [(A, old[0], LAST + 1, True)]
    assert world.end(old, version=2) == ("NONE", old[0] + 1, 0)


def test_the_last_epoch_without_producer_ids_is_asked_for_again():
    world = TransactionWorld()
    old = world.at_epoch(LAST)
    world.add(old, A, version=2)
    world.ids_left = 0
    assert world.end(old, version=2)[0] == "COORDINATOR_LOAD_IN_PROGRESS"
    assert world.init()[0] == "COORDINATOR_LOAD_IN_PROGRESS"
    assert world.state() == "Ongoing"


@pytest.mark.parametrize("version", (0, 2))
def test_a_fenced_producer_with_the_last_epoch(version):
    world = TransactionWorld(version)
    old = world.at_epoch(LAST)
    world.add(old, A)
    assert world.init()[0] == "CONCURRENT_TRANSACTIONS"
    assert world.markers == [(A, old[0], LAST + 1, False)]
    error, producer_id, epoch = world.init()
    assert (error, producer_id) == ("NONE", old[0] + 1)
    assert epoch == (1 if version == 2 else 0)


def test_the_epoch_of_a_fencing_coordinator_can_only_abort():
    """A producer learns of it by repeating the end of a transaction that the coordinator has aborted."""
    world = TransactionWorld(1)
    old = world.at_epoch(LAST)
    world.add(old, A)
    world.init()
    assert world.end(old, False, version=2) == ("NONE", old[0], LAST + 1)
    highest = (old[0], LAST + 1)
    assert world.add(highest, A, version=2) == "NONE"
    assert world.end(highest, version=2)[0] == "UNKNOWN_SERVER_ERROR"
    assert world.end(highest, False, version=2) == ("NONE", old[0] + 1, 0)
    assert world.state() == "CompleteAbort"
    assert world.markers[-1] == (A, old[0], LAST + 1, False)


# Markers.


def test_many_transactions_that_cannot_end_are_tried_less_often():
    world = TransactionWorld()
    world.outcome = lambda place: "KAFKA_STORAGE_ERROR"
    for name in map(str, range(1_000)):
        world.add(producer := world.producer(name), A, transactional_id=name)
        world.end(producer, transactional_id=name)
    pauses = [at - world.clock.now() for key, at in world.timers.items() if key[0] == TIMER_MARKERS]
    assert (len(pauses), max(pauses)) == (1_000, pytest.approx(0.3)) and min(pauses) < 0.11


def test_markers_are_tried_again_where_they_are_missing():
    world = TransactionWorld()
    producer = open_transaction(world)
    world.outcome = lambda place: "NONE" if place == A else "NOT_LEADER_OR_FOLLOWER"
    assert world.end(producer)[0] == "NONE"
    assert world.state() == "PrepareCommit"
    (topic,) = world.shard.describe("t").topics
    assert topic.partitions == [1]
    world.outcome = lambda place: "NONE"
    world.advance(0.2)
    assert world.state() == "CompleteCommit"
    assert world.markers == [(A, *producer, True), (B, *producer, True)]


@pytest.mark.parametrize("error", ("UNSUPPORTED_VERSION", "UNSUPPORTED_FOR_MESSAGE_FORMAT"))
def test_a_partition_that_takes_no_markers_needs_none(error):
    world = TransactionWorld()
    producer = open_transaction(world)
    world.outcome = lambda place: error
    world.end(producer)
    assert world.state() == "CompleteCommit"


@pytest.mark.parametrize("error", ("INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED"))
def test_markers_of_a_fenced_coordinator_are_given_up(error):
    world = TransactionWorld()
    producer = open_transaction(world)
    world.outcome = lambda place: error
    world.end(producer)
    world.outcome = lambda place: "NONE"
    world.advance(5)
    assert world.state() == "PrepareCommit" and not world.markers


def test_the_outcome_for_an_earlier_transaction_changes_nothing():
    world = TransactionWorld()
    producer = open_transaction(world)
    world.holds_markers = True
    world.end(producer, version=2)
    late = world.held[0]
    world.write_markers()
    assert world.add((producer[0], 1), A, version=2) == "NONE"
    world.end((producer[0], 1), version=2)
    world.held.insert(0, late)
    answered = world.held.pop()
    world.write_markers()
    assert world.state() == "PrepareCommit"
    world.held.append(answered)
    world.write_markers()
    assert world.state() == "CompleteCommit"


@pytest.mark.parametrize("commit", (True, False))
def test_a_prepared_transaction_is_completed_after_a_load(commit):
    world = TransactionWorld()
    producer = open_transaction(world)
    world.holds_markers = True
    world.end(producer, commit)
    world.holds_markers = False
    world.restart()
    assert world.markers == [(A, *producer, commit), (B, *producer, commit)]
    assert world.state() == ("CompleteCommit" if commit else "CompleteAbort")


# Time.


def test_an_open_transaction_is_aborted_after_its_timeout():
    world = TransactionWorld()
    producer = world.producer()
    assert "timeouts" not in str(world.timers)
    world.add(producer, A)
    world.advance(60)
    assert world.state() == "Ongoing"
    world.advance(11)
    assert world.state() == "CompleteAbort"
    assert world.markers == [(A, producer[0], 1, False)]
    assert world.end(producer, version=2)[0] == "INVALID_TXN_STATE"
    assert world.end(producer)[0] == "PRODUCER_FENCED"
    world.advance(20)
    assert "timeouts" not in str(world.timers)


def test_timeouts_are_looked_for_after_a_load():
    world = TransactionWorld()
    open_transaction(world)
    world.restart()
    world.advance(75)
    assert world.state() == "CompleteAbort"


def test_without_a_timeout_a_transaction_stays_open():
    world = TransactionWorld(transaction_abort_timed_out_transaction_cleanup_interval_ms=10**8)
    _, *producer = world.init(timeout_ms=2**31 - 1)
    world.add(tuple(producer), A)
    world.advance(3_000_000)
    assert world.state() == "Ongoing"


def test_an_unused_id_is_forgotten():
    world = TransactionWorld()
    open_transaction(world)
    world.init("unused")
    world.end(world.producer("used"), False, transactional_id="used", version=2)
    world.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms = 10**12
    world.advance(604_800 - 3_600)
    assert set(world.shard.transactions) == {"t", "unused", "used"}
    world.advance(7_200)
    assert set(world.shard.transactions) == {"t"} or world.state() in ("CompleteAbort", "Ongoing")
    assert world.state("unused") is world.state("used") is None
    assert hard_state(world.replayed()) == hard_state(world.shard)


def test_tombstones_are_written_in_batches_and_the_timer_ends_with_the_ids():
    world = TransactionWorld()
    for number in range(RECORDS_PER_APPEND + 1):
        world.init(f"id {number}")
    sizes = []
    send = world.send
    world.send = lambda event: sizes.extend(len(each.records) for each in send(event) if type(each) is Append)
    world.advance(604_800 + 3_600)
    assert sizes == [RECORDS_PER_APPEND, 1]
    assert not world.shard.transactions and not world.timers


# Reads.


def test_an_id_is_described():
    world = TransactionWorld()
    producer = open_transaction(world, A, C, B)
    row = world.shard.describe("t")
    assert (row.producer_id, row.producer_epoch) == producer
    assert (row.transaction_state, row.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert row.transaction_start_time_ms == world.clock.now_ms()
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [("a", [0, 1]), ("c", [0])]
    assert world.shard.describe("unknown") is None


def test_every_state_that_ends_is_in_the_tables():
    living = set(states.TRANSITIONS)
    assert {state for state, _ in states.END} == {state for state, _ in states.END_WITH_BUMP} == living
    assert set(states.STATE_IDS) == living | {"Dead", "PrepareEpochFence"}
    for table in (states.END, states.END_WITH_BUMP):
        for (state, _), outcome in table.items():
            assert not isinstance(outcome, str) or outcome in states.TRANSITIONS[state]
