"""librdkafka pushes its own metrics (KIP-714) to a real Kafka with a telemetry plug-in, and to pykafkad without one."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, unavailable
from compat_tests.samples import wait_until
from compat_tests.scenarios.client_metrics import subscribe
from compat_tests.scenarios.exchange import Exchange

SOURCE = Path(__file__).with_name("KeepTelemetry.java")
TELEMETRY_KEYS = {71, 72}
PREFIX = "org.apache.kafka.producer."
Kept = Callable[[], list[set[str]]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run once for each broker, the real Kafka first."""
    metafunc.parametrize("kind", AGAINST[metafunc.config.getoption("--against")])


def kafka_with_plug_in(jars: Path, directory: Path) -> tuple[Broker, Kept]:
    """A Kafka whose plug-in keeps pushed metrics, and the names of the metrics in each push so far."""
    if shutil.which("javac") is None:
        unavailable(
            "the plug-in for Kafka is compiled with javac, which comes with a JDK and not with a Java to run programs "
            "alone"
        )
    classes, pushes = directory / "classes", directory / "pushes"
    pushes.mkdir()
    subprocess.run(
        ["javac", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCE)], check=True, capture_output=True, text=True
    )
    broker = KafkaProcess(jars, directory, {"metric.reporters": "KeepTelemetry"})
    broker.add_classes(classes, {"telemetry.directory": str(pushes)})

    def kept() -> list[set[str]]:
        found = []
        for path in sorted(pushes.glob("*.otlp")):
            message = MetricsData.FromString(path.read_bytes())
            found.append(
                {
                    metric.name
                    for resource in message.resource_metrics
                    for scope in resource.scope_metrics
                    for metric in scope.metrics
                }
            )
        return found

    return broker, kept


def pykafkad_that_asks(directory: Path) -> tuple[Broker, Kept]:
    """A pykafkad that keeps pushed metrics, and the names of the metrics in each push so far."""
    broker = PykafkadProcess(directory, {"pykafkad.client.telemetry.enable": "true"})

    def kept() -> list[set[str]]:
        path = broker.data_directory / "client-metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        # A line without its line end is still being written.
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [{metric["name"] for metric in json.loads(line)["metrics"]} for line in lines]

    return broker, kept


@pytest.fixture
def telemetry(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Kept]]:
    """The address of a broker that subscribes to metrics, and the metrics that it has kept."""
    if kind == "kafka":
        broker, kept = kafka_with_plug_in(request.getfixturevalue("kafka_jars"), tmp_path)
    else:
        broker, kept = pykafkad_that_asks(tmp_path)
    try:
        broker.start()
        yield broker.bootstrap, kept
    finally:
        broker.close()


def test_a_producers_metrics_arrive(telemetry: tuple[str, Kept]) -> None:
    """Both APIs are advertised; subscribed metrics are pushed, decoded and kept, others are not."""
    bootstrap, kept = telemetry
    exchange = Exchange(bootstrap, "client_metrics")
    advertised = {
        row.api_key
        for row in exchange.quietly("ApiVersions", 3, client_software_name="a", client_software_version="1").api_keys
    }
    assert advertised >= TELEMETRY_KEYS
    subscribe(exchange, "producers", metrics=f"{PREFIX}node.,{PREFIX}connection.", interval_ms="200")
    exchange.close()
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "pushes", "enable.metrics.push": True})

    def pushed() -> bool:
        producer.produce("pushed", b"x")
        producer.flush()
        return len(kept()) >= 3

    wait_until(pushed, "three pushes were kept")
    names = set().union(*kept())
    assert f"{PREFIX}connection.creation.total" in names
    assert f"{PREFIX}node.request.latency.avg" in names
    assert all(name.startswith((f"{PREFIX}node.", f"{PREFIX}connection.")) for name in names)
