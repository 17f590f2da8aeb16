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
from compat_tests.setup.compiled import compiled
from compat_tests.setup.kafka_jars import KAFKA_VERSION

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
FORMAT_AND_SERVE = Path(__file__).with_name("FormatAndServe.java")


class KafkaProcess(ProcessBroker):
    """Kafka from `jars` with its data under `directory`.

    `overrides` are settings beyond the shared ones, `port` is a fixed port instead of a free one, and `release` is the
    metadata.version of a newly formatted directory (`3.9-IV0`).
    """

    name = "kafka"
    how = f"Kafka {KAFKA_VERSION} as a process, from Maven's jars"
    FORMAT_OPTIONS: tuple[str, ...] = ("--standalone",)
    # Since 3.9 the storage tool can be called without the end of its process.
    FORMATS_AT_START = True

    def __init__(
        self,
        jars: Path,
        directory: Path,
        overrides: dict[str, str] | None = None,
        port: int | None = None,
        release: str | None = None,
    ) -> None:
        super().__init__(directory)
        self._jars = jars
        self.format_options = [*self.FORMAT_OPTIONS, *([] if release is None else ["--release-version", release])]
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
        self.spawn(options)
        wait_until_ready(self, self.is_alive)

    def spawn(self, options: Sequence[str] = ()) -> None:
        """Start its process, and do not wait. A format that fails ends the process, and its log says why."""
        if self.data_directory.exists():
            self._run("kafka.Kafka", options)
        elif self.FORMATS_AT_START:
            self._run(FORMAT_AND_SERVE.stem, options, self.format_arguments())
        else:
            self.format()
            self._run("kafka.Kafka", options)

    def _run(self, main_class: str, options: Sequence[str], arguments: Sequence[str] = ()) -> None:
        java, *others, class_path = self._java
        if main_class == FORMAT_AND_SERVE.stem:
            class_path += f":{compiled(FORMAT_AND_SERVE, self._jars)}"
        self._spawn([java, *options, *others, class_path, main_class, str(self.properties_path), *arguments])

    def format_arguments(self) -> list[str]:
        """What Kafka's storage tool is given to write the data directory's first files."""
        return ["format", *self.format_options, "-t", CLUSTER_ID, "-c", str(self.properties_path)]

    def format(self) -> None:
        """Write the data directory's first files, and start nothing."""
        command = [*self._java, "kafka.tools.StorageTool", *self.format_arguments()]
        formatted = subprocess.run(command, capture_output=True, text=True)
        if formatted.returncode != 0:
            raise BrokerFailed(f"StorageTool format failed:\n{formatted.stdout}{formatted.stderr}")

    def close(self) -> None:
        self.kill()  # Its data are dropped, so nobody needs what a clean stop writes.

    def renew(self) -> None:
        self.kill()
        shutil.rmtree(self.data_directory)
        self.start()
