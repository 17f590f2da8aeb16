"""A real Kafka as a plain process, from the jars that Maven downloaded."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat_tests.brokers.broker import BrokerFailed, ProcessBroker, free_port, wait_until_ready
from compat_tests.brokers.settings import (
    JAVA_OPTIONS,
    LOGGING_PROPERTIES,
    OLDER_LOGGING_PROPERTIES,
    as_properties,
    kafka_properties,
)
from compat_tests.setup import class_archive
from compat_tests.setup.kafka_jars import KAFKA_VERSION

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"


class KafkaProcess(ProcessBroker):
    """Kafka from `jars` with its data under `directory`.

    `overrides` are settings beyond the shared ones, `port` is a fixed port instead of a free one, and `release` is the
    metadata.version of a newly formatted directory (`3.9-IV0`).
    """

    name = "kafka"
    how = f"Kafka {KAFKA_VERSION} as a process, from Maven's jars"
    FORMAT_OPTIONS: tuple[str, ...] = ("--standalone",)

    def __init__(
        self,
        jars: Path,
        directory: Path,
        overrides: dict[str, str] | None = None,
        port: int | None = None,
        release: str | None = None,
    ) -> None:
        super().__init__(directory)
        self._release = [] if release is None else ["--release-version", release]
        self.port = port or free_port()
        self.bootstrap = f"localhost:{self.port}"
        self.data_directory = directory / "data"
        settings = kafka_properties(self.port, free_port(), str(self.data_directory), "localhost")
        self.properties_path = directory / "server.properties"
        self.properties_path.write_text(as_properties({**settings, **(overrides or {})}, str(self.data_directory)))
        (directory / "log4j2.properties").write_text(LOGGING_PROPERTIES)
        (directory / "log4j.properties").write_text(OLDER_LOGGING_PROPERTIES)
        self._java = [
            "java",
            *JAVA_OPTIONS,
            *class_archive.options(jars),
            f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{directory / 'log4j.properties'}",
        ]
        self._java += ["-cp", f"{jars}/*"]

    def add_classes(self, directory: Path, properties: dict[str, str]) -> None:
        """Load plug-ins from `directory`; they read Java's system `properties`."""
        self._java[-1] += f":{directory}"
        self._java[1:1] = [f"-D{name}={value}" for name, value in properties.items()]

    def start(self, options: Sequence[str] = ()) -> None:
        """Start it with more options of the virtual machine; a new directory is formatted first."""
        if not self.data_directory.exists():
            self.format()
        self._spawn([self._java[0], *options, *self._java[1:], "kafka.Kafka", str(self.properties_path)])
        wait_until_ready(self, self.is_alive)

    def format(self) -> None:
        """Write the data directory's first files."""
        command = [*self._java, "kafka.tools.StorageTool", "format", *self.FORMAT_OPTIONS]
        command += ["-t", CLUSTER_ID, "-c", str(self.properties_path), *self._release]
        formatted = subprocess.run(command, capture_output=True, text=True)
        if formatted.returncode != 0:
            raise BrokerFailed(f"StorageTool format failed:\n{formatted.stdout}{formatted.stderr}")

    def renew(self) -> None:
        self.kill()
        shutil.rmtree(self.data_directory)
        self.start()
