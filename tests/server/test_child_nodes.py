"""How the nodes of a cluster that are child processes come to their end. The time is a test's own: nothing waits."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace

import pytest

from pykafkad.clock import ManualClock
from pykafkad.server.child_nodes import STOP_SECONDS, ChildNode, ChildNodes
from pykafkad.server.node_process import STOP

KILL_SECONDS = 1.0
"""So long a child takes to end that is killed."""


class Moment:
    """When something happens: what a thread or an event is to those who wait for it."""

    def __init__(self, clock):
        self._clock, self.at = clock, inf

    def is_over(self):
        return self.at <= self._clock.now()

    def comes_in(self, seconds):
        self.at = min(self.at, self._clock.now() + seconds)

    def wait(self, seconds=inf):
        left = min(seconds, max(0.0, self.at - self._clock.now()))
        assert left < inf, "a wait without an end"
        self._clock.advance(left)
        return self.is_over()

    join = wait


class Child(ChildNode):
    """A child without a process. It stops so many seconds after it was asked to, which is its end unless it holds an
    answer: then it ends so many seconds after it hears nothing more."""

    def __init__(self, clock, node_id, role="broker", *, stops_in=inf, ends_in=None):
        self.node_id, self.role = node_id, role
        self.addresses, self.is_end_told = ["localhost:9092"], False
        self.closed, self.watcher = Moment(clock), Moment(clock)
        self._stops_in, self._ends_in = stops_in, ends_in
        self.is_given_back = False
        self.process = SimpleNamespace(
            kill=self._killed,
            stdin=SimpleNamespace(write=self._heard, flush=lambda: None, close=self._hears_nothing_more),
            stdout=SimpleNamespace(close=self._given_back),
        )

    @property
    def status(self):
        return "an end" if self.watcher.is_over() else None

    def _heard(self, text):
        assert text == f"{STOP}\n"
        self.closed.comes_in(self._stops_in)
        if self._ends_in is None:
            self.watcher.comes_in(self._stops_in)

    def _hears_nothing_more(self):
        if self._ends_in is not None:
            self.watcher.comes_in(self._ends_in)

    def _killed(self):
        for moment in (self.closed, self.watcher):
            moment.comes_in(KILL_SECONDS)

    def _given_back(self):
        assert self.status is not None, "it may still write"
        self.is_given_back = True


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def warned():
    """The nodes that the log says were killed."""
    return []


@pytest.fixture
def nodes(clock, warned):
    logs = SimpleNamespace(warning=lambda *_, **fields: warned.append(fields["node"]))
    return ChildNodes(logs, clock=clock)


def test_children_that_hang_are_killed_together(nodes, clock, warned):
    roles = {1: "broker", 2: "broker", 3: "broker", 3000: "controller"}
    nodes.children = [
        Child(clock, node_id, role, stops_in=5 if node_id == 2 else inf) for node_id, role in roles.items()
    ]
    children = nodes.children
    killed = nodes.stop_all()
    assert [child.node_id for child in killed] == warned == [1, 3, 3000]
    assert clock.now() == 2 * (STOP_SECONDS + KILL_SECONDS), "once for the brokers, once for the controller"
    assert nodes.children == [] and all(child.is_given_back for child in children)


def test_children_that_hang_after_they_have_stopped_are_killed_together(nodes, clock, warned):
    """Who holds an answer ends when it hears nothing more, which all do before one is waited for."""
    ends = {1: inf, 2: STOP_SECONDS - 1, 3: inf, 4: inf}
    nodes.children = [Child(clock, node_id, stops_in=5, ends_in=seconds) for node_id, seconds in ends.items()]
    nodes.close()
    assert clock.now() == 5 + STOP_SECONDS + KILL_SECONDS
    assert warned == [1, 3, 4]
    assert all(child.is_given_back for child in nodes.children)


def test_former_children_share_the_time_of_the_last_ones(nodes, clock, warned):
    nodes.children = former = [Child(clock, node_id, stops_in=5, ends_in=inf) for node_id in (1, 2)]
    assert nodes.stop_all() == []
    nodes.children = [Child(clock, 3, stops_in=5, ends_in=inf), Child(clock, 4, stops_in=5)]
    nodes.close()
    assert clock.now() == 5 + 5 + STOP_SECONDS + KILL_SECONDS
    assert sorted(warned) == [1, 2, 3]
    assert all(child.is_given_back for child in (*nodes.children, *former))


def test_children_that_end_in_time_are_not_waited_for_longer(nodes, clock, warned):
    nodes.children = [
        Child(clock, 1, stops_in=5, ends_in=3),
        Child(clock, 2, stops_in=7),
        Child(clock, 3000, "controller", stops_in=2),
    ]
    nodes.close()
    assert clock.now() == 7 + 2 + 3 and warned == []
    assert all(child.is_given_back for child in nodes.children)
