"""The loop that gives turns: how long it waits, in which order its nodes come, and what a bug ends."""

from __future__ import annotations

import pytest

from pykafkad.clock import ManualClock
from pykafkad.errors import StorageFailure
from pykafkad.server.runtime import Runtime, RuntimeNode
from tests.simulation.disk import MemoryDisk


class Waits:
    """A reactor without sockets: each turn notes how long it would have waited, and the second ends the loop."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.is_behind = False
        self.wake_at = float("inf")
        self.timeouts: list[float | None] = []

    def turn(self, timeout: float | None) -> None:
        self.timeouts.append(timeout)
        self.runtime.stop("enough")

    def next_wake(self) -> float:
        return self.wake_at

    def wake(self) -> None:
        """Nobody sleeps."""

    def drain(self, seconds_left: object) -> None:
        """There is nothing to be sent."""

    def close(self) -> None:
        """There are no sockets."""


class Node(RuntimeNode):
    """Notes what it is asked."""

    def __init__(self, name: str, asked: list[str], deadline: float | None = None) -> None:
        self.name = name
        self.asked = asked
        self.deadline = deadline

    def end_turn(self, now: float) -> None:
        self.asked.append(f"end_turn {self.name}")

    def next_deadline(self) -> float | None:
        return self.deadline

    def close(self) -> None:
        self.asked.append(f"close {self.name}")


class Owner:
    """Of timers, one of which meets a bug."""

    def __init__(self) -> None:
        self.fired_keys: list[str] = []

    def fired(self, key: str) -> None:
        self.fired_keys.append(key)
        if key == "bug":
            raise ValueError(key)


@pytest.fixture
def runtime() -> Runtime:
    return Runtime(clock=ManualClock(), disk=MemoryDisk(), reactor=Waits)


def waits(runtime: Runtime) -> float | None:
    """How long the next turn waits."""
    runtime.run()
    return runtime.reactor.timeouts[-1]


def test_a_node_that_cannot_end_cleanly_leaves_the_others_their_end(runtime: Runtime) -> None:
    asked: list[str] = []

    class Full(Node):
        def close(self) -> None:
            super().close()
            raise StorageFailure("write", f"/data/{self.name}", "No space left on device")

    runtime.nodes += [Node("a", asked), Full("b", asked), Full("c", asked), Node("d", asked)]
    with pytest.raises(StorageFailure, match="/data/c"):
        runtime.close()
    assert asked == [f"close {name}" for name in "dcba"]


def test_nothing_to_do_is_waited_for_without_an_end(runtime: Runtime) -> None:
    runtime.nodes.append(Node("a", []))
    assert waits(runtime) is None


@pytest.mark.parametrize("earliest", ["timer", "first node", "second node", "reactor"])
def test_a_turn_waits_for_what_is_due_first(runtime: Runtime, earliest: str) -> None:
    def at(what: str) -> float:
        return runtime.now + (5.0 if what == earliest else 60.0)

    runtime.timers.set((Owner(), "key"), at("timer"))
    runtime.nodes += [Node("a", [], at("first node")), Node("b", []), Node("c", [], at("second node"))]
    runtime.reactor.wake_at = at("reactor")
    # Half a millisecond later, as the system counts in whole ones.
    assert waits(runtime) == pytest.approx(5.0005)


def test_what_is_due_or_left_over_is_not_waited_for(runtime: Runtime) -> None:
    runtime.timers.set((Owner(), "key"), runtime.now - 1.0)
    assert waits(runtime) == 0


def test_a_reactor_that_is_behind_does_not_wait(runtime: Runtime) -> None:
    runtime.reactor.is_behind = True
    assert waits(runtime) == 0


def test_a_bug_in_a_timer_is_counted_and_the_others_fire(runtime: Runtime) -> None:
    owner = Owner()
    for number, key in enumerate(("first", "bug", "last")):
        runtime.timers.set((owner, key), runtime.now + number * 1e-9)
    runtime.clock.advance(1.0)
    runtime.begin_turn()
    runtime.end_turn()
    assert owner.fired_keys == ["first", "bug", "last"]
    assert runtime.metrics.unexpected_errors == 1


def test_nodes_take_their_turns_in_order_and_end_in_the_opposite_one(runtime: Runtime) -> None:
    asked: list[str] = []
    runtime.nodes += [Node("a", asked), Node("b", asked)]
    runtime.end_turn()
    runtime.close()
    assert asked == ["end_turn a", "end_turn b", "close b", "close a"]
