"""The checker of transactional histories finds each anomaly in a history made by hand, and nothing in a right one."""

import pytest

from tests.simulation.transaction_history import (
    ABORT,
    ABORTED,
    COMMIT,
    COMMITTED,
    PLAIN,
    TRANSACTIONAL,
    UNKNOWN,
    Batch,
    History,
    Poll,
    anomalies,
    log_anomalies,
    outcomes_anomalies,
)

A, B = ("a", 0), ("b", 0)


class Run:
    """A right history with two transactions of `t1`: the first is committed in A and B, the second aborted in A."""

    def __init__(self):
        self.history = History()
        first, second = self.history.begin("t1"), self.history.begin("t1")
        first.sent(A, ["1", "2"])
        first.sent(B, ["3"])
        first.outcome, first.offset = COMMITTED, 0
        second.sent(A, ["4"])
        second.offset = 1
        self.first, self.second = first, second
        self.logs = {
            A: [
                Batch(0, TRANSACTIONAL, 7, 0, 0, ["1"]),
                Batch(1, PLAIN, -1, -1, -1, ["plain"]),
                Batch(2, TRANSACTIONAL, 7, 0, 1, ["2"]),
                Batch(3, COMMIT, 7, 1, -1, ()),
                Batch(4, TRANSACTIONAL, 7, 1, 0, ["4"]),
                Batch(5, ABORT, 7, 2, -1, ()),
            ],
            B: [Batch(0, TRANSACTIONAL, 7, 0, 0, ["3"]), Batch(1, COMMIT, 7, 1, -1, ())],
        }
        self.views = {A: [(0, "1"), (1, "plain"), (2, "2")], B: [(0, "3")]}
        self.polls = {A: [Poll(0, 2, [(0, "1"), (1, "plain")]), Poll(2, 6, [(2, "2")])]}
        self.offsets = {"t1": 0}

    def found(self):
        return anomalies(self.history, self.logs, self.views, self.polls, self.offsets)

    def finds(self, text):
        """Nothing but what `text` says."""
        found = self.found()
        assert found and all(text in each for each in found), found


@pytest.fixture
def run():
    return Run()


def test_a_right_history_has_none(run):
    assert run.found() == []


def test_a_problem_that_a_client_has_noted_is_told(run):
    run.history.fail("fenced, and answered")
    run.finds("fenced, and answered")


def test_a_committed_transaction_lacks_a_record(run):
    run.views[A].remove((2, "2"))
    run.polls.clear()
    run.finds("lacks (('a', 0), '2'), of 3 records 1")


def test_an_aborted_transaction_is_seen(run):
    run.views[A].append((4, "4"))
    run.polls.clear()
    run.offsets.clear()
    run.finds("transaction 1 of t1 (aborted) is seen")


def test_a_transaction_of_unknown_end_is_torn(run):
    """Whether its records of one partition are missing or those of another."""
    run.first.outcome = UNKNOWN
    run.views[B].clear()
    run.finds("is torn: (('a', 0), '1') is seen, and (('b', 0), '3') is not")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_transaction_of_unknown_end_is_there_as_a_whole_or_not_at_all(run, is_there):
    run.first.outcome = UNKNOWN
    if not is_there:
        run.views = {A: [(1, "plain")], B: []}
        run.polls.clear()
        run.offsets["t1"] = -1
    assert run.found() == []


def test_the_offset_of_a_transaction_of_unknown_end_goes_with_its_records(run):
    run.first.outcome = UNKNOWN
    run.offsets["t1"] = -1
    run.finds("group t1 has offset -1 of no transaction, where [0] is due")


def test_the_offset_of_an_aborted_transaction_is_committed(run):
    run.offsets["t1"] = 1
    run.finds("group t1 has offset 1 of transaction 1 of t1 (aborted), where [0] is due")


def test_a_value_is_there_twice(run):
    run.logs[B].append(Batch(2, PLAIN, -1, -1, -1, ["x"]))
    run.logs[B].append(Batch(3, PLAIN, -1, -1, -1, ["x"]))
    run.finds("('b', 0): x is there twice, again at 3")


def test_records_of_a_transactional_id_are_not_in_the_order_in_which_they_were_sent(run):
    run.views[A] = [(0, "2"), (1, "plain"), (2, "1")]
    run.polls.clear()
    run.finds("1 of transaction 0 of t1 (committed) is at 2, behind what was sent after it")


def test_a_transactional_record_that_nobody_sent(run):
    run.logs[B][0] = run.logs[B][0]._replace(values=["3", "9"])
    run.finds("9 at 0 was not sent in a transaction")


def test_a_reader_saw_what_was_not_committed(run):
    run.polls[B] = [Poll(0, 2, [(0, "3"), (1, "9")])]
    run.finds("9 was read as committed at 1, where None is")


def test_a_reader_passed_what_is_committed(run):
    run.polls[A] = [Poll(1, 6, [(1, "plain")])]
    run.finds("the read from 1 to 6 left out 2 at 2")


@pytest.mark.parametrize(
    ("position", "change", "text"),
    [
        (2, {"sequence": 0}, "where sequence 1 is due"),
        (2, {"sequence": 2}, "where sequence 1 is due"),
        (4, {"sequence": 3}, "where sequence 0 is due"),
        (2, {"producer_id": 8, "sequence": 0}, "hangs"),
        (2, {"kind": PLAIN}, "is in the transaction of"),
        (3, {"producer_id": 9}, "whose transaction has not ended"),
        (5, {"producer_id": 9}, "hangs"),
    ],
)
def test_a_log_that_is_wrong(run, position, change, text):
    batches = run.logs[A]
    batches[position] = batches[position]._replace(**change)
    found = log_anomalies(A, batches)
    assert any(text in each for each in found), found


def test_an_epoch_that_is_over_is_appended(run):
    late = Batch(6, TRANSACTIONAL, 7, 1, 1, ["5"])
    found = log_anomalies(A, [*run.logs[A], late, Batch(7, ABORT, 7, 2, -1, ())])
    assert len(found) == 1 and "comes after epoch 2 of its producer" in found[0]


def test_a_transaction_is_ended_in_two_ways(run):
    assert outcomes_anomalies(run.logs, {7}) == []
    run.logs[B][1] = run.logs[B][1]._replace(kind=ABORT)
    (found,) = outcomes_anomalies(run.logs, {7})
    assert "producer 7 ends with epoch 1 in two ways" in found
    assert outcomes_anomalies(run.logs, {8}) == [], "a producer that keeps its epoch may do that"


def test_what_a_partition_has_lost_is_not_held_against_anybody(run):
    run.history.spoiled.add(B)
    run.views[B].clear()
    run.logs[B].clear()
    assert run.found() == []


def test_what_the_coordinator_has_lost_is_not_held_against_its_clients(run):
    run.history.forgotten.add("t1")
    run.views[B].clear()
    run.offsets["t1"] = 1
    assert run.found() == []


def test_a_coordinator_that_has_lost_a_transaction_does_not_end_it(run):
    del run.logs[A][3]
    run.finds("follows Batch(offset=0")
    run.history.forgotten.add("t1")
    assert run.found() == []


def test_what_the_group_has_lost_is_not_held_against_it(run):
    run.history.without_offsets.add("t1")
    run.offsets["t1"] = -1
    assert run.found() == []


def test_a_transaction_of_which_no_end_was_asked_is_never_seen(run):
    assert History().begin("t1").outcome is ABORTED
