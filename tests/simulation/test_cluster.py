"""Three nodes that echo requests to each other through peers, from one seed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad import effects
from pykafkad.server.machine_runner import MachineRunner
from pykafkad.server.peer_types import Failure
from pykafkad.wire import messages
from tests.simulation.cluster import Cluster
from tests.simulation.echo import PORT, EchoNode
from tests.simulation.network import Link, SimulatedSocket
from tests.simulation.poller import WRITE

HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
ASKS = 40
SECONDS = 20.0


class Answered:
    """The event that an echo, or its failure, becomes."""

    def __init__(self, node_id, data, outcome):
        self.node_id = node_id
        self.data = data
        self.outcome = outcome


class Asker:
    """A pure machine: it asks the other nodes in turn, and asks again what failed."""

    def __init__(self, node_id, others):
        self.node_id = node_id
        self.others = others
        self.asked = 0
        self.echoed = []
        self.failures = 0

    def step(self, event, now, now_ms):
        if type(event) is effects.TimerFired:
            if self.asked == ASKS:
                return []
            self.asked += 1
            data = b"%d asks %d" % (self.node_id, self.asked)
            return [self._send(data), effects.SetTimer("ask", now + 0.05)]
        if type(event.outcome) is Failure:
            self.failures += 1
            return [self._send(event.data)]
        assert event.outcome.auth_bytes == event.data
        self.echoed.append(event.data)
        return []

    def _send(self, data):
        to = self.others[(self.asked + self.failures) % len(self.others)]
        request = messages.SaslAuthenticateRequest(auth_bytes=data)
        return effects.Send(to, request, lambda outcome: Answered(to, data, outcome))


class NotingRunner(MachineRunner):
    """Every event is told to the world's digest."""

    __slots__ = ("cluster",)

    def step(self, event):
        if type(event) is Answered:
            self.cluster.note(self.machine.node_id, event.node_id, event.data, repr(type(event.outcome).__name__))
        return super().step(event)


def echo_world(seed, *, faults=True):
    """Runs until everybody has every echo; the cluster, the machines and the echoes."""
    cluster = Cluster(seed, HOSTS)
    network = cluster.network
    network.set_usual_link(Link(delay=0.002, jitter=0.01, bytes_per_second=100_000, window_bytes=2_000))
    echoes = [EchoNode(cluster, host) for host in HOSTS]
    machines = []
    for node_id, host in enumerate(HOSTS):
        runtime = cluster.runtimes[host]
        for other, address in enumerate(HOSTS):
            if other != node_id:
                runtime.peers.set_address(other, address, PORT)
        machine = Asker(node_id, [other for other in range(len(HOSTS)) if other != node_id])
        runner = NotingRunner(runtime, machine)
        runner.cluster = cluster
        machines.append(machine)
        runtime.timers.set((runner, "ask"), 0.0)
    if faults:
        chance = cluster.random
        for at in sorted(chance.uniform(0.1, 3.0) for _ in range(6)):
            one, other = chance.sample(HOSTS, 2)
            if chance.random() < 0.5:
                network.at(at, lambda one=one, other=other: network.reset(one, other))
            else:
                network.at(at, lambda one=one, other=other: network.cut(one, other))
                network.at(at + chance.uniform(0.1, 1.0), lambda one=one, other=other: network.mend(one, other))
    cluster.run(SECONDS, holds=lambda: all(len(each.echoed) >= ASKS for each in machines))
    return cluster, machines, echoes


@pytest.mark.parametrize("seed", range(8))
def test_every_request_is_echoed_whatever_the_links_do(seed):
    """Delays, cuts in one direction, resets: what fails is asked again, and nobody gets another's answer."""
    cluster, machines, _ = echo_world(seed)
    for machine in machines:
        assert sorted(machine.echoed) == sorted(b"%d asks %d" % (machine.node_id, each + 1) for each in range(ASKS))
    assert all(runtime.metrics.unexpected_errors == 0 for runtime in cluster.runtimes.values())


def test_without_faults_nothing_fails_and_each_asks_over_one_connection():
    """Two connections come in and two go out."""
    _, machines, echoes = echo_world(1, faults=False)
    assert [machine.failures for machine in machines] == [0, 0, 0]
    assert [len(each.socket_server) for each in echoes] == [2, 2, 2]
    assert [each.metrics.connections_accepted for each in echoes] == [2, 2, 2]


@pytest.mark.long
def test_the_same_seed_gives_the_same_world_and_another_one_another():
    """Also under another seed of the interpreter's hashes."""
    digests = {echo_world(3)[0].digest for _ in range(2)}
    for hash_seed in ("0", "1", "4711"):
        code = "from tests.simulation.test_cluster import echo_world; print(echo_world(3)[0].digest)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert echo_world(4)[0].digest not in digests
    assert len(digests.pop()) == len(hashlib.sha256().hexdigest())


def test_what_a_machine_that_vanished_did_not_read_leaves_no_room():
    """A poller that told of room, and a send that found none, would keep a loop busy for ever."""
    network = Cluster(1, HOSTS).network
    network.set_usual_link(Link(window_bytes=10))
    one, other = (SimulatedSocket(network, host, (host, PORT)) for host in HOSTS[:2])
    one.peer, other.peer = other, one
    one.is_connected = other.is_connected = True
    assert one.send(b"x" * 20) == 10 and not one.events() & WRITE
    network.descriptors = {1: one, 2: other}
    network.vanish(HOSTS[1])
    assert other.is_closed and not one.events() & WRITE
    with pytest.raises(BlockingIOError):
        one.send(b"x")
