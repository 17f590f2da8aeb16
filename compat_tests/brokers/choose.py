"""Chooses the real Kafka for this machine: a container, else a process, else a reason why there is none."""

from __future__ import annotations

from pathlib import Path

from compat_tests.brokers.broker import Broker, ProcessBroker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.setup import system_packages
from compat_tests.setup.kafka_jars import JarsUnavailable, fetch_jars

WAYS = ("auto", "container", "process")


def broker_process(name: str, jars: Path, directory: Path, overrides: dict[str, str] | None = None) -> ProcessBroker:
    """A new "kafka" or "pykafkad" as a process, not yet started."""
    return (
        KafkaProcess(jars, directory, overrides) if name == KafkaProcess.name else PykafkadProcess(directory, overrides)
    )


class KafkaUnavailable(Exception):
    """No real Kafka can run here; the message names what is missing and how to get it."""


class KafkaSource:
    """Starts real Kafkas, all in the same way; `how` names the way. `close()` stops a container engine that this class
    started.
    """

    def __init__(self, way: str = "auto") -> None:
        self._engine = None
        self._image: tuple[str, str] | None = None
        if way in ("auto", "container"):
            try:
                self._use_containers()
            except KafkaUnavailable as error:
                if way == "container":
                    raise
                print(f"real Kafka: no container ({error}); using a process", flush=True)
        if self._image is None:
            self._use_process()

    def _use_containers(self) -> None:
        system_packages.install(system_packages.missing(_without_engine_if_one_answers()))
        from compat_tests.setup.container_engine import ContainerEngine, EngineUnavailable
        from compat_tests.setup.kafka_image import ImageUnavailable, kafka_image

        try:
            self._engine = ContainerEngine()
            self._image = kafka_image(self._engine.client)
            self._host_network = self._engine.is_ours
        except (EngineUnavailable, ImageUnavailable, JarsUnavailable) as error:
            self.close()
            raise KafkaUnavailable(str(error)) from error
        self.how = f"container, from {self._image[1]}"

    def _use_process(self) -> None:
        needed = (system_packages.JAVA, system_packages.MAVEN)
        still_missing = system_packages.install(system_packages.missing(needed))
        if still_missing:
            raise KafkaUnavailable("; ".join(map(system_packages.how_to_get, still_missing)))
        try:
            self._jars = fetch_jars()
        except JarsUnavailable as error:
            raise KafkaUnavailable(str(error)) from error
        self.how = "process, from Maven's jars"

    def broker(self, directory: Path, overrides: dict[str, str] | None = None, port: int | None = None) -> Broker:
        """A new Kafka, not yet started; `directory` is for a process's data and log."""
        if self._image is None:
            return KafkaProcess(self._jars, directory, overrides, port)
        from compat_tests.brokers.kafka_container import KafkaContainer

        return KafkaContainer(*self._image, self._host_network, overrides, port)

    def close(self) -> None:
        """Stop the container engine, if this class started one."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def _without_engine_if_one_answers() -> tuple[system_packages.Program, ...]:
    """Programs that the container way needs; if a container engine already answers, no engine is among them."""
    from compat_tests.setup.container_engine import engine_answers

    if engine_answers():
        return (system_packages.JAVA, system_packages.JLINK, system_packages.MAVEN, system_packages.BUSYBOX)
    return system_packages.PROGRAMS
