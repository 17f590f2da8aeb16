"""Controllers of one quorum, as processes: real Kafka ones and pykafkad ones, formatted by Kafka's own tool."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from compat_tests.brokers.broker import BrokerFailed, ProcessBroker
from compat_tests.brokers.kafka_process import CLUSTER_ID, KafkaProcess
from compat_tests.brokers.pykafkad_process import REPOSITORY, START_SECONDS
from compat_tests.brokers.settings import as_properties

LISTENER = "CONTROLLER"


def settings_of(node_id: int, ports: dict[int, int], data: Path, *, is_dynamic: bool) -> dict[str, str]:
    """The settings of a controller alone, one of the voters at `ports`; with `is_dynamic` those of the log."""
    if is_dynamic:
        servers = ",".join(f"localhost:{port}" for port in ports.values())
        quorum = {"controller.quorum.bootstrap.servers": servers}
    else:
        quorum = {"controller.quorum.voters": ",".join(f"{each}@localhost:{port}" for each, port in ports.items())}
    return {
        "process.roles": "controller",
        "node.id": str(node_id),
        "listeners": f"{LISTENER}://localhost:{ports[node_id]}",
        "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT",
        "controller.listener.names": LISTENER,
        "log.dirs": str(data),
        **quorum,
    }


class KafkaVoter(KafkaProcess):
    """A real Kafka controller."""

    def __init__(
        self, jars: Path, directory: Path, node_id: int, ports: dict[int, int], *, is_dynamic: bool = False
    ) -> None:
        super().__init__(jars, directory, port=ports[node_id])
        self.is_dynamic = is_dynamic
        settings = settings_of(node_id, ports, self.data_directory, is_dynamic=is_dynamic)
        settings["metadata.log.max.snapshot.interval.ms"] = "3000"
        self.properties_path.write_text(as_properties(settings))
        self.format_options = ["--standalone"] if is_dynamic else []

    def format_for(self, properties: Path, how: str | None) -> None:
        """Have Kafka's tool format the directory that a file of properties names."""
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
        command += [how] if how else []
        formatted = subprocess.run(command, capture_output=True, text=True)
        if formatted.returncode != 0:
            raise BrokerFailed(f"StorageTool format failed:\n{formatted.stdout}{formatted.stderr}")


class PykafkadVoter(ProcessBroker):
    """A pykafkad controller, whose directory `kafka` formats."""

    name = "pykafkad"
    how = "pykafkad as a process"

    def __init__(self, kafka: KafkaVoter, directory: Path, node_id: int, ports: dict[int, int], **more: str) -> None:
        directory.mkdir()
        super().__init__(directory)
        self.bootstrap = f"localhost:{ports[node_id]}"
        self.data_directory = directory / "data"
        self.properties_path = directory / "controller.properties"
        self.ready_path = directory / "ready"
        settings = settings_of(node_id, ports, self.data_directory, is_dynamic=kafka.is_dynamic)
        settings |= {name.replace("_", "."): value for name, value in more.items()}
        self.properties_path.write_text(as_properties(settings))
        kafka.format_for(self.properties_path, "--no-initial-controllers" if kafka.is_dynamic else None)

    def start(self) -> None:
        self.ready_path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pykafkad", "serve", str(self.properties_path)]
        command += ["--ready-file", str(self.ready_path)]
        self._spawn(command, {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"})
        deadline = time.monotonic() + START_SECONDS
        while not self.ready_path.exists() or not self.ready_path.read_text().strip():
            if not self.is_alive() or time.monotonic() > deadline:
                raise BrokerFailed(f"pykafkad wrote no readiness line:\n{self.log_tail()}")
            time.sleep(0.01)
