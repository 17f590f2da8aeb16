"""The lines of `pykafkad client-config`, pasted into each client that is here: one record by TLS and a login."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from compat_tests.conftest import unavailable
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.test_kafkajs import kafkajs  # noqa: F401

LIMIT_SECONDS = 120
PASSWORD = 'secret "\\'
PROJECT = Path(__file__).parents[1]


class Shop:
    """A broker with TLS and a user."""

    def __init__(self, directory: Path, address: str) -> None:
        self.directory = directory
        self.address = address

    def lines(self, client: str, mechanism: str) -> str:
        """What is printed for a client."""
        words = ["-b", self.address, "--tls", str(self.directory / "shop/tls-ca.pem"), "--mechanism", mechanism]
        return subprocess.run(
            [sys.executable, "-m", "pykafkad", "client-config", "--for", client, *words,
             "--user", "alice", "--password", PASSWORD],
            capture_output=True, text=True, check=True, env=_environment(), timeout=LIMIT_SECONDS,
        ).stdout  # fmt: skip

    def file(self, client: str, mechanism: str) -> Path:
        """The lines in a file."""
        path = self.directory / f"{client}-{mechanism}"
        path.write_text(self.lines(client, mechanism))
        return path


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The broker."""
    directory = tmp_path_factory.mktemp("client-config")
    words = ["--data", str(directory / "shop"), "--listen", "localhost:0", "--tls", "--topic", "orders"]
    broker = subprocess.Popen(
        [sys.executable, "-m", "pykafkad", "serve", *words, "--user", f"alice:{PASSWORD}"],
        env=_environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert broker.stdout is not None
        yield Shop(directory, broker.stdout.readline().split()[-1])
    finally:
        broker.terminate()
        broker.communicate(timeout=LIMIT_SECONDS)


@pytest.fixture(params=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def mechanism(request: pytest.FixtureRequest) -> str:
    """By which Alice logs in."""
    return request.param


def test_kafka_python(shop: Shop, mechanism: str) -> None:
    """As keyword arguments."""
    producer = eval(f"KafkaProducer({shop.lines('kafka-python', mechanism)})", {"KafkaProducer": KafkaProducer})
    producer.send("orders", b"one").get(LIMIT_SECONDS)
    producer.close()


def test_aiokafka(shop: Shop, mechanism: str) -> None:
    """As keyword arguments, one of which needs `import ssl`."""

    async def send() -> None:
        names = {"AIOKafkaProducer": AIOKafkaProducer, "ssl": ssl}
        producer: Any = eval(f"AIOKafkaProducer({shop.lines('aiokafka', mechanism)})", names)
        await producer.start()
        await producer.send_and_wait("orders", b"two")
        await producer.stop()

    asyncio.run(asyncio.wait_for(send(), LIMIT_SECONDS))


def test_librdkafka(shop: Shop, mechanism: str) -> None:
    """As options of confluent-kafka."""
    producer = Producer(dict(line.split("=", 1) for line in shop.lines("librdkafka", mechanism).splitlines()))
    failures: list[Any] = []
    producer.produce("orders", b"three", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(LIMIT_SECONDS) == 0 and failures == [None]


def test_kcat(shop: Shop) -> None:
    """As a file of options; by PLAIN, as the kcat of some distributions logs in by no other."""
    if shutil.which("kcat") is None:
        unavailable("kcat is not installed")
    command = ["kcat", "-F", str(shop.file("librdkafka", "PLAIN")), "-L", "-t", "orders", "-m", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert 'topic "orders" with 1 partitions' in done.stdout, done.stderr


def test_java(shop: Shop, mechanism: str, kafka_jars: Path) -> None:
    """As the file of a tool."""
    command = ["java", *JAVA_OPTIONS, "-cp", f"{kafka_jars}/*", "org.apache.kafka.tools.TopicCommand", "--list"]
    command += ["--bootstrap-server", shop.address, "--command-config", str(shop.file("java", mechanism))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert "orders" in done.stdout.split(), done.stderr


PROGRAM = """
const { Kafka, logLevel } = require("kafkajs");
const kafka = new Kafka({ LINES logLevel: logLevel.ERROR });
const admin = kafka.admin();
(async () => {
  await admin.connect();
  console.log((await admin.listTopics()).join(" "));
  await admin.disconnect();
})().catch((error) => { console.error(error); process.exit(1); });
"""


def test_kafkajs(shop: Shop, mechanism: str, kafkajs: Path) -> None:  # noqa: F811
    """As fields of the object that the client takes."""
    program = PROGRAM.replace("LINES", shop.lines("kafkajs", mechanism))
    done = subprocess.run(["node", "-e", program], cwd=kafkajs, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert "orders" in done.stdout.split(), done.stderr
