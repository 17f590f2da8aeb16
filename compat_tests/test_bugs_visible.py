"""Faults make real bugs visible in programs of a real client, which no test without a fault would notice."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.bugs import administration, consumers, producers
from compat_tests.bugs.case import TOPICS, Case, Run
from pykafkad.testing import Broker

CASES = (*producers.CASES, *consumers.CASES, *administration.CASES)


def test_there_are_twenty():
    assert len({case.name for case in CASES}) == len(CASES) >= 20


def played(case: Case, *, is_mended: bool, has_fault: bool) -> tuple[AssertionError | None, int]:
    """How the bug shows, if it does, and how often the fault has happened."""
    with Broker(topics=TOPICS) as broker, broker.trace():
        at_moment = has_fault and case.is_for_moment
        if has_fault and not at_moment:
            case.fault(broker)
        run = Run(broker, is_mended, case.fault if at_moment else None)
        result: Any = case.program(run)
        shown = None
        try:
            case.check(run, result)
        except AssertionError as error:
            shown = error
        # Counted last: a producer that asks for no acknowledgement is done before the broker has its request.
        return shown, sum(fault.count for fault in broker.faults.every)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_fault_makes_the_bug_visible(case):
    """Nobody sees it without the fault, everybody with it; and the program without the bug does well."""
    assert played(case, is_mended=False, has_fault=False) == (None, 0)
    shown, fired = played(case, is_mended=False, has_fault=True)
    assert shown is not None and fired
    shown, fired = played(case, is_mended=True, has_fault=True)
    assert shown is None and fired
