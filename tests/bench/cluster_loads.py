"""Loads of clusters of three brokers: replicated Produce, the kill of a leader, a controlled shutdown, many partitions.

Each has clusters of its own, from `prepare` to `finish`, which nothing else uses."""

from __future__ import annotations

import os

from . import loadgen
from .load import Load
from .request_loads import PARTITIONS, encoded_batch
from .session import Session
from .wire_bytes import produce

REPLICATED = {"min.insync.replicas": "2"}
# On a busy machine nobody is to lose a session or a place in the ISR in the middle of a run; it costs nothing.
PATIENT = (
    "broker.session.timeout.ms=60000",
    "replica.lag.time.max.ms=60000",
    "controller.quorum.fetch.timeout.ms=30000",
    "controller.quorum.election.timeout.ms=5000",
)
KAFKA_WARM_SECONDS = 15.0
OWN_WARM_SECONDS = 1.0


class ClusterLoad(Load):
    """Has a cluster for each broker under test."""

    settings = ()

    def __init__(self, *, processes=False):
        self.processes = processes
        self.clusters = {}

    def prepare(self, broker, bench):
        """Start the cluster."""
        made = self.clusters[broker.name] = bench.cluster(broker.name, self.settings, processes=self.processes)
        made.start()

    def finish(self, broker, bench):
        """End it."""
        if broker.name in self.clusters:
            self.clusters.pop(broker.name).discard()


class ClusterProduceLoad(ClusterLoad):
    """One batch, produced again and again with acks=all to six partitions of three replicas each, of which two must be
    in sync. The connections are dealt out to the brokers, and each produces to the partitions that its broker leads."""

    settings = PATIENT

    def __init__(self, batch_bytes, *, connections, depth=1, replicas=3, processes=False):
        super().__init__(processes=processes)
        self.batch_bytes = batch_bytes
        self.replicas = replicas
        self.shape = {"connections": connections, "depth": depth}

    def prepare(self, broker, bench):
        """Start the cluster, and warm it: a JVM compiles for a while before it shows what it can do."""
        super().prepare(broker, bench)
        seconds = KAFKA_WARM_SECONDS if broker.name == "kafka" else OWN_WARM_SECONDS
        self._run(broker, bench, 1.0 if bench.options.quick else seconds, 0.0)

    def round(self, broker, bench):
        """Rates, latencies, and the processor time of all brokers together."""
        return self._run(broker, bench, bench.options.seconds, bench.options.warmup)

    def _run(self, broker, bench, seconds, warmup):
        cluster = self.clusters[broker.name]
        return run_produce(
            cluster, bench, self.batch_bytes, replicas=self.replicas, seconds=seconds, warmup=warmup, **self.shape
        )


def run_produce(cluster, bench, batch_bytes, *, replicas, **shape):
    """Produce to a fresh topic of six partitions, each at its leader; rates, latencies, memory and processor time."""
    topic = bench.new_name("replicated")
    ports = list(cluster.ports.values())
    with Session(ports[0]) as session:
        configs = REPLICATED if replicas > 1 else {}
        topic_id, leaders = session.create_replicated(topic, PARTITIONS, replicas, configs)
        wait_until_led(cluster, topic, leaders)
        path = bench.scratch / f"{topic}.templates"
        loadgen.write_templates(path, produce_to_leaders(bench, topic, topic_id, leaders, cluster, batch_bytes))
        figures = loadgen.run(ports, path, pid=cluster.pids(), **shape)
        figures["rss_mb"] = cluster.memory_mb()
        session.delete_topics([topic])
    path.unlink()
    return figures


def wait_until_led(cluster, topic, leaders):
    """Wait until every broker knows what it leads of a topic."""
    for node_id, port in cluster.ports.items():
        with Session(port) as session:
            session.wait_until_led(topic, len(leaders), [index for index, each in leaders.items() if each == node_id])


def produce_to_leaders(bench, topic, topic_id, leaders, cluster, batch_bytes):
    """A Produce template for each partition, for the broker that leads it."""
    version, batch = bench.options.produce_version, encoded_batch(batch_bytes)
    numbers = {node_id: number for number, node_id in enumerate(cluster.ports)}
    return [
        produce(version, topic, topic_id, partition, batch)._replace(broker=numbers[leader])
        for partition, leader in sorted(leaders.items())
    ]


class ProcessesLoad(Load):
    """What a second process gains: one record a request with factor 1, to one process and to two. Kafka has nothing
    like it."""

    connections = 50

    def round(self, broker, bench):
        """Rates and processor time of both; `processes_ratio` where the brokers and the load have a core each."""
        if broker.name == "kafka":
            return {}
        figures = {}
        rates = []
        for brokers, name in ((1, "one_process"), (2, "two_processes")):
            shape = {"brokers": brokers, "processes": brokers > 1}
            cluster = bench.cluster(broker.name, PATIENT, **shape)
            try:
                cluster.start()
                found = run_produce(
                    cluster, bench, None, replicas=1, connections=self.connections,
                    seconds=bench.options.seconds, warmup=bench.options.warmup,
                )  # fmt: skip
            finally:
                cluster.discard()
            rates.append(found["requests_per_s"])
            figures |= {f"{name}_rate": rates[-1], f"{name}_cpu": found["cpu_percent"]}
        if os.cpu_count() >= 2 + 1:
            figures["processes_ratio"] = rates[1] / rates[0]
        return figures
