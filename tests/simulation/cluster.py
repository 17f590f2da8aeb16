"""Several runtimes in one process, over one simulated network, from one seed.

Everything above the sockets is the product's: reactor, transports, connections, peers, timers. Replaced are sockets
(`network.py`), the clock (one for all, moved to the next thing that happens), chance and the threads beside the loop,
whose jobs run as events. What order leaves open is drawn from the seed: which node gets its turn first, which of its
descriptors is told first, and what of the same time happens first. `digest` is the same for the same seed."""

import hashlib
import random
from collections import deque

from pykafkad.clock import ManualClock
from pykafkad.server.offload import outcome
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import Host, Network

MOST_TURNS = 1_000_000


class EventOffload:
    """Jobs beside the loop: each runs a moment after it was submitted, in their order, and then wakes the loop."""

    def __init__(self, cluster, runtime):
        self._cluster = cluster
        self._runtime = runtime
        self._free_at = 0.0
        self._results = deque()

    def submit(self, job, then):
        now = self._cluster.clock.now()
        self._free_at = max(self._free_at, now) + self._cluster.random.random() * 0.01
        self._cluster.network.at(self._free_at, lambda: self._run(job, then))

    def _run(self, job, then):
        disk = self._runtime.disk
        refuses_syncs, disk.refuses_syncs = disk.refuses_syncs, False
        try:
            self._results.append((then, outcome(job)))
        finally:
            disk.refuses_syncs = refuses_syncs
        self._runtime.reactor.wake()

    def finished(self):
        while self._results:
            then, result = self._results.popleft()
            then(result)

    def close(self):
        self.finished()


class Cluster:
    """`hosts` names make a runtime each: `runtimes[name]`."""

    def __init__(self, seed, hosts):
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.network = Network(self.clock, random.Random(self.random.random()))
        self.runtimes = {}
        self._hosts = {}
        self._digest = hashlib.sha256()
        self.turns = 0
        self.times = {}
        """When each runtime wants its next turn, as far as that is known. Who changes a runtime outside of its own
        turns, and of what happens on the network, clears it."""
        for name in hosts:
            self.add(name)

    def add(self, name):
        """One more machine with a runtime."""
        host = self._hosts[name] = Host(self.network, name)
        runtime = self.runtimes[name] = Runtime(
            clock=self.clock,
            disk=MemoryDisk(),
            random=random.Random(self.random.random()),
            reactor=lambda runtime: Reactor(runtime, host),
        )
        runtime.offload, runtime.cpu_offload = EventOffload(self, runtime), EventOffload(self, runtime)
        return runtime

    def note(self, *values):
        """Something happened that the digest tells."""
        self._digest.update(repr((self.clock.now(), *values)).encode())

    @property
    def digest(self):
        """The same for the same seed: everything noted, and every turn."""
        return self._digest.hexdigest()

    def run(self, until=None, *, holds=lambda: False):
        """Give turns and let time pass until `holds()`, until monotonic second `until`, or until nothing happens."""
        self.times.clear()
        while not holds():
            if self.network.arrive():
                self.times.clear()
            ready = self._ready()
            if ready:
                self._turn(self.random.choice(ready))
                continue
            at = self._next_at()
            if at is None or (until is not None and at > until):
                if until is not None:
                    self.clock.advance(until - self.clock.now())
                return
            self.clock.advance(max(0.0, at - self.clock.now()))

    def _ready(self):
        """The names of those that want a turn."""
        now, times, found = self.clock.now(), self.times, []
        for name, runtime in self.runtimes.items():
            if name not in times:
                times[name] = runtime.next_turn_at()
            at = times[name]
            if (at is not None and at <= now) or self._hosts[name].poller.has_events():
                found.append(name)
        return found

    def _turn(self, name):
        self.turns += 1
        assert self.turns < MOST_TURNS, "they go on for ever"
        self._digest.update(name.encode())
        self.runtimes[name].reactor.turn(0)
        self.times.pop(name, None)

    def _next_at(self):
        """When the next thing happens, or None."""
        times = [self.network.next_at(), *(self.times[name] for name in self.runtimes)]
        return min((at for at in times if at is not None), default=None)
