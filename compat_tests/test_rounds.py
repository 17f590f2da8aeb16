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
from compat_tests.rounds.namespaces import Namespaces
from compat_tests.rounds.network import BROKERS, CLIENTS, CONTROLLERS, QUORUM, Network
from compat_tests.rounds.proxies import Proxies
from compat_tests.rounds.troubles import CUT, ISOLATE, KILL, LONGEST_SECONDS, PAUSE, Happening, Trouble, chosen, happen
from compat_tests.test_namespaces import skip_without_namespaces

NONE = SimpleNamespace(java=None, franz=None)


@pytest.mark.parametrize(
    ("network", "seed", "words"),
    [(Proxies, 20, "cut everybody from 11"), (Namespaces, 693, "isolate everybody and clients from 2")],
    ids=lambda each: getattr(each, "name", ""),
)
def test_some_rounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], network: type[Network], seed: int, words: str
) -> None:
    """Nothing is lost, doubled or reordered by three brokers and three controllers of which some are away."""
    if network is Namespaces:
        skip_without_namespaces()
    assert rounds.run(4, seed, tmp_path, NONE, network=network) == 0, capsys.readouterr()  # type: ignore[arg-type]
    printed = capsys.readouterr().out
    assert f"seed {seed} round 4/4: " in printed and "4 rounds in " in printed and "no batches failed" in printed
    assert words in printed and list(tmp_path.iterdir()) == []


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
        f"seed 7 FAILED; its data is in {tmp_path}/seed-7; once more: python -m compat_tests.rounds --network proxies "
        "--seed 7 --rounds 2"
    ) in printed
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


def test_clients_are_cut_off_where_the_network_can_do_that() -> None:
    """And only from a broker that is isolated, about every second time; each link is cut once, one way at least."""
    isolated: Counter[bool] = Counter()
    for seed in range(300):
        assert not any(each.with_clients for each in chosen(random.Random(seed)))
        for each in chosen(random.Random(seed), cuts_clients=True):
            assert each.kind == ISOLATE or not each.with_clients
            isolated[each.with_clients] += each.kind == ISOLATE
    assert min(isolated[True], isolated[False]) > 10
    links: list[tuple[int, int]] = []
    network = SimpleNamespace(cut=lambda source, target, way: links.append((source, target)))
    cluster = SimpleNamespace(network=network)
    Happening(cluster, Trouble(ISOLATE, 2, QUORUM, 0.1, 0, False, True))  # type: ignore[arg-type]
    assert (CLIENTS, 2) in links and len(links) == len(set(links)) == 8
    assert {source for source, target in links if target == 2} == {CLIENTS, 1, 3}
    assert {target for source, target in links if source == 2} == {1, 3, *CONTROLLERS}


def test_a_node_that_waits_for_the_end_of_another_trouble_is_started() -> None:
    """A broker registers with the active controller, from which it is cut off for longer than it is away."""
    healed = threading.Event()

    class Node:
        def kill(self) -> None:
            """It is gone."""

        def start(self) -> None:
            assert healed.wait(30), "the cut goes on"

    cut: list[tuple[int, int]] = []
    network = SimpleNamespace(
        cut=lambda source, target, way: cut.append((source, target)),
        heal=lambda source, target, way, reset: healed.set(),
    )
    cluster = SimpleNamespace(nodes={3: Node()}, network=network)
    happen(cluster, [Trouble(KILL, 3, 1, 0.01, 0, False), Trouble(CUT, 11, 3, 0.05, 0, True)])  # type: ignore[arg-type]
    assert cut == [(3, 11)] and healed.is_set()
