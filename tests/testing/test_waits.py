"""Waits: they end when what they wait for is there, and a failed one says what there was."""

from __future__ import annotations

import threading

import pytest

from pykafkad.testing import NotInTime

SHORT = 0.02


def soon(call, *arguments):
    """Do it while somebody waits."""
    timer = threading.Timer(0.03, call, arguments)
    timer.start()
    return timer


def test_a_topic_is_awaited(broker):
    """With its partitions, if they matter."""
    timer = soon(broker.create_topic, "late", 2)
    broker.wait_for_topic("late")
    broker.wait_for_topic("late", partitions=2)
    with pytest.raises(NotInTime, match=r"no topic late of 3 partitions; there is: late of 2, orders of 3"):
        broker.wait_for_topic("late", partitions=3, timeout=SHORT)
    timer.join()


def test_records_are_awaited(broker):
    """Also those of a topic that is not there yet."""
    timer = soon(broker.produce, "late", "a", ("k", "b"))
    assert [each.value for each in broker.wait_for_records("late", 2)] == [b"a", b"b"]
    with pytest.raises(NotInTime, match=r"no 3 records in late; there is: 2, the last is b'k': b'b' at offset 1"):
        broker.wait_for_records("late", 3, timeout=SHORT)
    timer.join()


def test_lag_is_awaited(broker):
    """That of every partition with a committed offset; a group that has committed nothing has none."""
    with pytest.raises(NotInTime, match="there is: group readers: there is none"):
        broker.wait_for_lag("readers", timeout=SHORT)
    broker.commit("readers", {("orders", 0): 0, ("orders", 1): 1})
    with pytest.raises(NotInTime, match="lag: orders-0 1, orders-1 0"):
        broker.wait_for_lag("readers", timeout=SHORT)
    assert broker.wait_for_lag("readers", 1).lag == {("orders", 0): 1, ("orders", 1): 0}
    timer = soon(broker.commit, "readers", {("orders", 0): 1})
    broker.wait_for_lag("readers")
    timer.join()


def test_groups_that_do_not_come_are_told(broker):
    """With what they are instead."""
    broker.commit("readers", {("orders", 0): 1})
    for wait in (
        lambda: broker.wait_for_group("readers", 2, timeout=SHORT),
        lambda: broker.wait_for_assignment("readers", "orders", timeout=SHORT),
    ):
        with pytest.raises(NotInTime, match="there is: group readers: Empty, members: none"):
            wait()
    assert broker.wait_until_gone("readers").state == "Empty"
    with pytest.raises(NotInTime, match="there is: no such transactional id"):
        broker.wait_for_transaction("t", timeout=SHORT)


def test_a_wait_that_could_never_end_is_refused(broker):
    """When it is written."""
    for timeout in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            broker.wait_for_topic("orders", timeout=timeout)
    for wait, text in (
        (lambda: broker.wait_for_records("orders", 0), "count: 0"),
        (lambda: broker.wait_for_group("readers", 0), "wait_until_gone"),
        (lambda: broker.wait_for_lag("readers", -1), "lag: -1"),
        (lambda: broker.faults.delay("Fetch", 1).wait(0), "count: 0"),
    ):
        with pytest.raises(ValueError, match=text):
            wait()
