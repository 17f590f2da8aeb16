"""Three brokers and three controllers of pykafkad, a process each, which reach each other through proxies: so each link
can be cut by itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import CLUSTER_ID
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.exactly_once.proxy import WAYS, Proxy
from compat_tests.quorum.nodes import of_role

BROKERS = (1, 2, 3)
CONTROLLERS = (11, 12, 13)
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
    """`nodes` by their ids. A node is reached at its proxy by everybody, clients and other nodes."""

    def __init__(self, directory: Path) -> None:
        ports = {number: free_port() for number in (*BROKERS, *CONTROLLERS)}
        self._proxy_ports = {number: free_port() for number in ports}
        self.nodes: dict[int, ProcessBroker] = {}
        self.proxies: dict[int, Proxy] = {}
        voters = ",".join(f"{each}@localhost:{self._proxy_ports[each]}" for each in CONTROLLERS)
        for number, port in ports.items():
            role, name = ("broker", "PLAINTEXT") if number in BROKERS else ("controller", "CONTROLLER")
            settings = {**of_role(role, number, port, 0), **SETTINGS, "pykafkad.cluster.id": CLUSTER_ID}
            del settings["controller.quorum.bootstrap.servers"]
            settings["controller.quorum.voters"] = voters
            settings["advertised.listeners"] = f"{name}://localhost:{self._proxy_ports[number]}"
            (directory / str(number)).mkdir()
            self.nodes[number] = PykafkadProcess(directory / str(number), settings, port=port)
        self.bootstrap = ",".join(f"localhost:{self._proxy_ports[each]}" for each in BROKERS)
        self._admin: AdminClient | None = None

    def start(self) -> None:
        """Start all of them: a broker is ready when it knows a controller, and that takes two voters."""
        for number in (*CONTROLLERS, *BROKERS):
            self.proxies[number] = Proxy(self._proxy_ports[number], self.nodes[number].bootstrap)
        for number in (*CONTROLLERS, *BROKERS):
            self.nodes[number].start()

    def signal(self, number: int, signal_number: signal.Signals) -> None:
        os.kill(self.nodes[number].pid, signal_number)

    @staticmethod
    def clients_of(source: int) -> list[str]:
        """The client ids of what a broker asks others, or of everybody that observes or votes in the quorum."""
        if source not in BROKERS:
            return ["raft-client"]
        return [f"broker-{source}{suffix}" for suffix in ("", "-fetcher-0", "-heartbeat", "-to-controller")]

    def cut(self, source: int, target: int, way: int) -> None:
        """Hold what one node asks another, what is answered, or both, as `way` says."""
        for client in self.clients_of(source):
            self.proxies[target].cut(client, WAYS[way])

    def heal(self, source: int, target: int, *, reset: bool) -> None:
        for client in self.clients_of(source):
            self.proxies[target].heal(client, reset)

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
        for proxy in self.proxies.values():
            proxy.close()
        words = ("unexpected-error", "Traceback (most recent call last)")
        return [
            f"{number}: {line}"
            for number, node in self.nodes.items()
            for line in node.log_text().splitlines()
            if any(each in line for each in words)
        ]
