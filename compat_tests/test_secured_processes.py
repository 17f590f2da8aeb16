"""Clients of each kind against brokers and controllers that are processes of one command, where everybody logs in over
TLS: what an ACL allows is done, what none allows is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import TopicAuthorizationFailedError

from compat_tests.brokers.pykafkad_process import REPOSITORY
from compat_tests.java_tools import JavaTools

DEADLINE_SECONDS = 90.0


class Secured:
    """Three brokers and three controllers, and what their clients need."""

    def __init__(self, bootstrap: str, ca_file: str) -> None:
        self.bootstrap = bootstrap
        self.ca_file = ca_file

    def confluent(self, user: str = "alice") -> dict[str, str]:
        """The properties of librdkafka."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": "secret",
            "ssl.ca.location": self.ca_file,
        }

    def kafka_python(self) -> dict[str, object]:
        """The arguments of kafka-python."""
        return {
            "bootstrap_servers": self.bootstrap.split(","),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": "secret",
            "ssl_cafile": self.ca_file,
        }

    def java(self) -> str:
        """The properties of Java's clients."""
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return (
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n"
            f'sasl.jaas.config={module} required username="alice" password="secret";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca_file}\n"
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    words = [sys.executable, "-m", "pykafkad", "serve", "--brokers", "3", "--controllers", "3", "--processes", "--tls"]
    words += ["--listen", "localhost:0", "--data", str(folder / "data"), "--topic", "orders:3", "--topic", "hidden"]
    words += ["--user", "alice:secret", "--user", "bob:secret", "--set", "default.replication.factor=3"]
    for entry in ("alice all topic orders", "alice all group *", "alice describe cluster"):
        words += ["--acl", entry]
    log = folder / "log"
    with open(log, "w") as errors:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("pykafkad ready "), log.read_text()
    yield Secured(line.split()[-1], str(folder / "data" / "tls-ca.pem"))
    process.terminate()
    assert process.wait(DEADLINE_SECONDS) == 0
    process.stdout.close()
    assert "unexpected-error" not in log.read_text()


def test_confluent_kafka_writes_and_reads(secured: Secured) -> None:
    producer = Producer({**secured.confluent(), "acks": "all"})
    told: list[object] = []
    for number in range(30):
        producer.produce(
            "orders", b"%d" % number, partition=number % 3, on_delivery=lambda error, _: told.append(error)
        )
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert told == [None] * 30
    consumer = Consumer({**secured.confluent(), "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    seen: set[bytes] = set()
    while len(seen) < 30:
        message = consumer.poll(DEADLINE_SECONDS)
        assert message is not None and message.error() is None
        seen.add(message.value())
    consumer.close()


def test_who_is_allowed_nothing_writes_nothing(secured: Secured) -> None:
    producer = Producer({**secured.confluent("bob"), "message.timeout.ms": 20_000})
    told: list[KafkaError] = []
    producer.produce("orders", b"x", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert [each.code() for each in told] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def test_kafka_python_writes_and_describes(secured: Secured) -> None:
    producer = KafkaProducer(**secured.kafka_python(), acks="all")
    assert producer.send("orders", b"value", partition=1).get(60).partition == 1
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send("hidden", b"value").get(60)
    producer.close()
    admin = KafkaAdminClient(**secured.kafka_python())
    assert len(admin.describe_cluster()["brokers"]) == 3
    admin.close()


def test_javas_tool_writes_what_alice_may_write(secured: Secured, kafka_jars: Path, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(secured.java())
    tools = JavaTools(kafka_jars, secured.bootstrap, tmp_path / "log4j2.properties")
    wanted = ("--command-config", str(properties), "--max-messages", "20", "--acks", "-1")
    told = tools.succeed("kafka-verifiable-producer", *wanted, "--topic", "orders")
    assert told.count("producer_send_success") == 20
    refused = tools.run("kafka-verifiable-producer", *wanted, "--topic", "hidden")
    assert "producer_send_success" not in refused.output and "TopicAuthorizationException" in refused.output
