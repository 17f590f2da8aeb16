"""Nodes that are a broker and a controller each, three in a quorum, as processes: real Kafka ones and pykafkad ones,
with the same `server.properties`."""

from __future__ import annotations

from pathlib import Path

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import CLUSTER_ID, KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.brokers.settings import as_properties
from compat_tests.tools.runner import ToolRunner
from pykafkad.cli.commands import main

NODES = (1, 2, 3)
LISTENER = "CONTROLLER"
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}


def combined_settings(
    node_id: int, brokers: dict[int, int], controllers: dict[int, int], *, is_dynamic: bool
) -> dict[str, str]:
    """As Kafka's documentation has them, with the ports of all nodes."""
    if is_dynamic:
        servers = ",".join(f"localhost:{port}" for port in controllers.values())
        quorum = {"controller.quorum.bootstrap.servers": servers}
    else:
        quorum = {"controller.quorum.voters": ",".join(f"{each}@localhost:{at}" for each, at in controllers.items())}
    addresses = f"PLAINTEXT://localhost:{brokers[node_id]},{LISTENER}://localhost:{controllers[node_id]}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": addresses,
        "advertised.listeners": addresses,
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": LISTENER,
        "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        **quorum,
        **SETTINGS,
    }


class CombinedKafka(KafkaProcess):
    """A real Kafka."""

    def __init__(self, jars: Path, directory: Path, settings: dict[str, str], port: int) -> None:
        directory.mkdir()
        super().__init__(jars, directory, port=port)
        self.properties_path.write_text(as_properties({**settings, "log.dirs": str(self.data_directory)}))


def combined_pykafkad(directory: Path, settings: dict[str, str], port: int) -> PykafkadProcess:
    """pykafkad."""
    directory.mkdir()
    return PykafkadProcess(directory, {**settings, "log.dirs": str(directory / "data")}, port=port)


def format_by_the_other(runner: ToolRunner, node: ProcessBroker, *options: str) -> None:
    """Have Kafka's tool format the directory of a node of pykafkad, and pykafkad that of a Kafka."""
    arguments = ["format", "-t", CLUSTER_ID, "-c", str(node.directory / "server.properties"), *options]
    if node.name == "kafka":
        assert main(arguments) == 0
    else:
        formatted = runner.run("storage", arguments)
        assert formatted.code == 0, formatted
