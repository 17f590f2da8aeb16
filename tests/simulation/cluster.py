"""Several runtimes in one process, over one simulated network, from one seed.

Everything above the sockets is the product's: reactor, transports, connections, peers, timers. Replaced are sockets
(`network.py`), the clock (one for all, moved to the next thing that happens), chance and the threads beside the loop,
whose jobs run as events. What order leaves open is drawn from the seed: which node gets its turn first, which of its
descriptors is told first, and what of the same time happens first. `digest` is the same for the same seed."""

import hashlib
import random
from collections import deque
from heapq import heapify, heappop, heappush

from pykafkad.clock import ManualClock
from pykafkad.server.offload import outcome
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import EVERYBODY, Host, Network


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

    most_turns = 1_000_000
    """A world with more than that goes on for ever."""

    def __init__(self, seed, hosts):
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.network = Network(self.clock, random.Random(self.random.random()))
        self.runtimes = {}
        self._hosts = {}
        self._digest = hashlib.sha256()
        self.turns = 0
        self._heap = []
        self._due = set()
        """Names of runtimes that want a turn now by `times`. The other times are in the heap, as (time, name), with
        some that are no longer so."""
        self.times = {}
        """When each runtime wants its next turn, as far as that is known. Who changes a runtime outside of its own
        turns, and of what happens on the network, clears it."""
        self._told = set()
        """Names of runtimes whose pollers are known to have something to tell. Until the runtime's turn, or until an
        action of the network changes it, that stays so: bytes, and turns of others, add to what there is to tell."""
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
        self._changed(EVERYBODY)
        while not holds():
            for name in self.network.arrive():
                self._changed(name)
            ready = self._ready()
            if ready:
                self._turn(self.random.choice(ready))
                continue
            at = self._next_at()
            if at is None or (until is not None and at > until):
                if until is not None:
                    # A clean stop within the run may have lasted longer than this.
                    self.clock.advance(max(0.0, until - self.clock.now()))
                return
            self.clock.advance(max(0.0, at - self.clock.now()))

    def _changed(self, name):
        """Something changed a runtime, or `EVERYBODY`: what is known of it may be so no more."""
        if name == EVERYBODY:
            self.times.clear()
            self._told.clear()
        else:
            self._forget(name)

    def _forget(self, name):
        self.times.pop(name, None)
        self._due.discard(name)
        self._told.discard(name)

    def _ready(self):
        """The names of those that want a turn."""
        now, times, due, runtimes = self.clock.now(), self.times, self._due, self.runtimes
        if self.network.with_news:
            self._learn_of_events()
        for name in runtimes:
            if name not in times:
                self._ask_time(name, now)
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, name = heappop(heap)
            if times.get(name) == at:
                due.add(name)
        found = due | self._told
        if len(found) > 1:
            # In an order that does not depend on that of a set.
            return [name for name in runtimes if name in found]
        return [name for name in found if name in runtimes]

    def _learn_of_events(self):
        """Find those whose pollers have something to tell."""
        told, with_news = self._told, self.network.with_news
        for poller in list(with_news):
            if poller.host_name in told:
                continue
            host = self._hosts.get(poller.host_name)
            if host is not None and host.poller is poller and poller.has_events():
                told.add(poller.host_name)
            else:
                with_news.discard(poller)

    def _wanted_at(self, name):
        """When a runtime wants its next turn, in seconds of the cluster's clock; None: never."""
        return self.runtimes[name].next_turn_at()

    def _ask_time(self, name, now):
        """Ask a runtime when it wants its next turn."""
        at = self.times[name] = self._wanted_at(name)
        self._due.discard(name)
        if at is None:
            return
        if at <= now:
            self._due.add(name)
            return
        heappush(self._heap, (at, name))
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self.times):
            self._heap = [(at, name) for name, at in self.times.items() if at is not None and at > now]
            heapify(self._heap)

    def _turn(self, name):
        self.turns += 1
        assert self.turns < self.most_turns, "they go on for ever"
        self._digest.update(name.encode())
        self.runtimes[name].reactor.turn(0)
        self._forget(name)

    def _next_at(self):
        """When the next thing happens, or None."""
        times, heap = self.times, self._heap
        while heap and (times.get(heap[0][1]) != heap[0][0] or heap[0][1] not in self.runtimes):
            _, name = heappop(heap)
            if name not in self.runtimes:
                # Should it come back, it is asked anew.
                times.pop(name, None)
        at = self.network.next_at()
        return heap[0][0] if heap and (at is None or heap[0][0] < at) else at
