"""Tests of the history checker: it finds every kind of fault."""

from __future__ import annotations

import pytest

from compat_tests.history import History, Sent

A = [Sent(0, "a", number) for number in range(4)]


def history(acknowledged: int = 3) -> History:
    """Four records of producer `a` are sent; the first ones are acknowledged, each at its own number as offset."""
    made = History()
    for record in A:
        made.send(record)
    for record in A[:acknowledged]:
        made.acknowledge(record, record.number)
    return made


def test_a_right_log_passes() -> None:
    """An unacknowledged record may be in the log or not."""
    history().check({0: list(enumerate(A[:3]))}, {"a"})
    history().check({0: list(enumerate(A))}, {"a"})


@pytest.mark.parametrize(
    "log",
    {
        "lost": [(0, A[0]), (2, A[2])],
        "lost at the end": [(0, A[0]), (1, A[1])],
        "moved": [(0, A[0]), (1, A[2]), (2, A[1])],
        "doubled": [*enumerate(A[:3]), (3, A[2])],
        "reordered later": [*enumerate(A[:3]), (3, A[3]), (4, A[0])],
        "never sent": [*enumerate(A[:3]), (3, Sent(0, "b", 0))],
        "offset twice": [(0, A[0]), (1, A[1]), (2, A[2]), (2, A[3])],
    }.values(),
)
def test_a_wrong_log_fails(log: list[tuple[int, Sent]]) -> None:
    """Each fault is found."""
    with pytest.raises(AssertionError):
        history().check({0: log}, {"a"})


def test_an_acknowledgement_without_an_offset_is_one() -> None:
    """A producer that sends a record again may be told only that it is there."""
    made = history(2)
    made.acknowledge(A[2], None)
    made.check({0: list(enumerate(A[:3]))}, {"a"})
    with pytest.raises(AssertionError, match="is not there"):
        made.check({0: list(enumerate(A[:2]))}, {"a"})
