"""Three brokers and three controllers of pykafkad, a process each, whose links can be cut one by one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import CLUSTER_ID
from compat_tests.quorum.nodes import of_role
from compat_tests.rounds.network import BROKERS, CONTROLLERS, NODES, Network

SESSION_MS = 2000
SETTINGS = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "800",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    **{
        f"{topic}.{name}": value
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        for name, value in (("replication.factor", "3"), ("min.isr", "2"))
        if (topic, name) != ("offsets.topic", "min.isr")
    },
}


class Cluster:
    """`nodes` by their ids."""

    def __init__(self, directory: Path, network: Network) -> None:
        self.network = network
        self.nodes: dict[int, ProcessBroker] = {}
        voters = ",".join(f"{each}@{network.address(each)}" for each in CONTROLLERS)
        for number in NODES:
            role, name = ("broker", "PLAINTEXT") if number in BROKERS else ("controller", "CONTROLLER")
            settings = {**of_role(role, number, 0, 0), **SETTINGS, "pykafkad.cluster.id": CLUSTER_ID}
            del settings["controller.quorum.bootstrap.servers"]
            settings["controller.quorum.voters"] = voters
            settings["listeners"] = f"{name}://{network.listening(number)}"
            settings["advertised.listeners"] = f"{name}://{network.address(number)}"
            (directory / str(number)).mkdir()
            self.nodes[number] = network.process(number, directory / str(number), settings)
        self.bootstrap = ",".join(map(network.address, BROKERS))
        self._admin: AdminClient | None = None

    def start(self) -> None:
        """Start all of them: a broker is ready when it knows a controller, and that takes two voters."""
        self.network.open()
        for number in (*CONTROLLERS, *BROKERS):
            self.nodes[number].start()

    def signal(self, number: int, signal_number: signal.Signals) -> None:
        os.kill(self.nodes[number].pid, signal_number)

    def is_whole(self) -> bool:
        """Whether every partition has a leader, and all its replicas in sync."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            topics = self._admin.list_topics(timeout=10).topics.values()
        except KafkaException:
            return False
        rows = [row for topic in topics for row in topic.partitions.values()]
        return bool(rows) and all(row.leader > 0 and len(row.isrs) == len(row.replicas) for row in rows)

    def close(self) -> list[str]:
        """Stop everything; what the nodes log as a bug."""
        for number in (*BROKERS, *CONTROLLERS):
            node = self.nodes[number]
            if node.is_alive():
                self.signal(number, signal.SIGCONT)
            node.kill()
        self.network.close()
        words = ("unexpected-error", "Traceback (most recent call last)")
        return [
            f"{number}: {line}"
            for number, node in self.nodes.items()
            for line in node.log_text().splitlines()
            if any(each in line for each in words)
        ]
