"""Tests of the checker of transactions: it finds each kind of fault, and names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.exactly_once.history import (
    Log,
    Record,
    TransactionHistory,
    events_of,
    faults_of_copiers,
    faults_of_copy,
    faults_of_offsets,
    log_of,
    parsed,
    words_of,
)


def record(transaction: int, number: int) -> Record:
    """A record of producer `a`: even numbers are in partition 0, odd ones in partition 1."""
    return Record(number % 2, "a", transaction, number)


COMMITTED, ABORTED, UNKNOWN, UNENDED, LAST = range(5)


def history() -> TransactionHistory:
    """Five transactions of four records.

    One is committed, one aborted, one has an unknown end, one was never to be committed, and one is committed again.
    """
    events = []
    for transaction, ends in enumerate((["committing", "committed"], ["aborted"], ["committing"], [], ["committing"])):
        events.append({"begin": transaction, "sent": [[number % 2, number] for number in range(4)]})
        events += [{end: transaction, "at": 0.0} for end in ends]
    made = TransactionHistory()
    made.take("a", [*events, {"committed": LAST}])
    return made


def log(*transactions: int) -> Log:
    """A log with the whole transactions; each record of transaction T has the offsets 10 T and 10 T + 1."""
    return {
        partition: [
            (10 * transaction + index, record(transaction, 2 * index + partition))
            for transaction in transactions
            for index in range(2)
        ]
        for partition in range(2)
    }


def kinds(faults: list[str]) -> set[str]:
    return {fault.partition(":")[0] for fault in faults}


@pytest.mark.parametrize("transactions", [(COMMITTED, LAST), (COMMITTED, UNKNOWN, LAST)])
def test_a_right_history_passes(transactions: tuple[int, ...]) -> None:
    """A transaction with an unknown end may be there or not; a reader may have the log in part."""
    whole = log(*transactions)
    readers = {"behind": {0: whole[0][:3], 1: []}, "at the end": whole}
    assert history().faults(whole, readers) == []


def without(whole: Log, partition: int, index: int) -> Log:
    return whole | {partition: whole[partition][:index] + whole[partition][index + 1 :]}


RIGHT = log(COMMITTED, UNKNOWN, LAST)
WRONG_LOGS: dict[str, tuple[Log, str]] = {
    "a transaction is lost": (log(COMMITTED, UNKNOWN), "lost"),
    "a record is lost": (without(RIGHT, 0, 1), "lost"),
    "part of an unknown transaction": (without(RIGHT, 0, 2), "fractured"),
    "one partition of an unknown transaction": (RIGHT | {1: log(COMMITTED, LAST)[1]}, "fractured"),
    "an aborted transaction": (log(COMMITTED, ABORTED, LAST), "dirty"),
    "one aborted record": (RIGHT | {0: [*RIGHT[0][:2], (10, record(ABORTED, 0)), *RIGHT[0][2:]]}, "dirty"),
    "a transaction that was never to be committed": (log(COMMITTED, UNENDED, LAST), "dirty"),
    "a record twice": (RIGHT | {0: [*RIGHT[0], (42, record(LAST, 2))]}, "doubled"),
    "two records in the wrong order": (RIGHT | {0: [(0, record(0, 2)), (1, record(0, 0)), *RIGHT[0][2:]]}, "reordered"),
    "two transactions in the wrong order": (
        {p: [(offset, entry) for (offset, _), (_, entry) in zip(RIGHT[p], log(0, LAST, UNKNOWN)[p], strict=True)]
         for p in range(2)},
        "reordered",
    ),
    "an offset twice": (RIGHT | {0: [RIGHT[0][0], (0, RIGHT[0][1][1]), *RIGHT[0][2:]]}, "reordered"),
    "a record of nobody": (RIGHT | {0: [*RIGHT[0], (42, Record(0, "b", 0, 0))]}, "unknown"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "kind"), WRONG_LOGS.values(), ids=WRONG_LOGS)
def test_a_wrong_log_is_found(wrong: Log, kind: str) -> None:
    """The fault is found and named, and nothing else is."""
    assert kinds(history().faults(wrong, {})) == {kind}


WRONG_READS: dict[str, tuple[list[tuple[int, Record]], str]] = {
    "past a record": ([RIGHT[0][0], *RIGHT[0][2:]], "skipped"),
    "past the first record": (RIGHT[0][1:], "skipped"),
    "past a whole transaction": (log(COMMITTED, LAST)[0], "skipped"),
    "a record twice": ([RIGHT[0][0], *RIGHT[0][:2]], "repeated"),
    "back to the beginning": ([*RIGHT[0], *RIGHT[0]], "repeated"),
    "a record that was aborted later": ([*RIGHT[0][:2], (10, record(ABORTED, 0))], "dirty"),
    "a record whose transaction ended as aborted after all": ([*RIGHT[0], (50, record(UNENDED, 0))], "dirty"),
    "a record at another offset": ([(0, RIGHT[0][0][1]), (2, RIGHT[0][1][1])], "skipped"),
}


@pytest.mark.parametrize(("reads", "kind"), WRONG_READS.values(), ids=WRONG_READS)
def test_a_wrong_reader_is_found(reads: list[tuple[int, Record]], kind: str) -> None:
    """One reader was given something else than the final log has, and another one was not."""
    assert kinds(history().faults(RIGHT, {"right": RIGHT, "wrong": {0: reads}})) == {kind}


@pytest.mark.parametrize(
    ("copied", "kind"),
    {
        "short": (RIGHT[0][:-1], "lost"),
        "long": ([*RIGHT[0], (50, RIGHT[0][0][1])], "doubled"),
        "turned round": (RIGHT[0][::-1], "reordered"),
        "foreign": ([*RIGHT[0], (50, record(ABORTED, 0))], "dirty"),
    }.values(),
)
def test_a_wrong_copy_is_found(copied: list[tuple[int, Record]], kind: str) -> None:
    """A copy may have other offsets than its source, and nothing else."""
    assert faults_of_copy(RIGHT, {p: [(offset + 7, each) for offset, each in RIGHT[p]] for p in RIGHT}) == []
    assert kinds(faults_of_copy(RIGHT, RIGHT | {0: copied})) == {kind}


OTHER = Record(0, "z", 0, 0)


def rivals(claimed: float, committed_at: float) -> TransactionHistory:
    """Client `a` owns the id from 1.0, and `z` claims it and has it a second later; then each commits a transaction."""
    made = history()
    made.take("a", [{"owns": "id", "claimed": 0.5, "at": 1.0}, {"begin": 7, "sent": [[0, 0]]}])
    made.take("a", [{"committing": 7, "at": committed_at}, {"committed": 7, "at": committed_at + 0.1}])
    made.take("z", [{"owns": "id", "claimed": claimed, "at": claimed + 1}, {"begin": 0, "sent": [[0, 0]]}])
    made.take("z", [{"committing": 0, "at": claimed + 1.5}, {"committed": 0, "at": claimed + 1.6}])
    return made


@pytest.mark.parametrize(
    ("claimed", "committed_at", "order", "is_right"),
    [
        (2.0, 1.5, "az", True),
        (2.0, 2.9, "az", True),
        (2.0, 3.1, "az", False),
        (2.0, 2.9, "za", False),
        (0.9, 2.9, "za", True),
    ],
    ids=["before", "during the claim", "after it", "behind the other's", "claims at one time"],
)
def test_two_owners_of_a_transactional_id_are_found(
    claimed: float, committed_at: float, order: str, is_right: bool
) -> None:
    """Who is later is sure only if the claim began after the other one's was granted."""
    records = {"a": Record(0, "a", 7, 0), "z": OTHER}
    whole = log(COMMITTED, LAST)
    whole[0] += [(100 + index, records[name]) for index, name in enumerate(order)]
    found = rivals(claimed, committed_at).faults(whole, {})
    assert kinds(found) == (set() if is_right else {"two owners"})


def test_two_owners_of_a_partition_are_found() -> None:
    """Two members committed an offset, or one member did twice."""
    one, two = [{"copied": [[0, 0, 5], [1, 0, 9]]}], [{"copied": [[0, 5, 7]]}, {"at": 1.0}]
    assert faults_of_copiers({"one": one, "two": two}) == []
    for wrong in ({"copied": [[0, 6, 8]]}, {"copied": [[1, 8, 10]]}, {"copied": [[0, 0, 5]]}):
        assert kinds(faults_of_copiers({"one": one, "two": [*two, wrong]})) == {"two owners"}


def test_a_value_has_what_its_size_needs_at_its_end() -> None:
    """The checker reads the record's three words."""
    assert words_of(b"a 1 2 ......") == "a 1 2"
    assert parsed(0, "a 1 2 ......") == Record(0, "a", 1, 2)


def test_offsets_that_go_back_are_found() -> None:
    """A partition's offset may stay, and may be missing for a while."""
    assert faults_of_offsets([{0: 1}, {0: 1, 1: 5}, {1: 6}, {0: 2, 1: 6}]) == []
    assert kinds(faults_of_offsets([{0: 1, 1: 5}, {1: 6}, {0: 0, 1: 6}])) == {"back"}


def test_a_killed_clients_file_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    """A client without a file has no events."""
    path = tmp_path / "reader"
    path.write_text('{"reads": [[0, 7, "a 1 2"]]}\n{"reads": [[1, 8, "a 1')
    assert log_of(events_of(path)) == {0: [(7, Record(0, "a", 1, 2))]}
    assert events_of(tmp_path / "none") == []
