"""A real Kafka of a release whose brokers are coordinated by ZooKeeper, which runs beside it from the same jars."""

from __future__ import annotations

from pathlib import Path

from compat_tests.brokers.broker import ProcessBroker, free_port, wait_until_ready
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.settings import NODE_ID, SHARED_SETTINGS, as_properties

# Settings that came later, or are for controllers alone. A broker shows what it does not know, too.
_LATER = ("group.streams.", "share.", "log.initial.", "broker.session.", "broker.heartbeat.")


class _ZooKeeper(ProcessBroker):
    """One server of ZooKeeper, started as Kafka's scripts do."""

    name = "zookeeper"
    how = "ZooKeeper as a process, from Maven's jars"

    def __init__(self, java: list[str], directory: Path) -> None:
        super().__init__(directory)
        self.port = free_port()
        self.bootstrap = f"localhost:{self.port}"
        self._java = java
        self._properties = directory / "zookeeper.properties"
        text = (
            f"dataDir={directory}/zookeeper-data\nclientPort={self.port}\nadmin.enableServer=false\nmaxClientCnxns=0\n"
        )
        self._properties.write_text(text)

    def start(self) -> None:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._spawn([*self._java, main, str(self._properties)])


class ZooKeeperKafka(KafkaProcess):
    """Kafka from `jars`, and its ZooKeeper, with their data under `directory`."""

    how = "Kafka 2.8 and ZooKeeper as processes, from Maven's jars"

    def __init__(self, jars: Path, directory: Path) -> None:
        super().__init__(jars, directory)
        beside = directory / "zookeeper"
        beside.mkdir()
        self._zookeeper = _ZooKeeper(self._java, beside)
        settings = {
            "broker.id": str(NODE_ID),
            "listeners": f"PLAINTEXT://localhost:{self.port}",
            "zookeeper.connect": self._zookeeper.bootstrap,
            "log.dirs": str(self.data_directory),
            **{name: value for name, value in SHARED_SETTINGS.items() if not name.startswith(_LATER)},
        }
        self.properties_path.write_text(as_properties(settings, str(self.data_directory)))

    def start(self, options: tuple[str, ...] = ()) -> None:  # type: ignore[override]
        """Start both. The broker waits for ZooKeeper by itself, and makes its directory."""
        self._zookeeper.start()
        self._run("kafka.Kafka", options)
        wait_until_ready(self, self.is_alive)

    def close(self) -> None:
        super().close()
        self._zookeeper.close()
