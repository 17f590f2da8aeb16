"""What happens to a cluster in one round: a pure choice from a seed, and its execution."""

from __future__ import annotations

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from compat_tests.rounds.cluster import SESSION_MS, Cluster
from compat_tests.rounds.network import BROKERS, CLIENTS, CONTROLLERS, QUORUM

KILL, PAUSE, CUT, ISOLATE = "kill", "pause", "cut", "isolate"
# A broker that is away for longer than its session has its partitions led by others.
LONGEST_SECONDS = 2 * SESSION_MS / 1000


@dataclass(frozen=True)
class Trouble:
    """One node is killed, paused, or cannot be asked by another; `way` and `is_reset` are those of the network."""

    kind: str
    target: int
    source: int
    seconds: float
    way: int
    is_reset: bool
    with_clients: bool = False
    """Whether an isolated broker is cut off from the clients too."""

    def __str__(self) -> str:
        if self.kind in (KILL, PAUSE):
            return f"{self.kind} {self.target} for {self.seconds:.1f} s"
        source = "everybody" if self.source == QUORUM else str(self.source)
        source += " and clients" if self.with_clients else ""
        end = "with a reset" if self.is_reset else "and let it through"
        return f"{self.kind} {source} from {self.target} (way {self.way}) for {self.seconds:.1f} s {end}"


def chosen(chance: random.Random, *, cuts_clients: bool = False) -> list[Trouble]:
    """One or two troubles at once; at most one of them takes a broker away, so that two in sync are left. With
    `cuts_clients` a broker can be isolated from the clients too."""
    first = _one(chance, chance.choice((KILL, PAUSE, CUT, ISOLATE)), chance.choice((*BROKERS, *CONTROLLERS)))
    if cuts_clients and first.kind == ISOLATE:
        first = replace(first, with_clients=chance.random() < 0.5)
    if chance.random() < 0.5:
        return [first]
    others = CONTROLLERS if first.target in BROKERS else BROKERS
    return [first, _one(chance, chance.choice((KILL, PAUSE, CUT)), chance.choice(others))]


def _one(chance: random.Random, kind: str, target: int) -> Trouble:
    others = [each for each in BROKERS if each != target]
    source = chance.choice(others) if kind == CUT and target in BROKERS else QUORUM
    if kind == CUT and target in CONTROLLERS:
        source = chance.choice((*BROKERS, QUORUM))
    if kind == ISOLATE and target in CONTROLLERS:
        kind = CUT
    return Trouble(
        kind, target, source, chance.uniform(0.1, LONGEST_SECONDS), chance.randrange(3), chance.random() < 0.5
    )


class Happening:
    """A trouble that goes on at a cluster until `end`."""

    def __init__(self, cluster: Cluster, trouble: Trouble) -> None:
        self._cluster, self._trouble = cluster, trouble
        self.ends_at = time.monotonic() + trouble.seconds
        target = trouble.target
        if trouble.kind == KILL:
            cluster.nodes[target].kill()
        elif trouble.kind == PAUSE:
            cluster.signal(target, signal.SIGSTOP)
        else:
            for source, other in self._links():
                cluster.network.cut(source, other, trouble.way)

    def _links(self) -> list[tuple[int, int]]:
        """Source and target of each link that is cut. A broker that is isolated asks no other, and none asks it."""
        trouble = self._trouble
        if trouble.kind == CUT:
            return [(trouble.source, trouble.target)]
        others = [each for each in (*BROKERS, *CONTROLLERS) if each != trouble.target]
        clients = [CLIENTS] if trouble.with_clients else []
        return [(trouble.target, each) for each in others] + [
            (each, trouble.target) for each in (*others, *clients) if each not in CONTROLLERS
        ]

    def end(self) -> None:
        trouble = self._trouble
        if trouble.kind == KILL:
            self._cluster.nodes[trouble.target].start()
        elif trouble.kind == PAUSE:
            self._cluster.signal(trouble.target, signal.SIGCONT)
        else:
            for source, other in self._links():
                self._cluster.network.heal(source, other, trouble.way, reset=trouble.is_reset)


def happen(cluster: Cluster, troubles: list[Trouble]) -> None:
    """Begin all of them, and end each in its time. A node that is started is not ready before the other trouble is over
    if that keeps it from the active controller."""
    under_way = sorted((Happening(cluster, each) for each in troubles), key=lambda each: each.ends_at)
    with ThreadPoolExecutor(len(under_way)) as threads:
        ends = []
        for each in under_way:
            time.sleep(max(each.ends_at - time.monotonic(), 0))
            ends.append(threads.submit(each.end))
        for end in ends:
            end.result()
