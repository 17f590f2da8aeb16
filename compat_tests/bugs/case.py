"""A program that has a bug or not, the fault that makes the bug visible, and how it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer

from pykafkad.testing import Broker
from pykafkad.testing.faults import Fault

VALUES = [f"value {number}" for number in range(6)]
"""What a program has to write, or to read."""

TOPICS = {"in": 1, "out": 1, "wide": 3}
QUICK = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}


class Run:
    """One run of a program."""

    def __init__(self, broker: Broker, is_mended: bool, fault: Callable[[Broker], Fault] | None) -> None:
        self.broker = broker
        self.is_mended = is_mended
        self._fault = fault

    def moment(self) -> None:
        """The program is in the middle of its work: a fault that is for then happens now."""
        if self._fault is None:
            self.broker.produce("in", VALUES[-1])
        else:
            fault, self._fault = self._fault(self.broker), None
            fault.wait(1)

    def seed_in_parts(self) -> Callable[[Consumer, object], None]:
        """The last value comes with the `moment`, or if that has a fault when the program gets its partitions again:
        what is returned is told of each time."""
        self.broker.produce("in", *VALUES[:-1])
        times = 0

        def assigned(_: Consumer, __: object) -> None:
            nonlocal times
            times += 1
            if times == 2:
                self.broker.produce("in", VALUES[-1])

        return assigned

    def producer(self, **settings: Any) -> Producer:
        """A producer that finds the broker again soon."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer(self.broker.client_config("confluent") | QUICK | {"message.timeout.ms": 10_000} | named)

    def consumer(self, **settings: Any) -> Consumer:
        """A member of a group that commits by hand."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        usual = {"enable.auto.commit": False, "heartbeat.interval.ms": 50}
        return Consumer(self.broker.client_config("confluent", group="workers") | QUICK | usual | named)

    def written(self, topic: str = "out") -> list[str]:
        """The values that a topic has, of all partitions."""
        return [(each.value or b"").decode() for each in self.broker.records(topic, committed_only=True)]


class Case(NamedTuple):
    """`program(run)` does its work, with the bug or without; `check(run, result)` raises AssertionError where the bug
    shows. The fault is there from the start on, or from the program's `run.moment()` on."""

    name: str
    fault: Callable[[Broker], Fault]
    program: Callable[[Run], Any]
    check: Callable[[Run, Any], None]
    is_for_moment: bool = False


def all_written(run: Run, _: object) -> None:
    """Nothing is lost and nothing doubled."""
    assert sorted(run.written()) == VALUES


def none_lost(run: Run, _: object) -> None:
    assert set(run.written()) == set(VALUES)


def in_order(run: Run, _: object) -> None:
    assert run.written() == VALUES


def all_read(_: Run, result: list[str]) -> None:
    """Each value was processed once."""
    assert sorted(result) == VALUES
