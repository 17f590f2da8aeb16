"""Loads of brokers that go: the kill of a leader, a controlled shutdown, and a third of many partitions at once.

The same client asks every kind of broker: it produces one record at a time, and at each failure asks the brokers that
are left who leads, without a pause of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

from . import wire_bytes
from .cluster_loads import REPLICATED, ClusterLoad, wait_until_led
from .load import CaseSkipped
from .loadgen import LoadFailed
from .request_loads import encoded_batch
from .session import Session

ATTEMPT_SECONDS = 0.5
RETRY_SECONDS = 0.005
FAILOVER_SECONDS = 120.0
KAFKA_WARM_SECONDS = 3.0
SHUTDOWN_RATE = 200
SHUTDOWN_SECONDS = 90.0
CREATE_SECONDS = 900.0
PARTITIONS_EACH = 1000


def produce_at(port, template):
    """Whether a broker takes a record."""
    with contextlib.suppress(OSError, LoadFailed), Session(port, timeout=ATTEMPT_SECONDS) as session:
        answer = session.call(template.request)
        # Positions of a template count from the size field.
        return not int.from_bytes(answer[template.error_at - 4 : template.error_at - 2], "big")
    return False


def leader_now(ports, topic, index):
    """The leader of a partition, as the first broker of `ports` says that answers; -1 for none."""
    for port in ports.values():
        with contextlib.suppress(OSError, LoadFailed), Session(port, timeout=ATTEMPT_SECONDS) as session:
            rows = session.placement([topic])[1].get(topic, {})
            return rows[index][1] if index in rows else -1
    return -1


def seconds_to_ack(ports, topic, topic_id, index, version):
    """How long it takes from now on until a record of a partition is acknowledged by one of the brokers at `ports`."""
    template = wire_bytes.produce(version, topic, topic_id, index, encoded_batch(None))
    begin = time.monotonic()
    while time.monotonic() - begin < FAILOVER_SECONDS:
        leader = leader_now(ports, topic, index)
        if leader in ports and produce_at(ports[leader], template):
            return time.monotonic() - begin
        time.sleep(RETRY_SECONDS)
    raise LoadFailed(f"nobody leads {topic}-{index} after {FAILOVER_SECONDS:g} s")


class OneLifeLoad(ClusterLoad):
    """Has a new cluster in every round, since the one before has lost a broker."""

    def __init__(self, **shape):
        super().__init__(processes=True, **shape)

    def prepare(self, broker, bench):
        """Nothing is kept from round to round."""

    def round(self, broker, bench):
        """What `measure` finds of a new cluster."""
        super().prepare(broker, bench)
        try:
            return self.measure(self.clusters[broker.name], bench)
        finally:
            self.finish(broker, bench)

    def measure(self, cluster, bench):
        """The figures of one cluster."""
        raise NotImplementedError

    def kill_leader(self, cluster, leaders):
        """Kill a broker that leads something and is not the active controller, for which another election would be
        due; its id, a partition that it led, and the ports of the others."""
        with Session(next(iter(cluster.ports.values()))) as session:
            controller = wire_bytes.parse_quorum_leader(session.call(wire_bytes.describe_quorum()))
        victim, index = next((each, index) for index, each in sorted(leaders.items()) if each != controller)
        others = {node_id: port for node_id, port in cluster.ports.items() if node_id != victim}
        os.kill(cluster.pid_of(victim), signal.SIGKILL)
        return victim, index, others


class FailoverLoad(OneLifeLoad):
    """SIGKILL of the leader of a partition, until a record is acknowledged elsewhere."""

    def measure(self, cluster, bench):
        """`failover_ms`."""
        topic = bench.new_name("failover")
        version = bench.options.produce_version
        with Session(cluster.ports[1]) as session:
            topic_id, leaders = session.create_replicated(topic, 6, 3, REPLICATED)
        wait_until_led(cluster, topic, leaders)
        until = time.monotonic() + (KAFKA_WARM_SECONDS if cluster.name == "kafka" else 0.5)
        while time.monotonic() < until:
            for index in leaders:
                seconds_to_ack(cluster.ports, topic, topic_id, index, version)
        _, index, others = self.kill_leader(cluster, leaders)
        return {"failover_ms": 1e3 * seconds_to_ack(others, topic, topic_id, index, version)}


class ManyFailoversLoad(OneLifeLoad):
    """SIGKILL of the leader of a third of many partitions, until others lead all of them and one has taken a record."""

    def __init__(self, partitions):
        super().__init__()
        self.partitions = partitions

    def measure(self, cluster, bench):
        """`failover_ms`."""
        count = 300 if bench.options.quick else self.partitions
        each = min(count, PARTITIONS_EACH)
        names = [bench.new_name("many") for _ in range(count // each)]
        with Session(cluster.ports[1], timeout=CREATE_SECONDS) as session:
            made = {
                name: session.create_replicated(name, each, 3, REPLICATED, seconds=CREATE_SECONDS) for name in names
            }
        topic, (topic_id, leaders) = list(made.items())[-1]
        wait_until_led(cluster, topic, leaders)
        begin = time.monotonic()
        victim, index, others = self.kill_leader(cluster, leaders)
        for port in others.values():
            with Session(port) as session:
                for name in names:
                    self._wait_until_others_lead(session, name, victim)
        seconds_to_ack(others, topic, topic_id, index, bench.options.produce_version)
        return {"failover_ms": 1e3 * (time.monotonic() - begin)}

    @staticmethod
    def _wait_until_others_lead(session, name, victim):
        deadline = time.monotonic() + FAILOVER_SECONDS
        while any(leader in (victim, -1) for _, leader, _ in session.placement([name])[1][name].values()):
            if time.monotonic() > deadline:
                raise LoadFailed(f"partitions of {name} have no other leader after {FAILOVER_SECONDS:g} s")
            time.sleep(RETRY_SECONDS)


class ShutdownLoad(OneLifeLoad):
    """A broker stops in a controlled way while confluent-kafka produces to all of its partitions."""

    def measure(self, cluster, bench):
        """`client_errors`, and `longest_pause_ms` between two acknowledged records."""
        topic = bench.new_name("shutdown")
        with Session(cluster.ports[1]) as session:
            _, leaders = session.create_replicated(topic, 6, 3, REPLICATED)
        wait_until_led(cluster, topic, leaders)
        producing = _Producing(cluster.ports, topic)
        try:
            time.sleep(bench.options.warmup)
            victim = cluster.pid_of(leaders[0])
            os.kill(victim, signal.SIGTERM)
            deadline = time.monotonic() + SHUTDOWN_SECONDS
            while _runs(victim):
                if time.monotonic() > deadline:
                    raise LoadFailed(f"a controlled shutdown takes more than {SHUTDOWN_SECONDS:g} s")
                time.sleep(0.01)
            time.sleep(bench.options.warmup)
        finally:
            errors, pause_seconds = producing.end()
        return {"client_errors": errors, "longest_pause_ms": 1e3 * pause_seconds}


def _runs(pid):
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class _Producing:
    """A producer on a thread, which sends a record to each partition in turn, `SHUTDOWN_RATE` a second."""

    def __init__(self, ports, topic):
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise CaseSkipped("confluent-kafka is not installed") from None
        bootstrap = ",".join(f"localhost:{port}" for port in ports.values())
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "on_delivery": self._delivered})
        self._topic = topic
        self._errors = 0
        self._last = None
        self._pause_seconds = 0.0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _delivered(self, error, _message):
        now = time.monotonic()
        if error is not None:
            self._errors += 1
        elif self._last is not None:
            self._pause_seconds = max(self._pause_seconds, now - self._last)
        self._last = now

    def _run(self):
        number = 0
        while not self._ends.is_set():
            self._producer.produce(self._topic, b"x" * 100, partition=number % 6)
            number += 1
            self._producer.poll(1 / SHUTDOWN_RATE)
        self._producer.flush(60)

    def end(self):
        """How many records were not acknowledged, and the longest pause in seconds between two that were."""
        self._ends.set()
        self._thread.join()
        return self._errors + len(self._producer), self._pause_seconds
