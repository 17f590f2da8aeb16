"""Consumers with `client.rack` read from the replica in their rack (KIP-392): librdkafka's, and Kafka's own.

The leader gives no records to a consumer of a rack that has another replica in sync, so what such a consumer reads
comes from a follower."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.tools.runner import ToolRunner
from pykafkad.testing import Broker

RACKS = ["a", "b", "c"]
RECORDS = 50
SECONDS = 60
SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
}


@pytest.fixture
def brokers() -> Iterator[Broker]:
    """Three brokers in a rack each; every one has all records."""
    with Broker(brokers=3, racks=RACKS, settings=SETTINGS, topics={"t": 1}) as brokers:
        producer = Producer({**brokers.client_config("confluent"), "acks": "all"})
        for number in range(RECORDS):
            producer.produce("t", str(number))
        assert producer.flush(SECONDS) == 0
        yield brokers
        assert brokers._running._process.runtime.metrics.unexpected_errors == 0


def leader_of(brokers: Broker) -> int:
    """The node id of the partition's leader."""
    (topic,) = brokers._asked._metadata("t").topics
    return int(topic.partitions[0].leader_id)


@pytest.mark.parametrize("steps", [0, 1, 2], ids=["in the leader's rack", "in the next one's", "in the last one's"])
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_librdkafka_reads_from_the_broker_in_its_rack(brokers: Broker, steps: int, isolation: str) -> None:
    leader = leader_of(brokers)
    near = (leader - 1 + steps) % 3 + 1
    read_from: list[int] = []

    def take_statistics(text: str) -> None:
        found = json.loads(text)["topics"].get("t", {"partitions": {}})["partitions"].get("0")
        if found is not None:
            read_from.append(found["broker"])

    consumer = Consumer(
        {
            **brokers.client_config("confluent", group="g"),
            "client.rack": RACKS[near - 1],
            "isolation.level": isolation,
            "statistics.interval.ms": 50,
            "stats_cb": take_statistics,
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[bytes] = []
    until = time.monotonic() + SECONDS
    while len(values) < RECORDS or not read_from or read_from[-1] != near:
        assert time.monotonic() < until, (len(values), read_from, near)
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            values.append(message.value())
    consumer.close()
    assert values == [str(number).encode() for number in range(RECORDS)]


def test_a_consumer_goes_on_when_the_broker_in_its_rack_stops(brokers: Broker) -> None:
    leader = leader_of(brokers)
    near = leader % 3 + 1
    config = {**brokers.client_config("confluent", group="g"), "client.rack": RACKS[near - 1]}
    consumer = Consumer(config)
    consumer.assign([TopicPartition("t", 0, 0)])
    values: set[bytes] = set()

    def read(wanted: int) -> None:
        until = time.monotonic() + SECONDS
        while len(values) < wanted:
            assert time.monotonic() < until, len(values)
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                values.add(message.value())

    read(RECORDS)
    brokers.stop_broker(near)
    producer = Producer({**brokers.client_config("confluent"), "acks": "all"})
    for number in range(RECORDS, 2 * RECORDS):
        producer.produce("t", str(number))
    assert producer.flush(SECONDS) == 0
    read(2 * RECORDS)
    consumer.close()


def test_the_console_consumer_reads_from_a_follower(brokers: Broker, runner: ToolRunner) -> None:
    near = leader_of(brokers) % 3 + 1
    arguments = ["--bootstrap-server", brokers.bootstrap, "--topic", "t", "--from-beginning"]
    arguments += ["--max-messages", str(RECORDS), "--timeout-ms", "30000"]
    arguments += ["--command-property", f"client.rack={RACKS[near - 1]}"]
    outcome = runner.run("console-consumer", arguments)
    assert outcome.code == 0, outcome
    assert outcome.output.split() == [str(number) for number in range(RECORDS)]
