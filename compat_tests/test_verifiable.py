"""Kafka's VerifiableProducer, VerifiableConsumer and VerifiableShareConsumer: what is acknowledged is consumed once."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.java_tools import JavaTools
from compat_tests.samples import wait_until

FreshName = Callable[..., str]


class Verifiable:
    """One of the tools in the background; `events` holds its output so far, one JSON object a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[dict] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.events.append(json.loads(line))

    def named(self, name: str) -> list[dict]:
        """The events of that name."""
        return [event for event in list(self.events) if event["name"] == name]

    def stop(self) -> None:
        """Ask it to finish (SIGTERM) and wait until it has."""
        self.process.terminate()
        self.process.wait(100)
        self._reader.join(100)


@pytest.fixture
def start(bootstrap: str, kafka_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Verifiable]]:
    """Starts a verifiable tool; tools that still run at the end of the test are stopped."""
    tools = JavaTools(kafka_jars, bootstrap, tmp_path / "log4j2.properties")
    running: list[Verifiable] = []

    def begin(tool: str, *arguments: str) -> Verifiable:
        running.append(Verifiable(tools.start(tool, *arguments)))
        return running[-1]

    yield begin
    for tool in running:
        if tool.process.poll() is None:
            tool.process.kill()
            tool.process.wait()


def records(consumers: list[Verifiable]) -> list[tuple[int, int]]:
    """(partition, offset) of every record that the consumers printed."""
    return [(event["partition"], event["offset"]) for one in consumers for event in one.named("record_data")]


def owned(consumer: Verifiable) -> set[int]:
    """The latest partitions of a consumer."""
    given: set[int] = set()
    for event in list(consumer.events):
        partitions = {entry["partition"] for entry in event.get("partitions", []) if isinstance(entry, dict)}
        if event["name"] == "partitions_assigned":
            given |= partitions
        if event["name"] == "partitions_revoked":
            given -= partitions
    return given


def test_acknowledged_is_consumed(start: Callable[..., Verifiable], fresh_name: FreshName) -> None:
    """Two consumers share the partitions and one leaves during traffic; every acknowledged record is read once."""
    topic, group = fresh_name(), fresh_name("group")
    producing = ("--topic", topic, "--acks", "-1", "--repeating-keys", "50")
    producer = start("kafka-verifiable-producer", *producing, "--max-messages", "4000", "--throughput", "800")
    wait_until(lambda: producer.named("producer_send_success"), "the producer's first record is acknowledged")
    reading = ("--topic", topic, "--group-id", group, "--reset-policy", "earliest", "--verbose")
    consumers = [start("kafka-verifiable-consumer", *reading) for _ in range(2)]
    readers = lambda: [consumer for consumer in consumers if len(consumer.named("record_data")) > 100]  # noqa: E731
    wait_until(readers, "records are read")
    # Until both have joined, the partition may move to the other consumer.
    max(readers(), key=lambda consumer: len(owned(consumer))).stop()
    wait_until(lambda: producer.process.poll() is not None, "the producer has finished")
    producer.stop()
    (summary,) = producer.named("tool_data")
    assert (summary["sent"], summary["acked"]) == (4000, 4000)
    acknowledged = sorted((event["partition"], event["offset"]) for event in producer.named("producer_send_success"))
    wait_until(lambda: len(records(consumers)) >= len(acknowledged), "everything is read")
    for consumer in consumers:
        consumer.stop()
    assert sorted(records(consumers)) == acknowledged
    last = max(offset for _, offset in acknowledged) + 1
    commits = [
        entry["offset"] for one in consumers for event in one.named("offsets_committed") for entry in event["offsets"]
    ]
    assert max(commits) == last


def test_acknowledged_is_shared(start: Callable[..., Verifiable], fresh_name: FreshName) -> None:
    """Two consumers of a share group share a partition and one leaves; every record is acknowledged by one of them."""
    topic, group = fresh_name(), fresh_name("group")
    producer = start("kafka-verifiable-producer", "--topic", topic, "--acks", "-1", "--throughput", "300")
    wait_until(lambda: producer.named("producer_send_success"), "the producer's first record is acknowledged")
    reading = ("--topic", topic, "--group-id", group, "--acknowledgement-mode", "sync")
    consumers = [start("kafka-verifiable-share-consumer", *reading, "--offset-reset-strategy", "earliest")]
    consumers.append(start("kafka-verifiable-share-consumer", *reading))
    wait_until(lambda: all(consumer.named("offsets_acknowledged") for consumer in consumers), "both have records")
    consumers[0].stop()
    producer.stop()
    written = sorted((event["partition"], event["offset"]) for event in producer.named("producer_send_success"))
    wait_until(lambda: len(acknowledged_in_share(consumers)) >= len(written), "everything is acknowledged")
    consumers[1].stop()
    assert sorted(acknowledged_in_share(consumers)) == written


def acknowledged_in_share(consumers: list[Verifiable]) -> list[tuple[int, int]]:
    """(partition, offset) of every record that the consumers acknowledged with success."""
    events = [event for consumer in consumers for event in consumer.named("offsets_acknowledged")]
    assert all(event["success"] for event in events), events
    return [
        (each["partition"], offset) for event in events for each in event["partitions"] for offset in each["offsets"]
    ]
