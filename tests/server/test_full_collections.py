"""Full collections of garbage stay short: what a long one has left is frozen, and thawed in an hour."""

import gc
import weakref

import pytest

from pykafkad.clock import ManualClock
from pykafkad.server.full_collections import LONG_SECONDS, THAW_SECONDS, Short

FULL, YOUNG = {"generation": 2}, {"generation": 1}


class Node:
    """Refers to itself."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def short(clock, frozen_anew):
    """Called by the test alone."""
    gc.unfreeze()
    gc.disable()
    yield Short(clock)
    gc.enable()


def collect(short, clock, took, info=FULL):
    """What the collector does, and how long it takes."""
    short("start", info)
    gc.collect()
    clock.advance(took)
    short("stop", info)


@pytest.mark.long
def test_what_a_long_one_has_left_is_not_looked_at_again(short, clock):
    collect(short, clock, LONG_SECONDS)
    assert gc.get_freeze_count() > 1000 and gc.get_objects(2) == []


@pytest.mark.long
@pytest.mark.parametrize(("took", "info"), [(LONG_SECONDS * 0.9, FULL), (LONG_SECONDS * 2, YOUNG)])
def test_a_short_one_leaves_everything_where_it_is(short, clock, took, info):
    collect(short, clock, took, info)
    assert gc.get_freeze_count() == 0


@pytest.mark.long
def test_frozen_garbage_goes_after_an_hour(short, clock):
    node = Node()
    gone = weakref.ref(node)
    collect(short, clock, LONG_SECONDS)
    del node
    collect(short, clock, LONG_SECONDS)
    assert gone() is not None
    clock.advance(THAW_SECONDS)
    collect(short, clock, LONG_SECONDS)
    assert gone() is None and gc.get_freeze_count() > 1000


class ClockOfSeconds(ManualClock):
    """A second passes between any two looks."""

    def now(self):
        self.advance(1)
        return super().now()


@pytest.mark.long
def test_the_collector_calls_it_while_it_is_entered(frozen_anew):
    gc.unfreeze()
    with Short(ClockOfSeconds()):
        gc.collect()
        assert gc.get_freeze_count() > 1000
    gc.unfreeze()
    gc.collect()
    assert gc.get_freeze_count() == 0
