"""Compaction is Kafka's: a directory that a real Kafka wrote is cleaned by Kafka, and a copy of it by pykafkad.

The data has finished and open transactions, idempotent producers, tombstones and every codec. Each broker then opens
the directory that the other one cleaned.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.brokers.settings import as_properties
from compat_tests.java_tools import JavaTools
from compat_tests.scenarios.exchange import Exchange, part
from pykafkad.log import txn_index
from pykafkad.wire.batch import build_batch, parse_header
from pykafkad.wire.records import iterate_records

T0 = 1_700_000_000_000
SEGMENT_BYTES = 16_384
LARGE_SEGMENT_BYTES = 700_000
CONFIGS = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": str(SEGMENT_BYTES),
    "delete_retention_ms": "1",
    "retention_ms": "-1",
}
CLEANER = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0", "file.delete.delay.ms": "1000"}
LAG_MS = "1000000000000"
CLEAN_SECONDS = 150.0
TOPICS = ("plain", "codecs", "producers", "transactions", "open", "lagging")


def fill_plain(broker: Exchange, name: str, rounds: int = 60) -> None:
    """Repeated keys, tombstones of some of them, headers, and timestamps that do not rise."""
    for number in range(rounds):
        records = [
            (
                b"k%d" % ((number * 7 + each) % 50),
                None if (number + each) % 6 == 0 else b"v" * 90,
                [("h", b"%d" % number)],
                T0 + number * 10 - each,
            )
            for each in range(9)
        ]
        broker.produce(name, 0, bytes(build_batch(records)))
    broker.produce(name, 0, bytes(build_batch([(b"once", None)], timestamp_ms=T0)))


def fill_codecs(broker: Exchange, name: str) -> None:
    """Batches of every codec that lose all, some or none of their records; one is larger than the cleaner's buffer."""
    for number in range(30):
        records = [(b"k%d" % (each if number < 15 else each * 2), b"%d" % number * 30) for each in range(40)]
        broker.produce(name, 0, bytes(build_batch(records, timestamp_ms=T0 + number, codec=number % 5)))
    large = [(b"l%d" % each, bytes(range(256)) * 40) for each in range(60)]
    for codec in (0, 3):
        broker.produce(name, 0, bytes(build_batch(large, timestamp_ms=T0, codec=codec)))
        broker.produce(name, 0, bytes(build_batch(large[::2], timestamp_ms=T0 + 1, codec=codec)))


def fill_producers(broker: Exchange, name: str) -> None:
    """The last batch of each idempotent producer loses its records to later ones but stays; old producers expire."""
    now_ms = int(time.time() * 1000)
    for producer in range(4):
        ask = lambda: broker.quietly("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)  # noqa: E731
        answer = broker.until(ask, lambda answer: answer.producer_id >= 0)
        for sequence in range(3):
            ids = {"producer_id": answer.producer_id, "producer_epoch": 0, "base_sequence": sequence * 2}
            records = [(b"a", b"%d" % sequence), (b"b%d" % producer, b"x" * 100)]
            timestamp_ms = T0 if producer == 1 else now_ms
            broker.produce(name, 0, bytes(build_batch(records, timestamp_ms=timestamp_ms, **ids)))
    broker.produce(name, 0, bytes(build_batch([(b"b%d" % each, None) for each in range(3)], timestamp_ms=T0)))


def fill_transactions(bootstrap: str, name: str, *, ids: str = "t") -> None:
    """Overlapping transactions of three producers, every third aborted, one of them without any surviving record."""
    producers = []
    for number in range(3):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{ids}{number}", "linger.ms": 0})
        producer.init_transactions(100)
        producers.append(producer)
    for turn in range(8):
        for number, producer in enumerate(producers):
            producer.begin_transaction()
            for each in range(3):
                producer.produce(
                    name,
                    key=b"k%d" % ((turn * 5 + each + number) % 9),
                    value=b"v" * 300,
                    partition=0,
                    timestamp=T0 + turn,
                )
            producer.flush(100)
        for number, producer in enumerate(producers):
            producer.abort_transaction(100) if (turn + number) % 3 == 0 else producer.commit_transaction(100)


def fill(bootstrap: str) -> list[Any]:
    """Fill all topics; returns objects that must live as long as a transaction stays open."""
    broker = Exchange(bootstrap, "cleaner")
    try:
        broker.prefix = "c"
        for topic in TOPICS:
            more = {
                "lagging": {"min_compaction_lag_ms": LAG_MS},
                "codecs": {"internal_segment_bytes": str(LARGE_SEGMENT_BYTES)},
            }.get(topic, {})
            broker.topic(topic, **{**CONFIGS, **more})
        fill_plain(broker, "c.plain")
        fill_codecs(broker, "c.codecs")
        fill_producers(broker, "c.producers")
        fill_transactions(bootstrap, "c.transactions")
        fill_plain(broker, "c.open", 20)
        fill_transactions(bootstrap, "c.open", ids="o")
        kept = Producer({"bootstrap.servers": bootstrap, "transactional.id": "open", "transaction.timeout.ms": 900_000})
        kept.init_transactions(100)
        kept.begin_transaction()
        kept.produce("c.open", key=b"k1", value=b"undecided", partition=0, timestamp=T0)
        kept.flush(100)
        fill_plain(broker, "c.open", 20)
        fill_plain(broker, "c.lagging", 20)
        add_filler(broker)
        return [kept]
    finally:
        broker.close()


def add_filler(broker: Exchange) -> None:
    """Move the content into closed segments, because the active segment is never cleaned."""
    for topic in TOPICS:
        size = (LARGE_SEGMENT_BYTES if topic == "codecs" else SEGMENT_BYTES) * 4 // 10
        for number in range(4):
            broker.produce(f"c.{topic}", 0, bytes(build_batch([(b"filler-%d" % number, b"x" * size)], timestamp_ms=T0)))


def keep_for(broker: Exchange, lag_ms: str) -> None:
    """Exclude younger records from cleaning, in all compacted topics."""
    names = [f"c.{topic}" for topic in TOPICS if topic != "lagging"]
    change = part(
        "IncrementalAlterConfigs", "AlterableConfig", name="min.compaction.lag.ms", config_operation=0, value=lag_ms
    )
    resources = [
        part("IncrementalAlterConfigs", "AlterConfigsResource", resource_type=2, resource_name=name, configs=[change])
        for name in names
    ]
    answer = broker.quietly("IncrementalAlterConfigs", 1, resources=resources)
    assert not any(row.error_code for row in answer.responses), answer
    asked = [
        part(
            "DescribeConfigs",
            "DescribeConfigsResource",
            resource_type=2,
            resource_name=name,
            configuration_keys=[change.name],
        )
        for name in names
    ]
    broker.until(
        lambda: broker.quietly("DescribeConfigs", 4, resources=asked),
        lambda answer: all(row.value == lag_ms for result in answer.results for row in result.configs),
    )
    broker.in_effect()


def cleaned_offsets(data: Path) -> dict[str, int]:
    """The cleaner's checkpoint."""
    path = data / "cleaner-offset-checkpoint"
    rows = [line.split() for line in path.read_text().splitlines()[2:]] if path.exists() else []
    return {topic: int(offset) for topic, _, offset in rows}


def wait_until_cleaned(data: Path) -> None:
    """Wait until every log that can be cleaned is clean up to its active segment."""
    deadline = time.monotonic() + CLEAN_SECONDS
    while True:
        offsets = cleaned_offsets(data)
        wanted = {
            f"c.{topic}": max(int(path.stem) for path in (data / f"c.{topic}-0").glob("*.log"))
            for topic in TOPICS
            if topic not in ("open", "lagging")
        }
        if all(offsets.get(name, -1) >= base for name, base in wanted.items()) and offsets.get("c.open", 0) > 0:
            return
        assert time.monotonic() < deadline, f"the logs are clean up to {offsets}, expected {wanted}"
        time.sleep(0.1)


def batches_of(data: Path, topic: str) -> list[Any]:
    """All batches of a log with their header fields and records. For a delete horizon only its presence is compared."""
    found = []
    for path in sorted((data / f"c.{topic}-0").glob("*.log")):
        content = path.read_bytes()
        position = 0
        while position < len(content):
            header = parse_header(content, position)
            records = list(iterate_records(memoryview(content)[position : position + header.size_bytes], header))
            found.append(
                (
                    header.base_offset,
                    header.last_offset,
                    header.record_count,
                    header.attributes,
                    header.max_timestamp_ms,
                    header.producer_epoch,
                    header.producer_id,
                    header.base_sequence,
                    header.leader_epoch,
                    records,
                )
            )
            position += header.size_bytes
    return found


def aborted_of(data: Path, topic: str) -> list[Any]:
    """All entries of a log's transaction indexes."""
    found: list[Any] = []
    for path in sorted((data / f"c.{topic}-0").glob("*.txnindex")):
        found += txn_index.from_bytes(path.read_bytes(), int(path.stem)) or []
    return found


def segments_of(data: Path, topic: str) -> list[int]:
    """The bases of a log's segments."""
    return sorted(int(path.stem) for path in (data / f"c.{topic}-0").glob("*.log"))


def committed(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """The records that a consumer of committed records gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "c",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(f"c.{topic}", 0, 0)])
    found = []
    while True:
        message = consumer.poll(100)
        assert message is not None, f"only {len(found)} records of {topic} arrived"
        if message.error():
            consumer.close()
            return found
        found.append((message.offset(), message.key(), message.value()))


class Sides:
    """The content that both cleaners left, and their brokers, which are stopped."""

    def __init__(self, kafka: Broker, ours: Broker, before: dict[str, list[Any]]) -> None:
        self.kafka = kafka
        self.ours = ours
        self.before = before
        self.snapshots: list[dict[str, Any]] = []

    def compare(self) -> None:
        """Compare both directories as they are now."""
        for topic in TOPICS:
            for what in (batches_of, aborted_of, segments_of):
                self.snapshots.append(
                    {
                        "topic": topic,
                        "what": what.__name__,
                        "kafka": what(self.kafka.data_directory, topic),
                        "ours": what(self.ours.data_directory, topic),
                    }
                )


@pytest.fixture(scope="module")
def sides(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """One directory, cleaned twice by each broker; the second time after the tombstones' delete horizon."""
    kafka = KafkaProcess(kafka_jars, tmp_path_factory.mktemp("kafka"), {"log.cleaner.enable": "false"})
    ours = PykafkadProcess(tmp_path_factory.mktemp("ours"), CLEANER)
    try:
        kafka.start()
        kept = fill(kafka.bootstrap)
        kafka.stop()
        del kept
        shutil.copytree(kafka.data_directory, ours.data_directory)
        sides = Sides(kafka, ours, {topic: batches_of(kafka.data_directory, topic) for topic in TOPICS})
        text = kafka.properties_path.read_text().replace("log.cleaner.enable=false\n", "")
        kafka.properties_path.write_text(text + as_properties(CLEANER))
        for side in (kafka, ours):
            side.start()
            wait_until_cleaned(side.data_directory)
            broker = Exchange(side.bootstrap, "cleaner")
            # A running cleaner would clean a part before the rest is written, and group the segments differently.
            keep_for(broker, LAG_MS)
            add_filler(broker)
            keep_for(broker, "0")
            wait_until_cleaned(side.data_directory)
            broker.close()
            side.stop()
        sides.compare()
        yield sides
    finally:
        kafka.close()
        ours.close()


@pytest.mark.parametrize("what", ["batches_of", "aborted_of", "segments_of"])
@pytest.mark.parametrize("topic", TOPICS)
def test_both_cleaners_leave_the_same(sides: Sides, topic: str, what: str) -> None:
    """Every batch with its offsets, sequences and timestamps, every record, every aborted transaction, every
    segment.
    """
    (snapshot,) = (each for each in sides.snapshots if (each["topic"], each["what"]) == (topic, what))
    assert snapshot["ours"] == snapshot["kafka"]
    if what == "batches_of" and topic != "lagging":
        assert len(snapshot["kafka"]) < len(sides.before[topic])


def test_the_checkpoints_agree(sides: Sides) -> None:
    """Both brokers have the same offsets up to which each log is clean."""
    assert cleaned_offsets(sides.ours.data_directory) == cleaned_offsets(sides.kafka.data_directory)


def test_kafkas_tools_find_nothing_wrong(sides: Sides, kafka_jars: Path, tmp_path: Path) -> None:
    """DumpLogSegments reads every file that pykafkad cleaned."""
    tools = JavaTools(kafka_jars, "", tmp_path / "log4j2.properties")
    files = [
        path
        for topic in TOPICS
        for path in sorted((sides.ours.data_directory / f"c.{topic}-0").glob("*.*"))
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    ]
    tools.dump_log(files, "--deep-iteration", "--verify-index-only")


def test_each_opens_what_the_other_cleaned(
    sides: Sides, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both then give consumers of committed records the same, up to the transaction that is still open."""
    successor = KafkaProcess(kafka_jars, tmp_path_factory.mktemp("successor"))
    heir = PykafkadProcess(tmp_path_factory.mktemp("heir"))
    shutil.copytree(sides.ours.data_directory, successor.data_directory)
    shutil.copytree(sides.kafka.data_directory, heir.data_directory)
    read = []
    for broker in (successor, heir):
        try:
            broker.start()
            read.append({topic: committed(broker.bootstrap, topic) for topic in TOPICS})
        finally:
            broker.close()
    assert read[0] == read[1]
    assert all(value != b"undecided" for _, _, value in read[0]["open"])
    assert {topic for topic, rows in read[0].items() if rows} == set(TOPICS)
