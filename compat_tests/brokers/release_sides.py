"""The broker of another release of Kafka than 4.3.1, and pykafkad that acts as one (`--act-as`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.brokers.zookeeper_kafka import ZooKeeperKafka
from compat_tests.setup.kafka_jars import fetch_other_broker

# Before this release the storage tool cannot put the voters into the log.
FIRST_WITH_VOTERS_IN_THE_LOG = "3.9"
# The first release here that serves clients without ZooKeeper.
FIRST_WITHOUT_ZOOKEEPER = "3.4"


class OlderKafka(KafkaProcess):
    """A Kafka whose voters are in its settings."""

    FORMAT_OPTIONS = ()
    FORMATS_AT_START = False

    def __init__(self, jars: Path, directory: Path, overrides: dict[str, str] | None = None) -> None:
        super().__init__(jars, directory, overrides)
        text = self.properties_path.read_text()
        self.properties_path.write_text(
            text.replace("controller.quorum.bootstrap.servers=", "controller.quorum.voters=1@")
        )


class Sides(NamedTuple):
    """Two brokers that should answer alike."""

    kafka: ProcessBroker
    pykafkad: ProcessBroker


def real_broker(release: str, directory: Path, overrides: dict[str, str] | None = None) -> ProcessBroker:
    """The release's own broker, not yet started; `overrides` are settings beyond the shared ones."""
    jars = fetch_other_broker(release)
    if release < FIRST_WITHOUT_ZOOKEEPER:
        assert not overrides, "brokers with ZooKeeper have the shared settings alone"
        return ZooKeeperKafka(jars, directory)
    made = KafkaProcess if release >= FIRST_WITH_VOTERS_IN_THE_LOG else OlderKafka
    return made(jars, directory, overrides)


@contextmanager
def running_sides(release: str, directory: Path, overrides: dict[str, str] | None = None) -> Iterator[Sides]:
    """Both brokers, started, with the same settings and their data under `directory`."""
    places = directory / "kafka", directory / "pykafkad"
    for each in places:
        each.mkdir()
    ours = PykafkadProcess(places[1], {**(overrides or {}), "pykafkad.act.as": release})
    sides = Sides(real_broker(release, places[0], overrides), ours)
    try:
        for broker in sides:
            broker.start()
        yield sides
    finally:
        for broker in sides:
            broker.close()
