"""What other threads ask of a broker's loop is done once, by the next loop if that one ends; or they hear of its
end."""

from __future__ import annotations

import threading

import pytest

from pykafkad.clock import AdvancingClock
from pykafkad.testing import Broker, BrokerEnded
from pykafkad.testing.broker_loop import BrokerLoop
from pykafkad.testing.waits import until


class Posts:
    """A process whose loop does nothing by itself: `posted` are what it should do."""

    def __init__(self):
        self.broker = self.runtime = self.reactor = self.offload = self
        self.trace = None
        self.posted = []
        self.post = self.posted.append


class Loop(BrokerLoop):
    """Of a broker that is said to run."""

    is_running = True


@pytest.fixture
def asked():
    """A loop, its process, and what came of a job that a thread has asked it for."""
    loop, process, outcomes, turns = Loop(AdvancingClock()), Posts(), [], []
    loop.take(process)

    def ask():
        try:
            outcomes.append(loop.call(lambda: turns.append(1) or len(turns)))
        except BrokerEnded as ended:
            outcomes.append(str(ended))

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: len(process.posted), lambda seen: seen == 1, "job", 30)
    yield loop, process, outcomes, turns
    thread.join(60)


def test_the_next_loop_does_what_the_one_before_has_not(asked):
    """And not a second time, should the first one do it late."""
    loop, first, outcomes, turns = asked
    second = Posts()
    loop.take(second)
    (job,) = second.posted
    job(None)
    first.posted[0](None)
    until(lambda: list(outcomes), lambda seen: seen == [1], "result", 30)
    assert turns == [1]


def test_at_the_end_nobody_waits_on(asked):
    """Who asks afterwards hears of it at once."""
    loop, process, outcomes, _ = asked
    loop.abandon()
    until(lambda: list(outcomes), lambda seen: len(seen) == 1, "end", 30)
    assert outcomes[0] == "the broker on  has ended"
    with pytest.raises(BrokerEnded):
        loop.call(lambda: "done")
    assert len(process.posted) == 1


def test_a_closed_broker_s_loop_is_abandoned():
    """By its thread, as the last thing."""
    with Broker() as own:
        loop = own._running
    with pytest.raises(BrokerEnded):
        loop.call(lambda: "done")
    assert loop._is_over
