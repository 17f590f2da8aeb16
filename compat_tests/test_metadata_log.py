"""The metadata log and its snapshots, both ways: what a real Kafka wrote is served, and a real Kafka goes on with what is here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.java_tools import JavaTools

# So small that a Kafka makes snapshots within seconds.
SNAPSHOT_BYTES = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
TOPIC = "kept"
PARTITIONS = 3
GROUP = "readers"
RETENTION = "700000000"


def produce(broker: ProcessBroker, numbers: range) -> None:
    """One record for each number, in the partition that it gives modulo the partitions."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
    for number in numbers:
        producer.send(TOPIC, value=b"%d" % number, partition=number % PARTITIONS)
    producer.close()


def read_all(broker: ProcessBroker) -> list[int]:
    """All numbers in the topic, sorted."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    consumer.assign(partitions)
    left = sum(consumer.end_offsets(partitions).values())
    numbers: list[int] = []
    while len(numbers) < left:
        polled = consumer.poll(timeout_ms=10_000)
        assert polled, f"only {len(numbers)} of {left} records came"
        numbers += [int(record.value) for records in polled.values() for record in records]
    consumer.close()
    return sorted(numbers)


def read_in_group(broker: ProcessBroker, count: int) -> None:
    """Read so many records as a member of the group, and commit."""
    reading = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False, "consumer_timeout_ms": 20_000}
    consumer = KafkaConsumer(TOPIC, bootstrap_servers=broker.bootstrap, **reading)
    for read, _ in enumerate(consumer, 1):
        if read == count:
            break
    consumer.commit()
    consumer.close()


def committed(broker: ProcessBroker) -> int:
    """The sum of the group's offsets."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=GROUP)
    offsets = [consumer.committed(TopicPartition(TOPIC, index)) or 0 for index in range(PARTITIONS)]
    consumer.close()
    return sum(offsets)


def retention(broker: ProcessBroker) -> str:
    """The topic's `retention.ms`."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)])["topic"][TOPIC]
    admin.close()
    entry = described["retention.ms"]
    return entry["value"] if isinstance(entry, dict) else entry


def tools_for(jars: Path, broker: ProcessBroker, directory: Path) -> JavaTools:
    """Kafka's tools against a broker."""
    return JavaTools(jars, broker.bootstrap, directory / "tools-log4j2.properties")


def fill(broker: ProcessBroker, tools: JavaTools) -> None:
    """Topics, configs of every kind, a user, quotas, records and a group: most kinds of metadata records."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "configs": {"retention.ms": RETENTION}}, "gone": {"num_partitions": 1}})
    admin.delete_topics(["gone"])
    admin.close()
    user = ("--entity-type", "users", "--entity-name", "alice", "--add-config")
    tools.succeed("kafka-configs", "--alter", *user, "SCRAM-SHA-256=[iterations=4096,password=secret]")
    tools.succeed("kafka-configs", "--alter", *user, "producer_byte_rate=100000000")
    produce(broker, range(30))
    read_in_group(broker, 15)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_kafkas_directory_is_taken_over_and_given_back(kafka_jars: Path, tmp_path: Path, end: str) -> None:
    """Kafka, pykafkad, Kafka, pykafkad on one directory: topics, settings, users, records and groups stay, and grow."""
    (tmp_path / "kafka").mkdir()
    kafka = KafkaProcess(kafka_jars, tmp_path / "kafka", SNAPSHOT_BYTES)
    ours = PykafkadProcess(tmp_path, SNAPSHOT_BYTES)
    ours.data_directory = kafka.data_directory
    expected = 30
    try:
        kafka.start()
        fill(kafka, tools_for(kafka_jars, kafka, tmp_path))
        getattr(kafka, end)()
        for broker in (ours, kafka, ours):
            broker.start()
            assert read_all(broker) == list(range(expected)), f"records on {broker.name}"
            assert committed(broker) == 15
            assert retention(broker) == RETENTION
            produce(broker, range(expected, expected + 30))
            expected += 30
            getattr(broker, end)()
        assert_no_bug_logged(ours)
        assert "ERROR" not in kafka.log_text(), kafka.log_text()[-3000:]
    finally:
        ours.kill()
        kafka.kill()
        shutil.rmtree(kafka.data_directory, ignore_errors=True)
