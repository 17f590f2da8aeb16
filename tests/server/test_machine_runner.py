"""Effects in order, up to a write that fails; and answers that are made of several."""

from __future__ import annotations

import pytest

from pykafkad import effects
from pykafkad.errors import StorageFailure
from pykafkad.server.machine_runner import CompositeReply, MachineRunner

FAILURE = StorageFailure("write", "/data/log", "no room")


class Surroundings:
    """A runtime that notes what is done to it."""

    def __init__(self) -> None:
        self.now, self.now_ms = 5.0, 5000
        self.done: list[tuple[object, ...]] = []
        self.replies = self.timers = self

    def reply(self, token: object, message: object) -> None:
        self.done.append(("reply", token, message))

    def abandon(self, token: object, reason: str) -> None:
        self.done.append(("abandon", token))

    def set(self, key: tuple[object, object], at: float) -> None:
        self.done.append(("set", key[1], at))

    def cancel(self, key: tuple[object, object]) -> None:
        self.done.append(("cancel", key[1]))


class Machine:
    """Wants what it is told to want."""

    def step(self, event: list[object], now: float, now_ms: int) -> list[object]:
        return event


class Runner(MachineRunner):
    """Its second write fails."""

    def append(self, effect: effects.Append) -> None:
        self.runtime.done.append(("append", *effect.records))
        if effect.records == ["broken"]:
            raise FAILURE

    def failed(self, failure: StorageFailure) -> None:
        self.runtime.done.append(("failed", failure))


@pytest.fixture
def surroundings() -> Surroundings:
    return Surroundings()


def test_effects_are_performed_in_their_order(surroundings: Surroundings) -> None:
    Runner(surroundings, Machine()).step(
        [
            effects.Append(("t", 0), ["a"]),
            effects.Reply("token", "answer"),
            effects.SetTimer("key", 7.0),
            effects.CancelTimer("key"),
        ]
    )
    assert surroundings.done == [
        ("append", "a"),
        ("reply", "token", "answer"),
        ("set", "key", 7.0),
        ("cancel", "key"),
    ]


def test_nothing_behind_a_failed_write_is_done_and_whoever_waits_is_let_go(surroundings: Surroundings) -> None:
    Runner(surroundings, Machine()).step(
        [
            effects.Reply("before", "answer"),
            effects.Append(("t", 0), ["broken"]),
            effects.Reply("behind", "answer"),
            effects.SetTimer("key", 7.0),
            effects.Append(("t", 0), ["more"]),
            effects.Reply("last", "answer"),
        ]
    )
    assert surroundings.done == [
        ("reply", "before", "answer"),
        ("append", "broken"),
        ("abandon", "behind"),
        ("abandon", "last"),
        ("failed", FAILURE),
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("closed_after", [0, 1, 2])
def test_several_answers_are_one_when_the_last_part_is_asked_for_and_answered(
    surroundings: Surroundings, order: tuple[int, int], closed_after: int
) -> None:
    composite = CompositeReply(list, "token", surroundings.reply)
    parts = [composite.part(), composite.part()]
    for count, number in enumerate(order):
        if count == closed_after:
            composite.close()
        assert surroundings.done == []
        parts[number].deliver(f"answer {number}")
    if closed_after == 2:
        assert surroundings.done == []
        composite.close()
    assert surroundings.done == [("reply", "token", ["answer 0", "answer 1"])]


def test_an_answer_of_no_parts_leaves_at_once(surroundings: Surroundings) -> None:
    CompositeReply(list, "token", surroundings.reply).close()
    assert surroundings.done == [("reply", "token", [])]
