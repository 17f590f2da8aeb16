"""Tests of the checker of transactions: it finds each kind of fault, and names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.exactly_once.history import (
    Log,
    Record,
    TransactionHistory,
    events_of,
    faults_of_copy,
    faults_of_offsets,
    log_of,
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
        events += [{end: transaction} for end in ends]
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
