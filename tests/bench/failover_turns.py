"""Prints how long three brokers and their controller hold the loop that they share when one of them is killed.

`python -m tests.bench.failover_turns COUNT FOLDER` creates COUNT partitions with three replicas each in FOLDER, kills a
broker, and prints the processor time of the longest turn until every partition has a leader and clients are told so,
in milliseconds, behind the seconds that this took from the end of the broker's session on."""

from __future__ import annotations

import sys
import time
from functools import partial
from threading import Thread

from pykafkad.clock import Clock
from pykafkad.config import Settings
from pykafkad.server import cluster_settings, full_collections
from pykafkad.server.cluster import Cluster
from pykafkad.server.listeners import Listener
from tests.bench.session import Session

BROKERS = 3
PARTITIONS_EACH = 1000
SESSION_MS = 1000
CREATE_SECONDS = 600


class TimedLoop:
    """Measures the turns of a reactor: what each took of the processor."""

    def __init__(self, reactor):
        self._turn = reactor.turn
        self.longest_seconds = 0.0

    def turn(self, timeout):
        begin = time.thread_time()
        self._turn(timeout)
        self.longest_seconds = max(self.longest_seconds, time.thread_time() - begin)


def make(folder):
    """The cluster, started."""
    named = {
        "log.dirs": (folder, "the bench"),
        "broker.session.timeout.ms": (str(SESSION_MS), "the bench"),
        "default.replication.factor": (str(BROKERS), "the bench"),
    }
    base = Settings.from_properties(named)
    members = cluster_settings.of_brokers(base, BROKERS, [], named)
    listening = [(each, [Listener("PLAINTEXT", "localhost", 0)]) for each in members]
    cluster = Cluster(cluster_settings.of_controller(base, members), listening)
    cluster.start()
    return cluster


def leaders(session, names):
    """The brokers that lead partitions of these topics, as one of them says."""
    return {leader for name in names for _, leader, _ in session.placement([name])[1][name].values()}


def main(count, folder):
    """Prints both figures."""
    cluster = make(folder)
    runtime = cluster.runtime
    timed = TimedLoop(runtime.reactor)
    done = []
    thread = Thread(target=partial(run, runtime, timed, done))
    thread.start()
    try:
        with Session(cluster.listeners[1].port, timeout=CREATE_SECONDS) as session:
            each = min(count, PARTITIONS_EACH)
            names = [f"topic-{number}" for number in range(max(1, count // each))]
            for name in names:
                session.create_replicated(name, each, BROKERS, seconds=CREATE_SECONDS)
            victim = 1
            timed.longest_seconds = 0.0
            runtime.offload.post(lambda _: cluster.kill_broker(victim))
            time.sleep(SESSION_MS / 1000)
            begin = time.monotonic()
            while victim in leaders(session, names):
                time.sleep(0.01)
            seconds = time.monotonic() - begin
    finally:
        done.append(True)
        runtime.reactor.wake()
        thread.join()
        runtime.close()
    print(f"{seconds:.3f} {1e3 * timed.longest_seconds:.1f}")


def run(runtime, timed, done):
    """The loop, as `pykafkad serve` has it."""
    with full_collections.Short(Clock()):
        while not done:
            timed.turn(runtime.seconds_to_next_turn(float("inf")))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
