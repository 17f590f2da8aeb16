"""A few of the rounds of trouble that `python -m compat_tests.rounds` runs by the thousand, and what it says of a batch
that fails."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from compat_tests.rounds import __main__ as rounds
from compat_tests.rounds.cluster import BROKERS
from compat_tests.rounds.troubles import CUT, ISOLATE, KILL, LONGEST_SECONDS, PAUSE, Trouble, chosen, happen

SEED = 20
NONE = SimpleNamespace(java=None, franz=None)


def test_some_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is lost, doubled or reordered by three brokers and three controllers of which some are away."""
    assert rounds.run(4, SEED, tmp_path, NONE) == 0, capsys.readouterr()  # type: ignore[arg-type]
    printed = capsys.readouterr().out
    assert f"seed {SEED} round 4/4: " in printed and "4 rounds in " in printed and "no batches failed" in printed
    assert list(tmp_path.iterdir()) == []


def test_a_batch_that_fails_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How to repeat it, where its data is, and what is wrong; the others go on."""
    answers = iter([["lost: a record"], []])
    monkeypatch.setattr(rounds, "batch", lambda *_: next(answers))
    assert rounds.run(3, 7, tmp_path, NONE, size=2) == 1  # type: ignore[arg-type]
    assert [each.name for each in tmp_path.iterdir()] == ["seed-7"]
    printed = capsys.readouterr().out
    assert (
        f"seed 7 FAILED; its data is in {tmp_path}/seed-7; once more: python -m compat_tests.rounds --seed 7" in printed
    )
    assert "  lost: a record\n" in printed and "1 batches failed" in printed


def test_troubles_are_those_of_the_seed_and_leave_two_brokers() -> None:
    """And each kind comes."""
    counts: Counter[str] = Counter()
    for seed in range(300):
        troubles = chosen(random.Random(seed))
        assert troubles == chosen(random.Random(seed))
        assert len({each.target for each in troubles if each.target in BROKERS}) <= 1
        assert all(0 < each.seconds <= LONGEST_SECONDS for each in troubles)
        counts.update(each.kind for each in troubles)
    assert counts.keys() == {KILL, PAUSE, CUT, ISOLATE} and min(counts.values()) > 20


def test_a_node_that_waits_for_the_end_of_another_trouble_is_started() -> None:
    """A broker registers with the active controller, from which it is cut off for longer than it is away."""
    healed = threading.Event()

    class Node:
        def kill(self) -> None:
            """It is gone."""

        def start(self) -> None:
            assert healed.wait(30), "the cut goes on"

    cut: list[tuple[int, int]] = []
    cluster = SimpleNamespace(
        nodes={3: Node()},
        cut=lambda source, target, way: cut.append((source, target)),
        heal=lambda source, target, reset: healed.set(),
    )
    happen(cluster, [Trouble(KILL, 3, 1, 0.01, 0, False), Trouble(CUT, 11, 3, 0.05, 0, True)])  # type: ignore[arg-type]
    assert cut == [(3, 11)] and healed.is_set()
