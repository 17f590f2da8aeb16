"""Kafka's own DumpLogSegments reads pykafkad's data directory: the files have Kafka's formats."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.java_tools import JavaTools

SEGMENT_BYTES = 1_048_576
RECORDS = 3000


@pytest.fixture(scope="module")
def broker_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data of a pykafkad that served producers and a group, and was stopped."""
    broker = PykafkadProcess(tmp_path_factory.mktemp("files"), {"log.segment.bytes": str(SEGMENT_BYTES)})
    broker.start()
    try:
        for compression in (None, "gzip", "snappy", "lz4", "zstd"):
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap, compression_type=compression, linger_ms=5)
            for number in range(RECORDS):
                headers = [("number", b"%d" % number)]
                producer.send("files", key=b"key-%d" % number, value=b"%d" % number * 100, headers=headers)
            producer.close()
        reading = {"auto_offset_reset": "earliest", "group_id": "readers", "consumer_timeout_ms": 100_000}
        consumer = KafkaConsumer("files", bootstrap_servers=broker.bootstrap, **reading)
        for count, _ in enumerate(consumer, 1):
            if count == 5 * RECORDS:
                break
        consumer.close()
    finally:
        broker.close()
    return broker.data_directory


@pytest.fixture(scope="module")
def tools(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> JavaTools:
    """Kafka's tools; they read files and need no broker."""
    return JavaTools(kafka_jars, "", tmp_path_factory.mktemp("tools") / "log4j2.properties")


def test_segments(tools: JavaTools, broker_directory: Path) -> None:
    """Every batch of every segment is valid, in order, with its records and headers."""
    segments = sorted((broker_directory / "files-0").glob("*.log"))
    assert len(segments) >= 2
    output = tools.dump_log(segments, "--print-data-log", "--deep-iteration")
    assert output.count("| offset: ") == 5 * RECORDS
    offsets = [int(offset) for offset in re.findall(r"\| offset: (\d+) ", output)]
    assert offsets == list(range(5 * RECORDS))
    assert {"NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"} <= {
        name.upper() for name in re.findall(r"compresscodec: (\w+)", output)
    }
    assert "headerKeys: [number]" in output


def test_indexes(tools: JavaTools, broker_directory: Path) -> None:
    """The offset and the time index agree with the segments."""
    indexes = sorted((broker_directory / "files-0").glob("*index"))
    assert {path.suffix for path in indexes} >= {".index", ".timeindex"}
    output = tools.dump_log(indexes, "--index-sanity-check")
    assert output.count("passed sanity check.") == len(indexes)
    tools.dump_log(indexes, "--verify-index-only")


def test_producer_snapshots(tools: JavaTools, broker_directory: Path) -> None:
    """A clean stop leaves a snapshot of the producers at the end of the log."""
    snapshots = sorted((broker_directory / "files-0").glob("*.snapshot"))
    assert snapshots
    assert re.search(r"producerId: \d+ producerEpoch: 0 ", tools.dump_log(snapshots[-1:]))


def test_committed_offsets(tools: JavaTools, broker_directory: Path) -> None:
    """The group and its offsets are in Kafka's own format."""
    segments = [path for path in broker_directory.glob("__consumer_offsets-*/*.log") if path.stat().st_size]
    assert segments
    output = tools.dump_log(segments, "--offsets-decoder")
    assert '"group":"readers","topic":"files","partition":0' in output
    assert '"protocolType":"consumer"' in output


def test_cluster_metadata(tools: JavaTools, broker_directory: Path) -> None:
    """The controller's log holds Kafka's own records."""
    segments = sorted((broker_directory / "__cluster_metadata-0").glob("*.log"))
    output = tools.dump_log(segments, "--cluster-metadata-decoder")
    assert re.search(r'"type":"TOPIC_RECORD","version":0,"data":\{"name":"files"', output)
    for record in ("PARTITION_RECORD", "REGISTER_BROKER_RECORD", "FEATURE_LEVEL_RECORD"):
        assert f'"type":"{record}"' in output


def test_directory_files(broker_directory: Path) -> None:
    """The directory has the files that Kafka reads at a start, in Kafka's format."""
    properties = (broker_directory / "meta.properties").read_text()
    assert re.search(r"^version=1$", properties, re.M) and re.search(r"^cluster\.id=\S{22}$", properties, re.M)
    assert re.search(r"^node\.id=1$", properties, re.M)
    assert (broker_directory / ".kafka_cleanshutdown").exists()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        assert (broker_directory / name).read_text().startswith("0\n")
    assert (broker_directory / "files-0" / "leader-epoch-checkpoint").read_text().startswith("0\n1\n0 0\n")
    assert re.search(r"^topic_id: \S{22}$", (broker_directory / "files-0" / "partition.metadata").read_text(), re.M)


def test_a_real_kafka_opens_the_directory(broker_directory: Path, kafka_jars: Path, tmp_path: Path) -> None:
    """A real Kafka starts on a copy of the directory, without a conversion, and serves its records and offsets."""
    shutil.copytree(broker_directory, tmp_path / "data")
    successor = KafkaProcess(kafka_jars, tmp_path)
    try:
        successor.start()
        partition = TopicPartition("files", 0)
        consumer = KafkaConsumer(
            bootstrap_servers=successor.bootstrap, group_id="readers", auto_offset_reset="earliest"
        )
        assert consumer.committed(partition) == 5 * RECORDS
        consumer.assign([partition])
        consumer.seek(partition, 0)
        offsets: list[int] = []
        while len(offsets) < 5 * RECORDS:
            polled = consumer.poll(timeout_ms=100_000)
            assert polled, f"only {len(offsets)} records arrived"
            offsets += [record.offset for record in polled[partition]]
        assert offsets == list(range(5 * RECORDS))
        consumer.close()
        producer = KafkaProducer(bootstrap_servers=successor.bootstrap)
        assert producer.send("files", value=b"next").get(100).offset == 5 * RECORDS
        producer.close()
    finally:
        successor.close()
