"""The five minutes of docs/security.md, run as they stand; `spark_it/tests/test_logins.py` runs those of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from compat_tests.conftest import unavailable
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.security_page import LIMIT_SECONDS, PageBroker, block, page_broker
from compat_tests.suites import franz_go
from compat_tests.suites.packages import call
from compat_tests.suites.suite import SuiteUnavailable
from compat_tests.test_kafkajs import kafkajs  # noqa: F401


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageBroker]:
    """The broker, when the administrator's commands are done."""
    with page_broker(tmp_path_factory.mktemp("security-page")) as made:
        yield made


def run(page: PageBroker, *command: str, text: str | None = None, **variables: str) -> None:
    """A program in the folder of the page."""
    done = subprocess.run(command, cwd=page.directory, env={**os.environ, **variables}, input=text, capture_output=True,
                          text=True, timeout=LIMIT_SECONDS)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def read(page: PageBroker) -> list[bytes]:
    """What Alice reads of the topic, in the group that she may be in."""
    consumer = confluent_kafka.Consumer(settings(page) | {"group.id": "billing", "enable.auto.commit": False})
    topic = confluent_kafka.TopicPartition("orders", 0, 0)
    _, end = consumer.get_watermark_offsets(topic, timeout=LIMIT_SECONDS)
    consumer.assign([topic])
    values = [consumer.poll(LIMIT_SECONDS).value() for _ in range(end)]
    consumer.close()
    return values


def settings(page: PageBroker) -> dict[str, object]:
    """How Alice comes with librdkafka."""
    return {
        "bootstrap.servers": page.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": f"{page.directory}/shop/tls-ca.pem",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }


@pytest.mark.parametrize(
    ("word", "value"),
    [("import KafkaProducer", b"by kafka-python"), ("confluent_kafka", b"by librdkafka"), ("aiokafka", b"by aiokafka")],
)
def test_python(page: PageBroker, word: str, value: bytes) -> None:
    """A program for each client."""
    run(page, sys.executable, "-c", page.placed(block("python", word)))
    assert value in read(page)


def test_java(page: PageBroker, kafka_jars: Path) -> None:
    """The file, with Kafka's own tool."""
    (page.directory / "alice.properties").write_text(page.placed(block("properties", "ScramLoginModule")))
    tool = ["java", *JAVA_OPTIONS, "-cp", f"{kafka_jars}/*", "org.apache.kafka.tools.ConsoleProducer"]
    words = ["--bootstrap-server", page.address, "--topic", "orders", "--command-config", "alice.properties"]
    run(page, *tool, *words, text="by Java\n")
    assert b"by Java" in read(page)


def test_kafkajs(page: PageBroker, kafkajs: Path) -> None:  # noqa: F811
    """A program."""
    program = page.placed(block("javascript", "kafkajs"))
    run(page, "node", "-e", program, NODE_PATH=str(kafkajs / "node_modules"), KAFKAJS_NO_PARTITIONER_WARNING="1")
    assert b"by kafkajs" in read(page)


def test_franz_go(page: PageBroker) -> None:
    """A program, which must stand within the client's module."""
    try:
        source = franz_go.SUITE.prepare()
    except SuiteUnavailable as error:
        unavailable(str(error))
    with tempfile.TemporaryDirectory(dir=source) as folder:
        Path(folder, "main.go").write_text(page.placed(block("go", "franz-go")))
        program = Path(folder, "client")
        call(["go", "build", "-o", str(program), f"./{Path(folder).name}"], source)
        run(page, str(program))
    assert b"by franz-go" in read(page)


def test_what_alice_may_not_is_refused(page: PageBroker) -> None:
    """Another topic."""
    failures: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(settings(page))
    producer.produce("salaries", b"none", on_delivery=lambda error, _: failures.append(error))
    producer.flush(LIMIT_SECONDS)
    assert [error.code() for error in failures] == [confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED]
