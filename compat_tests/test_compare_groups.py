"""`pykafkad compare` with Java's members of groups that live by heartbeats (KIP-848, KIP-932, KIP-1071).

Ids, epochs and assignments of two brokers belong together, and what is planted to differ is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.settings import SHARED_SETTINGS
from compat_tests.java_tools import JavaTools
from compat_tests.samples import wait_until
from compat_tests.test_streams_and_connect import INPUT, OUTPUT, make_empty
from compat_tests.test_verifiable import Verifiable, owned, records

FreshName = Callable[..., str]
LONG = 180
RECORDS = 40
# Rows of topics, groups and settings that other tests have made at the broker before.
OTHER_APIS = ("ApiVersions", "Metadata", "ListGroups")


class Compare:
    """The command between clients and two brokers, until `differences` ends it."""

    def __init__(self, bootstrap: str, *more: str) -> None:
        settings = [word for name, value in SHARED_SETTINGS.items() for word in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "pykafkad", "compare", "--with", bootstrap, "--json", *settings, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.bootstrap = self.process.stdout.readline().split(" ask ")[1].split(";")[0]

    def differences(self) -> list[dict[str, Any]]:
        """Those that were told, of one topic or group."""
        self.process.send_signal(signal.SIGTERM)
        told, _ = self.process.communicate(timeout=LONG)
        return [row for row in map(json.loads, told.splitlines()) if row["api"] not in OTHER_APIS]


@pytest.fixture
def compare(bootstrap: str) -> Iterator[Callable[..., Compare]]:
    running: list[Compare] = []

    def begin(*more: str) -> Compare:
        running.append(Compare(bootstrap, *more))
        return running[-1]

    yield begin
    for each in running:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


@pytest.fixture
def start(kafka_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Verifiable]]:
    """Starts a verifiable tool at an address."""
    running: list[Verifiable] = []

    def begin(bootstrap: str, tool: str, *arguments: str) -> Verifiable:
        running.append(Verifiable(JavaTools(kafka_jars, bootstrap, tmp_path / "log4j2").start(tool, *arguments)))
        return running[-1]

    yield begin
    for tool in running:
        if tool.process.poll() is None:
            tool.process.kill()
            tool.process.wait()


def fill(bootstrap: str, topic: str, partitions: int = 2) -> None:
    """A topic with as many records in each partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(LONG)
    produce(bootstrap, topic, partitions)


def produce(bootstrap: str, topic: str, partitions: int = 2) -> None:
    """As many records more."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=number % partitions)
    assert producer.flush(LONG) == 0


def members(start: Callable[..., Verifiable], bootstrap: str, topic: str, group: str) -> list[Verifiable]:
    """Two consumers which share the partitions."""
    words = ("--topic", topic, "--group-id", group, "--group-protocol", "consumer", "--reset-policy", "earliest")
    found = [start(bootstrap, "kafka-verifiable-consumer", *words, "--verbose")]
    wait_until(lambda: len(records(found)) == RECORDS, "the first consumer has read everything")
    found.append(start(bootstrap, "kafka-verifiable-consumer", *words, "--verbose"))
    return found


@pytest.mark.parametrize("answer_from", ["pykafkad", "kafka"])
def test_consumers_of_the_new_protocol(
    compare: Callable[..., Compare], start: Callable[..., Verifiable], fresh_name: FreshName, answer_from: str
) -> None:
    between, topic = compare("--answer-from", answer_from), fresh_name()
    fill(between.bootstrap, topic)
    consumers = members(start, between.bootstrap, topic, fresh_name("group"))
    wait_until(lambda: all(len(owned(each)) == 1 for each in consumers), "each has a partition")
    consumers[0].stop()
    wait_until(lambda: len(owned(consumers[1])) == 2, "the second one has both")
    consumers[1].stop()
    found = between.differences()
    assert found == [], json.dumps(found, indent=1)


def test_what_is_planted_is_told(
    compare: Callable[..., Compare], start: Callable[..., Verifiable], fresh_name: FreshName
) -> None:
    """A broker that admits one member alone."""
    between, topic = compare("--answer-from", "kafka", "--set", "group.consumer.max.size=1"), fresh_name()
    fill(between.bootstrap, topic)
    consumers = members(start, between.bootstrap, topic, fresh_name("group"))
    wait_until(lambda: all(len(owned(each)) == 1 for each in consumers), "each has a partition")
    for each in consumers:
        each.stop()
    found = between.differences()
    places = [place for row in found if row["api"] == "ConsumerGroupHeartbeat" for place in row["differences"]]
    assert {"path": "error_code", "pykafkad": 81, "kafka": 0} in places, found


@pytest.mark.parametrize("answer_from", ["pykafkad", "kafka"])
def test_members_of_share_groups(
    compare: Callable[..., Compare], start: Callable[..., Verifiable], fresh_name: FreshName, answer_from: str
) -> None:
    """Two members share the records: each broker gives them out as it likes, and all of them."""
    between, topic = compare("--answer-from", answer_from), fresh_name()
    fill(between.bootstrap, topic)
    words = ("--topic", topic, "--group-id", fresh_name("group"), "--acknowledgement-mode", "sync")
    words = (*words, "--offset-reset-strategy", "earliest")
    consumers = [start(between.bootstrap, "kafka-verifiable-share-consumer", *words)]
    shared = lambda: sum(event["count"] for each in consumers for event in each.named("offsets_acknowledged"))  # noqa: E731
    wait_until(lambda: shared() == RECORDS, "everything is acknowledged")
    consumers.append(start(between.bootstrap, "kafka-verifiable-share-consumer", *words))
    wait_until(lambda: bool(consumers[1].named("startup_complete")), "the second one is there")
    produce(between.bootstrap, topic)
    wait_until(lambda: shared() == 2 * RECORDS, "everything else is acknowledged")
    for each in consumers:
        each.stop()
    found = between.differences()
    assert found == [], json.dumps(found, indent=1)


def test_records_of_share_groups_that_one_broker_alone_has_are_told(
    bootstrap: str, compare: Callable[..., Compare], start: Callable[..., Verifiable], fresh_name: FreshName
) -> None:
    """Kafka has more records than pykafkad, from which the members hear what there is."""
    between, topic = compare("--answer-from", "kafka"), fresh_name()
    fill(between.bootstrap, topic)
    produce(bootstrap, topic)
    words = ("--topic", topic, "--group-id", fresh_name("group"), "--acknowledgement-mode", "sync")
    consumer = start(
        between.bootstrap, "kafka-verifiable-share-consumer", *words, "--offset-reset-strategy", "earliest"
    )
    shared = lambda: sum(event["count"] for event in consumer.named("offsets_acknowledged"))  # noqa: E731
    wait_until(lambda: shared() == 2 * RECORDS, "everything is acknowledged")
    consumer.stop()
    places = [place for row in between.differences() if row["api"] == "ShareFetch" for place in row["differences"]]
    expected = {"path": f"responses.{topic}.partitions.0.acquired_records", "pykafkad": "not there"}
    assert any(expected.items() <= place.items() for place in places), places


def test_streams(
    bootstrap: str,
    compare: Callable[..., Compare],
    start_java: Callable[..., Any],
    fresh_name: FreshName,
    tmp_path: Path,
) -> None:
    """Two applications of a streams group; what they tell of their own addresses stays as it is."""
    between, name = compare(), fresh_name("application")
    topics = NewTopic(INPUT, 2, 1), NewTopic(OUTPUT, 1, 1)
    # Other tests may have left some.
    real = AdminClient({"bootstrap.servers": bootstrap})
    make_empty(real, *topics)
    for deleted in real.delete_topics([INPUT, OUTPUT]).values():
        deleted.result(LONG)
    admin = AdminClient({"bootstrap.servers": between.bootstrap})
    wait_until(lambda: not {INPUT, OUTPUT} & set(real.list_topics().topics), "the topics are deleted")
    make_empty(admin, *topics)
    producer = Producer({"bootstrap.servers": between.bootstrap})
    for number in range(RECORDS):
        producer.produce(INPUT, f"w{number}", partition=number % 2)
    assert producer.flush(LONG) == 0
    applications = [
        start_java(
            "org.apache.kafka.streams.examples.wordcount.WordCountDemo", called=str(number), application_id=name,
            bootstrap_servers=between.bootstrap, state_dir=tmp_path / f"state{number}", commit_interval_ms=200,
            statestore_cache_max_bytes=0, group_protocol="streams", application_server=f"127.0.0.1:{number + 1}",
        )
        for number in range(2)
    ]  # fmt: skip
    wait_until(lambda: name in "".join(admin.list_topics(timeout=LONG).topics), "its internal topics are there")
    counted = Reader(between.bootstrap, fresh_name("group"))
    wait_until(lambda: counted.read() == RECORDS, "every word is counted")
    counted.close()
    for each in applications:
        each.terminate()
        each.wait(LONG)
    found = between.differences()
    assert found == [], json.dumps(found, indent=1)


class Reader:
    """Counts the words that an application has written."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
        self._consumer.subscribe([OUTPUT])
        self._words: set[bytes] = set()

    def read(self) -> int:
        """How many there are so far."""
        for message in self._consumer.consume(1000, 0.2):
            assert message.error() is None, message.error()
            self._words.add(message.key())
        return len(self._words)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
