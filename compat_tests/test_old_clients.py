"""Clients that are told to speak as those of Kafka 0.8 to 0.10 did, with a broker that acts as a release that serves
them."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from pykafkad.testing import Broker

RELEASES = ("2.8", "3.9")
WAIT_SECONDS = 30.0


@pytest.mark.parametrize("version", ["0.8.2.2", "0.9.0.1", "0.10.1.0"])
@pytest.mark.parametrize("release", RELEASES)
def test_librdkafka_without_api_versions(release: str, version: str) -> None:
    """`broker.version.fallback`: it asks for no versions, and takes those of the broker's release for granted."""
    with Broker(topics=["events"], settings={"pykafkad.act.as": release}) as broker:
        old = {"api.version.request": False, "broker.version.fallback": version}
        producer = Producer({**broker.client_config("confluent"), **old, "compression.type": "gzip"})
        for value in ("one", "two"):
            producer.produce("events", value, key="k")
        assert producer.flush(WAIT_SECONDS) == 0
        group = {"group.id": f"readers-{version}", "auto.offset.reset": "earliest"}
        consumer = Consumer({**broker.client_config("confluent"), **old, **group})
        if version.startswith("0.8"):
            # Groups came with 0.9.
            consumer.assign([ConfluentPartition("events", 0, 0)])
        else:
            consumer.subscribe(["events"])
        found = []
        while len(found) < 2:
            message = consumer.poll(WAIT_SECONDS)
            assert message is not None and message.error() is None, message and message.error()
            found.append(message.value())
        consumer.close()
        assert found == [b"one", b"two"]


@pytest.mark.parametrize("version", [(0, 9), (0, 10, 0), (0, 10, 2)])
@pytest.mark.parametrize("release", RELEASES)
def test_kafka_python_of_an_old_version(release: str, version: tuple[int, ...]) -> None:
    """`api_version`: with messages of formats 0 and 1."""
    with Broker(topics=["events"], settings={"pykafkad.act.as": release}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, api_version=version)
        sent = [producer.send("events", value, key=b"k").get(WAIT_SECONDS) for value in (b"one", b"two")]
        assert [each.offset for each in sent] == [0, 1]
        producer.close()
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, api_version=version, auto_offset_reset="earliest")
        place = TopicPartition("events", 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        assert [next(consumer).value for _ in range(2)] == [b"one", b"two"]
        consumer.close()
